"""Sources of functions: those of a function's own lines are those of its file."""

import ast
import importlib.util
import os
import sys
import textwrap
import types

import gradiron as torch
import pytest
from gradiron._compile import sources
from gradiron._compile.reasons import Unrewritable

MADE = """
import math, os
from collections import (
    OrderedDict as ordered,
    deque,
)


def named_as_a_module(math, deque):
    return math.sqrt(deque.popleft())


def documented():
    \"\"\"A docstring
    and nothing else.\"\"\"


@(lambda f: f)
def decorated(
    x=lambda: 3,
    *,
    y: int = 4,
) -> int:

    # A comment.
    def inner(z):
        nonlocal x
        x = z
        return inner, os.path.join

    return inner(y)


def calls_itself(n):
    return n and calls_itself(n - 1)


class __Private:
    __hidden = 3

    def method(self):
        "one line"

    def mangled(self, __x):
        return self.__hidden + __x + self.__init__.__name__

    def nested(self, values):
        return [value for value in values], lambda: {1 for _ in self}

    @property
    def parent(self):
        return super().__str__() + f"{__class__}"

    class Inner:
        def deep(self):
            return self.__deep, super().__init__


def makes(a, b):
    class Local:
        def method(self):
            return a, super().__init__, self.__x

        def other(self):
            return math.pi

    def local(c, *d, **e):
      if c:
            return [a for a in d if b]
      return e

    return Local.method, Local.other, local, lambda: a
"""


def functions_of(value, seen):
    if isinstance(value, types.FunctionType) and value not in seen:
        seen.append(value)
    elif isinstance(value, type):
        for each in vars(value).values():
            functions_of(getattr(each, "fget", None) or getattr(each, "__func__", None) or each, seen)
    return seen


def shown(found):
    return ast.dump(found[0], include_attributes=True), found[1]


def test_functions_of_all_kinds(tmp_path):
    path = tmp_path / "made.py"
    path.write_text(MADE)
    spec = importlib.util.spec_from_file_location("made", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = []
    for value in (*vars(module).values(), *module.makes(1, 2)):
        functions_of(value, found)
    assert len(found) >= 14
    for function in found:
        code = function.__code__
        if function is module.makes:  # it defines a class
            continue
        whole = sources._from_file(code, vars(module))
        assert shown(sources.tree_of(code, vars(module))) == shown(whole), code.co_name
        quick = sources._from_block(code, vars(module))
        # Before Python 3.11 code does not know which class it is in.
        if hasattr(code, "co_qualname") and code.co_name != "<lambda>":
            assert quick is not None, code.co_name
            assert shown(quick) == shown(whole)


@pytest.mark.skipif(not hasattr(test_functions_of_all_kinds.__code__, "co_qualname"), reason="it needs qualified names of code")
def test_functions_of_this_package():
    importlib.import_module("gradiron.optim.swa_utils")
    folder, own = os.path.join(os.path.dirname(torch.__file__), "optim"), []
    for name, module in list(sys.modules.items()):
        if name.startswith("gradiron.optim"):
            for value in vars(module).values():
                functions_of(value, own)
    own = [each for each in own if each.__code__.co_filename.startswith(folder)]
    checked = 0
    for function in own:
        code = function.__code__
        try:
            quick = sources._from_block(code, function.__globals__)
        except Unrewritable:
            continue
        if quick is not None:
            checked += 1
            assert shown(quick) == shown(sources._from_file(code, function.__globals__)), code.co_qualname
    sources.forget_sources()
    assert checked > 50


def test_a_file_whose_lines_moved_is_not_trusted(tmp_path):
    path = tmp_path / "moved.py"
    path.write_text(textwrap.dedent(MADE))
    spec = importlib.util.spec_from_file_location("moved", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path.write_text(MADE.replace("math.sqrt", "math.exp"))
    with pytest.raises(Unrewritable, match="its source is not what runs"):
        sources.tree_of(module.named_as_a_module.__code__, vars(module))
