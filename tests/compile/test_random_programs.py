"""Random programs of operators, views, writes in place, hooks and backwards, compiled and as they are: the same bits."""

import linecache
import random
import warnings

import gradiron as torch
import pytest
from programs import machine
from programs.generate import Generator

from library import NO_GPU

linecache.cache["functions"] = (len(machine.FUNCTIONS), None, machine.FUNCTIONS.splitlines(True), "functions")


def program(seed, length):
    """Return the lines of a program that raises nothing, and the machine that ran it."""
    made = machine.Machine(torch)
    generator, lines = Generator(seed, made), []
    while len(lines) < length:
        line = generator.line()
        if made.run(line) is None:
            lines.append(line)
    return lines, made


def function(lines, names, args, file, taken=".detach()", more=""):
    """Return a function of these lines, whose source is known. `taken` is what it returns of each name."""
    body = "\n".join("    " + line.replace("\n", "\n    ") for line in lines)
    source = f"def f({', '.join(args)}):\n{body}\n    return [{', '.join(name + taken for name in names)}{more}]\n"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    scope = machine.Machine(torch).env
    exec(compile(source, file, "exec"), scope)
    return scope["f"]


def with_decisions(lines, names, seed):
    """Return the lines with decisions by the sums of tensors between them, and numbers that are read from tensors."""
    drawn, found, known = random.Random(seed), [], []
    for line in lines:
        found.append(line)
        name = line.partition(" = ")[0]
        if name in names:
            known.append(name)
        if known and drawn.random() < 0.3:
            name = drawn.choice(known)
            total = f"{name}.detach().to(T.float64).nan_to_num().sum()"
            found.append(f"if {total} > {drawn.uniform(-1, 3)}:\n    {name} = {name} * 2")
            found.append(f"numbers.append({total}.item())")
    return ["numbers = []", *found, "numbers = T.tensor(numbers)"] if drawn.random() < 0.1 else ["numbers = []", *found]


def outcome(f, args, seed):
    torch.manual_seed(seed)
    try:
        return f(*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}".split("\n", 1)[0]
    finally:
        torch.set_grad_enabled(True)


def same(a, b):
    if isinstance(a, (str, float, type(None))) or isinstance(b, (str, float, type(None))):
        return type(a) is type(b) and (a == b or (a != a and b != b))
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num())


def near(a, b):
    """Compare as kernels of the GPU allow it."""
    if isinstance(a, (str, float, type(None))) or isinstance(b, (str, float, type(None))):
        return a == b
    if isinstance(a, list):
        return len(a) == len(b) and all(map(near, a, b))
    return a.dtype == b.dtype and a.shape == b.shape and torch.allclose(a.cpu(), b.cpu(), 1e-3, 1e-4, equal_nan=True)


def compare(seed, device, alike, decides=False):
    """Call a program and its compiled form five times, and return the compiled form."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines, made = program(seed, 10)
        names = list(made.tensors())
        leaves = {name: f"{name} = T.tensor(" for name in names if made.env[name].is_floating_point() and made.env[name].dim()}
        args = [name for name, begin in leaves.items() if any(line.startswith(begin) for line in lines)][:2]
        kept = [line for line in lines if not any(line.startswith(leaves[name]) for name in args)]
        more = ", numbers" if decides else ""
        kept = with_decisions(kept, names, seed) if decides else kept
        plain = function(kept, names, args, f"plain{seed}{decides}", more=more)
        compiled = torch.compile(function(kept, names, args, f"compiled{seed}{decides}", more=more))
        with torch.device(device):
            for call in range(5):
                given = []
                for name in args:
                    value = made.env[name]
                    needs = value.is_leaf and value.requires_grad
                    start = value.detach().to(device) + call * 0.25
                    given.append([start.clone().requires_grad_(needs) for _ in range(2)])
                expected = outcome(plain, [one for one, _ in given], call)
                found = outcome(compiled, [other for _, other in given], call)
                assert alike(expected, found), "\n".join(kept)
                for one, other in given:
                    assert alike(one.detach(), other.detach()) and alike(one.grad, other.grad), "\n".join(kept)
        return compiled


@pytest.mark.parametrize("decides", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_compiled_programs_give_the_same_bits(seed, decides):
    compare(seed, "cpu", same, decides)


@pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")
@pytest.mark.parametrize("seed", range(16))
def test_compiled_programs_on_the_gpu(seed):
    compare(seed, "cuda", near)
