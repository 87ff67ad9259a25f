"""Random programs with Python's numbers: attributes that are read, computed with and stored back, arguments that differ from
call to call, and decisions. Compiled, each call gives what it gives as it is."""

import linecache
import math
import random

import gradiron as torch
import pytest

SEEDS = 300
CALLS = 9


class State:
    """Numbers and a tensor that calls leave for later ones."""

    def __init__(self, seed):
        choose = random.Random(seed)
        self.a, self.b = choose.randrange(4), choose.randrange(1, 6)
        self.u, self.v = choose.choice([0.0, 0.5, -1.5, 2.0]), choose.choice([1.0, 0.1, -0.25])
        self.h = torch.tensor([0.5, -1.0, 2.0], dtype=choose.choice([torch.float32, torch.float64]))

    def shown(self):
        return self.a, self.b, self.u, self.v, self.h.tolist(), self.h.dtype


class Writer:
    """Writes the source of a function of a state, a tensor, a float and an int."""

    def __init__(self, seed):
        self.choose = random.Random(seed)
        self.lines = []
        self.locals = []

    def constant(self):
        return self.choose.choice(["1", "2", "3", "7", "0.5", "0.1", "-1", "2.5", "10", "True"])

    def number(self, depth=0):
        pick = self.choose.random()
        if depth > 2 or pick < 0.45:
            return self.choose.choice(["s.a", "s.b", "s.u", "s.v", "t", "n", self.constant(), *self.locals])
        if pick < 0.85:
            sign = self.choose.choice(["+", "-", "*", "+", "-", "*", "/", "%", "//"])
            right = self.number(depth + 1) if sign in "+-*" else self.choose.choice(["3", "2", "0.75", "s.b", "t"])
            return f"({self.number(depth + 1)} {sign} {right})"
        return self.choose.choice(
            ["abs({})", "-{}", "float({})", "int({} * 0.25)", "min({}, 5)", "max(-2.0, {})", "math.tanh({})", "math.floor({} * 0.5)",
             "round({}, 1)", "math.exp(min({}, 3))"]
        ).format(self.number(depth + 1))  # fmt: skip

    def test(self):
        left, right = self.number(1), self.choose.choice(["0", "1.5", "s.b", "3", "t", "n"])
        sign = self.choose.choice(["<", ">", "==", "<=", "!=", "% 2 =="])
        return f"{left} {sign} {right}" if self.choose.random() < 0.8 else left

    def statement(self, indent):
        pick = self.choose.random()
        if pick < 0.35:
            sign = self.choose.choice(["+=", "-=", "*=", "="])
            value = self.number() if sign != "*=" else self.choose.choice(["0.5", "1", "-1", "t"])
            # The classes of numbers change seldom in programs.
            target = self.choose.choice(["s.u", "s.v", "s.a", "s.b"])
            value = f"int({value}) % 1000" if target in ("s.a", "s.b") and sign != "*=" else value
            value = "-1" if target in ("s.a", "s.b") and sign == "*=" else value
            self.lines.append(f"{indent}{target} {sign} {value}")
        elif pick < 0.5:
            name = f"k{len(self.locals)}"
            self.lines.append(f"{indent}{name} = {self.number()}")
            if indent == "    ":
                self.locals.append(name)
        elif pick < 0.7:
            sign = self.choose.choice(["*", "+", "-", "/"])
            value = self.number(1)
            value = f"({value} * 0.1 + 2)" if sign == "/" else value
            form = self.choose.choice(["x {} {}", "x {} {}", "s.h {} {} + x"]).format(sign, value)
            self.lines.append(f"{indent}x = torch.tanh({form})")
        elif pick < 0.8:
            self.lines.append(f"{indent}s.h = s.h * {self.choose.choice(['0.5', 's.v', 't'])} + x")
        elif pick < 0.84:
            self.lines.append(f"{indent}try:")
            self.lines.append(f"{indent}    s.v = {self.number(1)} / {self.choose.choice(['s.a', 's.b', 'n', 's.u'])}")
            self.lines.append(f"{indent}except ArithmeticError:")
            self.lines.append(f"{indent}    s.v = {self.choose.choice(['0.25', 's.u', '-1.5'])}")
        elif pick < 0.95 and indent == "    ":
            self.lines.append(f"{indent}if {self.test()}:")
            self.statement(indent + "    ")
            if self.choose.random() < 0.5:
                self.lines.append(f"{indent}else:")
                self.statement(indent + "    ")
        else:
            self.lines.append(f"{indent}s.u = s.u * 0.5 + x.sum().item() * 0.25")

    def source(self):
        for _ in range(self.choose.randrange(2, 7)):
            self.statement("    ")
        result = self.choose.choice(["x", "x * s.v", "(x, s.a)", "[x + 1, s.u, n * 2]", "(x, t)"])
        return "\n".join(["def f(s, x, t, n):", *self.lines, f"    return {result}"]) + "\n"


def function_of(seed):
    text, name = Writer(seed).source(), f"<number program {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    found = {"torch": torch, "math": math}
    exec(compile(text, name, "exec"), found)
    return found["f"], text


def shown(value):
    if isinstance(value, torch.Tensor):
        return value.dtype, value.tolist()
    if isinstance(value, (tuple, list)):
        return [shown(each) for each in value]
    return type(value), repr(value)


def outcome(f, *args):
    try:
        return shown(f(*args))
    except Exception as error:
        return type(error), str(error)


def run(seed, compile):
    f, text = function_of(seed)
    compiled = compile(f)
    state, found = State(seed), []
    for k in range(CALLS):
        x = torch.tensor([0.5, -1.0, 2.0]) * (k + 1)
        t, n = 0.25 * k if seed % 3 else 0.5, k if seed % 5 == 0 else 2
        done = outcome(compiled, state, x, t, n)
        found.append((done, list(map(repr, state.shown()))))
        if k == 6 and seed % 2:
            state.a, state.u, state.h = 1, -0.0, torch.ones(3)  # somebody else replaces them
    return found, compiled, text


@pytest.mark.parametrize("first", range(0, SEEDS, 25))
def test_compiled_equals_eager(first):
    for seed in range(first, first + 25):
        expected, _, text = run(seed, lambda f: f)
        found, _, _ = run(seed, torch.compile)
        assert repr(found) == repr(expected), (seed, text)


def test_most_are_captured():
    captured, reasons = 0, {}
    for seed in range(60):
        _, compiled, text = run(seed, torch.compile)
        captured += compiled._compiled.replays > 0
        if not compiled._compiled.replays:
            reasons[seed] = (list(map(str, compiled._compiled.reasons)), text)
    assert captured >= 40, (captured, reasons)
