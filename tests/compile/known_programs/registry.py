"""The table of programs, and what they share."""

from __future__ import annotations

import ast
import importlib.util
import pathlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from library import NAME

PROGRAMS: dict[str, Program] = {}
# Reasons that several programs give.
HOST = "it reads or writes elements outside of the kernels that a replay runs"
CHANGED = "it decides by the elements of a tensor after it changed a tensor that is older than the call"
TESTS = pathlib.Path(__file__).parent.parent.parent


class Program(NamedTuple):
    """A program.

    Attributes:
        name: what it is called.
        run: a generator of losses, whose value is the modules and tensors that it trained. It is given what is done with
            each training step, and with each model.
        step: why its steps run as they are; `None` if they are captured.
        model: the same for its models.
        captures: how many captures its steps need at most.
    """

    name: str
    run: Callable[[Any, Any], Any]
    step: str | None
    model: str | None
    captures: int


def program(step: str | None = None, model: str | None = None, captures: int = 1) -> Callable[[Any], Any]:
    """Register a program."""

    def keep(run: Any) -> Any:
        PROGRAMS[run.__name__] = Program(run.__name__, run, step, model, captures)
        return run

    return keep


def _load(folder: pathlib.Path, name: str) -> ModuleType:
    path = folder / f"{name}.py"
    asked = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        asked.update(each for each in names if each and each.partition(".")[0] == "torch")
    added = {}
    if NAME != "torch":
        added = {each: importlib.import_module(NAME + each.removeprefix("torch")) for each in asked}
        added = {each: module for each, module in added.items() if each not in sys.modules}
    spec: Any = importlib.util.spec_from_file_location(f"{folder.name}_{name}", path)
    made = importlib.util.module_from_spec(spec)
    sys.modules.update(added)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(made)
    finally:
        sys.path.remove(str(folder))
        for each in added:
            del sys.modules[each]
    return made


def script(name: str) -> ModuleType:
    """Return a module of tests/scripts."""
    return _load(TESTS / "scripts", name)


def example(name: str) -> ModuleType:
    """Return a module of examples/."""
    return _load(TESTS.parent / "examples", name)
