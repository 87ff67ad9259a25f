"""Numbers among the arguments that differ from call to call: one capture serves all of them."""

import math

import gradiron as torch
import pytest
from gradiron import nn

X = torch.tensor([0.5, -1.0, 2.0])


def captures(f):
    return sum(map(len, f._compiled.captures.values()))


def heun(field, h=0.1):
    def step(t, y):
        k = field(t, y)
        return y + h / 2 * (k + field(t + h, y + h * k))

    return step


def field(t, y):
    return y * math.cos(t) - t * y.tanh()


def cosine(x, step, steps=100):
    scale = 0.5 * (1 + math.cos(math.pi * step / steps))
    return x * scale


def decides(x, t):
    return x * 2 if t < 0.5 else x * t


FUNCTIONS = [
    (lambda x, lr: x - lr * x.sin(), lambda k: (X, 0.1 / (k + 1))),
    (lambda t, y: y * t + t, lambda k: (0.25 * k, X)),
    (lambda x, t: x / (t + 1.0), lambda k: (X, 0.3 * k)),
    (lambda x, t: (x > t) + (t * x), lambda k: (X, 0.3 * k)),
    (lambda x, t: x - t, lambda k: (X.double(), 0.1 * k)),
    (lambda x, *, t: (x * t, t * 2), lambda k: (X, {"t": 0.1 * k})),
    (lambda x, n: x + n, lambda k: (X, k * 3)),
    (lambda x, n: (x * (1 - 0.9**n), n + 1), lambda k: (X, k + 1)),
    (heun(field), lambda k: (0.1 * k, X)),
    (cosine, lambda k: (X, k)),
    (lambda x, t: x * max(t, 0.2) + min(1.0, t * 0.5), lambda k: (X, 0.1 * k)),
    (lambda x, t: (x * float(t), abs(t), -t, round(t, 1)), lambda k: (X, 0.13 * k)),
    (lambda x, t: x * torch.full((3,), t) + torch.tensor(t) + torch.tensor([t, 1.0, t * 2]), lambda k: (X, 0.13 * k)),
    (lambda x, t: torch.cat((torch.full_like(x, t), x.new_full((2,), t), x)), lambda k: (X, 0.7 * k)),
    (lambda x, n: (torch.full((2,), n), torch.tensor(n), torch.tensor([n, 2]), x.new_full((2,), n * 2)), lambda k: (X, k)),
    (lambda x, n: torch.full((2,), n, dtype=torch.int32) + torch.full((2,), n, dtype=torch.float64), lambda k: (X, k * 1000)),
]


def call(f, given):
    *args, last = given
    return f(*args, **last) if isinstance(last, dict) else f(*given)


def shown(value):
    return [shown(each) for each in value] if isinstance(value, tuple) else repr(value)


@pytest.mark.parametrize(("f", "arguments"), FUNCTIONS)
def test_one_capture_serves_all_numbers(f, arguments):
    compiled = torch.compile(f, fullgraph=True)
    for k in range(10):
        assert shown(call(compiled, arguments(k))) == shown(call(f, arguments(k))), k
    assert captures(compiled) == 1 and compiled._compiled.replays >= 8


def test_each_way_of_a_decision_is_captured_once():
    compiled = torch.compile(decides, fullgraph=True)
    for k in range(24):
        t = k / 10 % 1.2
        assert torch.equal(compiled(X, t), decides(X, t))
    assert captures(compiled) == 2


def test_sizes_are_captured_each():
    compiled = torch.compile(lambda x, n: x.repeat(n) * 2)
    for k in range(12):
        n = 1 + k % 3
        assert torch.equal(compiled(X, n), X.repeat(n) * 2)
    assert captures(compiled) == 3 and not compiled._compiled.reasons


def test_numbers_of_other_classes_are_captured_apart():
    compiled = torch.compile(lambda x, t: (x * t, t))
    for t in (1, 1.0, True, 2, 2.0, 3.5, False, 3, -0.0, 0.0, math.inf, math.nan, 2**70, 10**400):
        x = X.long() if type(t) is bool else X
        try:
            expected = repr((x * t, t))
        except (OverflowError, RuntimeError) as error:
            with pytest.raises(type(error)):
                compiled(x, t)
        else:
            assert repr(compiled(x, t)) == expected


def test_an_error_is_that_of_the_function():
    compiled = torch.compile(lambda x, t: x * (1.0 / t))
    for t in (1.0, 2.0, 3.0, 0.0, 4.0):
        if t:
            assert torch.equal(compiled(X, t), X * (1.0 / t))
        else:
            with pytest.raises(ZeroDivisionError, match="float division by zero|division by zero"):
                compiled(X, t)


def test_gradients_flow_beside_live_numbers():
    layer = nn.Linear(3, 3)

    def f(t, y):
        return (layer(y) * t).tanh() + y / (1 + t)

    compiled = torch.compile(f, fullgraph=True)
    for k in range(8):
        found = []
        for g in (f, compiled):
            y = X.clone().requires_grad_()
            out = g(0.1 * k, y)
            found.append([out, *torch.autograd.grad(out.sum(), [y, *layer.parameters()], create_graph=True)])
            found[-1].append(torch.autograd.grad(found[-1][1].square().sum(), y)[0])
        assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
        assert found[0][0].grad_fn.name() == found[1][0].grad_fn.name()
    assert captures(compiled) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.complex64])
@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "**", "<", "==", "//", "%"])
def test_operators_take_live_numbers_to_the_bit(dtype, sign):
    if dtype == torch.complex64 and sign in ("<", "//", "%"):
        pytest.skip("complex numbers have no order")
    x = (torch.arange(3, 40) * 0.37).to(dtype)
    for left in (True, False):
        for of in (x, x[3], x[::3]):
            f = OPERATORS[sign][0 if left else 1]
            compiled = torch.compile(f)
            for t in (0.1, 1 / 3, 1e-3, 2.5, 7, 3, 11):
                one, other = f(of, t), compiled(of, t)
                assert one.dtype == other.dtype and torch.equal(one, other), (sign, left, t)


OPERATORS = {
    "+": (lambda x, t: x + t, lambda x, t: t + x),
    "-": (lambda x, t: x - t, lambda x, t: t - x),
    "*": (lambda x, t: x * t, lambda x, t: t * x),
    "/": (lambda x, t: x / t, lambda x, t: t / x),
    "**": (lambda x, t: x**t, lambda x, t: t**x),
    "<": (lambda x, t: x < t, lambda x, t: t < x),
    "==": (lambda x, t: x == t, lambda x, t: t == x),
    "//": (lambda x, t: x // t, lambda x, t: t // x),
    "%": (lambda x, t: x % t, lambda x, t: t % x),
}


def test_many_numbers_keep_memory_flat():
    compiled = torch.compile(lambda x, t: x * t, fullgraph=True)
    for k in range(2000):
        compiled(X, k * 0.5)
    assert captures(compiled) == 1 and len(compiled._compiled.seen) <= 4
