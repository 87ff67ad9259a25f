"""Rewritten functions do what they did: small functions of all kinds, observed and as they are."""

import random
import textwrap
import traceback

import gradiron as torch
import pytest
from gradiron._compile.calls import rewritten
from gradiron._compile.observer import Observer
from gradiron._compile.reasons import Unrewritable
from python_programs import PROGRAMS


def observed(function, *args, **kwargs):
    """Run a function observed; returns the result and the observer."""
    observer = Observer([], [arg for arg in args if isinstance(arg, (list, dict))])
    observer.begin()
    try:
        return observer.call(function, *args, **kwargs), observer
    finally:
        observer.end()


@pytest.mark.parametrize(("function", "args", "kwargs"), PROGRAMS, ids=lambda part: getattr(part, "__name__", None))
def test_observed_does_what_it_did(function, args, kwargs):
    expected = function(*args, **kwargs)
    found, observer = observed(function, *args, **kwargs)
    assert repr(found) == repr(expected)
    for _ in range(20):  # what C calls is found, and may be rewritten in its turn
        if not observer.found:
            break
        observer = observed(function, *args, **kwargs)[1]
    assert observer.reason is None or observer.found, observer.reason
    made, _ = rewritten(function)
    assert repr(made(*args, **kwargs)) == repr(expected)


def test_tracebacks_keep_names_and_lines():
    def inner(x):
        return {}[x]

    def outer(x):
        y = x

        return inner(y)

    with pytest.raises(KeyError) as plain:
        outer(3)
    with pytest.raises(KeyError) as seen:
        observed(outer, 3)

    def shown(error):
        frames = traceback.extract_tb(error.__traceback__)
        return [(frame.name, frame.lineno, frame.line) for frame in frames if frame.filename == __file__][-2:]

    assert shown(seen.value) == shown(plain.value)
    # The run time's own frames do not show in an error that leaves a compiled function.
    step = torch.compile(outer)
    for _ in range(2):
        with pytest.raises(KeyError) as seen:
            step(3)
    assert not [frame for frame in traceback.extract_tb(seen.value.__traceback__) if frame.name in ("call", "item")]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("async def f(): pass", "it is async"),
        ("def f():\n    class A: pass", "it defines a class, A"),
        ("def f():\n    return eval('1')", "it calls eval() in line 2"),
        ("def f(x):\n    match x:\n        case [a]: return a", "it matches more than constants in line 3"),
        ("def f():\n    async def g(): pass\n    return g", "it has an async function in line 2"),
    ],
)
def test_what_cannot_be_rewritten_says_why(tmp_path, source, words):
    module = load(tmp_path, source)
    with pytest.raises(Unrewritable) as error:
        rewritten(module["f"])
    assert str(error.value) == words


def test_a_file_that_changed_is_not_trusted(tmp_path):
    module = load(tmp_path, "def f():\n    return 1\n")
    (tmp_path / "module.py").write_text("def f():\n    return 22\n")
    with pytest.raises(Unrewritable, match="its source is not what runs"):
        rewritten(module["f"])
    with pytest.raises(Unrewritable, match="it has no source"):
        scope = {}
        exec("def g(): return 1", scope)
        rewritten(scope["g"])


def load(folder, source):
    """Run a source from a file, and return its names."""
    path = folder / "module.py"
    path.write_text(source)
    scope = {"__name__": "module"}
    exec(compile(source, str(path), "exec"), scope)
    return scope


class Program:
    """Writes random functions over integers, lists and closures."""

    def __init__(self, random):
        self.random = random
        self.names = ["a", "b"]
        self.depth = 0

    def expression(self, depth=0):
        pick = self.random.randrange(14 if depth < 3 else 3)
        sub = lambda: self.expression(depth + 1)  # noqa: E731
        if pick == 0:
            return str(self.random.randrange(-3, 9))
        if pick in (1, 2):
            return self.random.choice(self.names)
        return [
            lambda: f"({sub()} {self.random.choice('+-*')} {sub()})",
            lambda: f"({sub()} if {sub()} {self.random.choice(['<', '>=', '==', '!='])} {sub()} else {sub()})",
            lambda: f"({sub()} and {sub()})",
            lambda: f"(not {sub()})",
            lambda: f"sum([i * {sub()} for i in range(3)])",
            lambda: f"(lambda q, r={sub()}: q + r)({sub()})",
            lambda: f"[{sub()}, {sub()}][{sub()} % 2]",
            lambda: f"(0 if {sub()} < {sub()} <= {sub()} else 1)",
            lambda: f"len(f'{{{self.random.choice(self.names)}}}')",
            lambda: f"max({sub()}, *[{sub()}, 2])",
            lambda: f"{{'k': {sub()}, **{{'l': 1}}}}['k']",
        ][pick - 3]()

    def statements(self, depth=0):
        lines = []
        for _ in range(self.random.randrange(1, 4)):
            pick = self.random.randrange(10 if depth < 2 else 4)
            name = self.random.choice([*self.names, f"v{len(self.names)}"])
            new = lambda: self.names.append(name) if name not in self.names else None  # noqa: E731, B023
            inner = lambda: textwrap.indent("\n".join(self.statements(depth + 1)), "    ")  # noqa: E731
            if pick <= 1:
                lines.append(f"{name} = {self.expression()}")
                new()
            elif pick == 2:
                lines.append(f"{self.random.choice(self.names)} {self.random.choice('+-*')}= {self.expression()}")
            elif pick == 3:
                lines.append(f"out.append({self.expression()})")
            elif pick == 4:
                before = list(self.names)
                lines.append(f"if {self.expression()}:\n{inner()}")
                self.names = before
            elif pick == 5:
                before = list(self.names)
                lines.append(f"for i in range(2):\n{inner()}")
                self.names = before
            elif pick == 6:
                before = list(self.names)
                body = inner()
                self.names = before
                lines.append(
                    f"try:\n{body}\n    [][{self.expression()}]\nexcept IndexError:\n    out.append(-1)\nfinally:\n    a = a"
                )
            elif pick == 7:
                outside = self.names
                self.names = ["p", *outside]
                value = self.expression()
                self.names = outside
                lines.append(
                    f"def g(p, *rest, k=1):\n    out.append(k)\n    return p + len(rest), {value}\nout.append(g({self.expression()}, 1, k=2))"
                )
            elif pick == 8:
                lines.append(f"x, (y, *z) = {self.expression()}, (1, {self.expression()}, 3)\nout[:0] = [x, y, len(z)]")
            else:
                lines.append(f"out += [{self.expression()} for u in [1, 2] if u > {self.expression()}]")
        return lines

    def source(self):
        body = "\n".join(self.statements())
        return "def f(a, b):\n    out = []\n" + textwrap.indent(body, "    ") + "\n    return out, a, b\n"


@pytest.mark.parametrize("seed", range(20))
def test_random_functions(tmp_path, seed):
    draw = random.Random(seed)
    for number in range(15):
        folder = tmp_path / str(number)
        folder.mkdir()
        source = Program(draw).source()
        function = load(folder, source)["f"]
        expected = outcome(function, 2, 5)
        made, _ = rewritten(function)
        assert outcome(made, 2, 5) == expected, source
        assert outcome(lambda a, b, function=function: observed(function, a, b)[0], 2, 5) == expected, source


def outcome(function, *args):
    try:
        return repr(function(*args))
    except Exception as error:
        return type(error), str(error)
