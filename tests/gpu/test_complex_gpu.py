"""Complex numbers on the GPU, whose shaders know real numbers only: what is computed of the parts is what the CPU computes."""

import cmath
import math

import pytest

from library import NO_GPU, T

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")]

A = [1 + 2j, -0.5 + 0.3j, 2 - 1j, -3 - 0.25j, 0.5 + 0j, -1 + 0j, 1j, 0j]
B = [0.5 - 1j, 1j, 3 + 0j, -1 + 2j, 0.1 + 0.1j, -2 - 2j, 4 + 1j, 1 + 1j]


def pair(data):
    x = T.tensor(data, dtype=T.complex64)
    return x, x.to("cuda")


def agree(here, there, tolerance=2e-5):
    assert there.device.type == "cuda" and there.dtype == here.dtype and there.shape == here.shape
    one, other = here.reshape(-1).tolist(), there.cpu().reshape(-1).tolist()
    for a, b in zip(one, other):
        if isinstance(a, bool):
            assert a == b
            continue
        a, b = complex(a), complex(b)
        most = tolerance * (1 + abs(a)) if cmath.isfinite(a) else 0.0
        for x, y in ((a.real, b.real), (a.imag, b.imag)):
            assert x == y or (math.isnan(x) and math.isnan(y)) or abs(x - y) <= most, (one, other)


UNARY = (
    "neg conj_physical abs angle exp exp2 expm1 sqrt sin cos tan sinh cosh tanh sigmoid square sgn isnan isinf isfinite "
    "logical_not real imag conj view_as_real clone flip positive asin acos asinh acosh sinc nonzero bool"
).split()
# Both sides of the cuts, and where parts are zero.
FAR = [0.3 + 0.1j, -2 + 0j, complex(-2, -0.0), 2 + 0j, complex(2, -0.0), 3j, complex(-0.0, 3), -3j, complex(0, -3)]
FAR += [50 - 20j, -1e10 + 1e9j, 1e19 - 1e19j, 1e-5 - 1e-6j]
NOT_ZERO = "log log2 log10 log1p rsqrt reciprocal".split()


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one(name):
    x, y = pair(A)
    f = {"flip": lambda x: x.flip(0), "sigmoid": T.sigmoid, "bool": lambda x: x.bool()}.get(name) or getattr(T, name)
    agree(f(x), f(y))


@pytest.mark.parametrize("name", NOT_ZERO)
def test_functions_of_what_is_not_zero(name):
    x, y = pair([z for z in A if z not in (0, -1)])
    agree(getattr(T, name)(x), getattr(T, name)(y))


@pytest.mark.parametrize("name", "asin acos atan asinh acosh atanh".split())
def test_inverse_functions_on_both_sides_of_their_cuts(name):
    x, y = pair(FAR)
    agree(getattr(T, name)(x), getattr(T, name)(y))


def test_silu():
    x, y = pair(A)
    agree(T.nn.functional.silu(x), T.nn.functional.silu(y))


BINARY = {
    "add": lambda a, b: a + b,
    "alpha": lambda a, b: T.add(a, b, alpha=2j),
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "and": lambda a, b: T.logical_and(a, b),
    "or": lambda a, b: T.logical_or(a, b),
    "xor": lambda a, b: T.logical_xor(a, b),
    "logaddexp": lambda a, b: T.logaddexp(a, b),
    "masked": lambda a, b: a[b.real > 0],
    "where": lambda a, b: T.where(a.real > 0, a, b),
    "lerp": lambda a, b: T.lerp(a, b, 0.25),
    "addcmul": lambda a, b: T.addcmul(a, a, b, value=2),
    "addcdiv": lambda a, b: T.addcdiv(a, a, b, value=2),
    "cat": lambda a, b: T.cat([a, b]),
    "stack": lambda a, b: T.stack([a, b], 1),
    "dot": lambda a, b: a.dot(b),
    "vdot": lambda a, b: T.vdot(a, b),
    "matmul": lambda a, b: a.reshape(2, 4) @ b.reshape(4, 2),
    "broadcast": lambda a, b: a[:, None] * b,
    "strided": lambda a, b: a[::2] * b[1::2],
    "transposed": lambda a, b: a.reshape(2, 4).t() + b.reshape(4, 2),
    "in place": lambda a, b: a.clone().mul_(b).add_(1).div_(b),
    "complex": lambda a, b: T.complex(a.real, b.imag),
    "polar": lambda a, b: T.polar(a.abs(), b.angle()),
}


@pytest.mark.parametrize("f", BINARY.values(), ids=BINARY)
def test_functions_of_two(f):
    (a, x), (b, y) = pair(A), pair(B)
    agree(f(a, b), f(x, y))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * 2,
        lambda x: x * (1 - 2j),
        lambda x: 1j - x,
        lambda x: 3 / (x + 1j / 3),
        lambda x: x / 2,
        lambda x: x**2,
        lambda x: x**3,
        lambda x: x**0,
        lambda x: (2 + 1j) ** x,
        lambda x: x + x.real,
        lambda x: x.real * x,
        lambda x: x * T.arange(8, device=x.device),
        lambda x: x == 0,
        lambda x: x.masked_fill(x.real > 0, 7j),
        lambda x: x + T.tensor(2j, dtype=T.complex64),
    ],
)
def test_with_numbers_and_real_tensors(f):
    x, y = pair(A)
    agree(f(x), f(y))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.sum(),
        lambda x: x.mean(),
        lambda x: x.reshape(2, 4).sum(0),
        lambda x: x.reshape(2, 4).mean(1, keepdim=True),
        lambda x: x.norm(),
        lambda x: x.std(),
        lambda x: x.cumsum(0),
        lambda x: x.reshape(2, 4).cumsum(1),
        lambda x: (x + 0.5).cumprod(0),
        lambda x: (x + 0.5)[:7].cumprod(0),
        lambda x: x.reshape(2, 4).t().cumprod(1),
        lambda x: x[:0].cumprod(0),
        lambda x: x[2].cumprod(0),
        lambda x: (x + 0.5).prod(),
        lambda x: (x + 0.5)[:7].prod(),
        lambda x: (x + 0.5).reshape(2, 4).prod(0),
        lambda x: x[:0].prod(),
    ],
)
def test_reductions_and_scans(f):
    x, y = pair(A)
    agree(f(x), f(y))


def positions(x, *numbers):
    return T.tensor(numbers, device=x.device)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[positions(x, 2, 0, 2)],
        lambda x: x.reshape(2, 4)[:, positions(x, 3, 1)],
        lambda x: x.gather(0, positions(x, 1, 1)),
        lambda x: x.index_select(0, positions(x, 5, 4)),
        lambda x: x.index_add(0, positions(x, 0, 0), x[:2]),
        lambda x: x.index_put((positions(x, 1, 3),), x[:2]),
        lambda x: x.scatter(0, positions(x, 4, 2), x[:2]),
        lambda x: x.roll(3),
        lambda x: x.reshape(2, 4).flip(1),
        lambda x: x.reshape(2, 4).tril(),
        lambda x: x.reshape(2, 4).triu(1),
        lambda x: T.diag(x),
        lambda x: x.to(T.complex64) + x.real.to(T.complex64),
        lambda x: x.reshape(2, 4).t().contiguous(),
        lambda x: x.repeat(2),
    ],
)
def test_what_moves_elements(f):
    x, y = pair(A)
    agree(f(x), f(y))


def test_writes_by_index():
    x, y = pair(A)
    for t in (x, y):
        t[1] = 5j
        t[2:4] = t[:2].clone()
        t[positions(t, 0, 7)] = t[4:6].clone()
        t[t.real > 1] = 0
    agree(x, y)


@pytest.mark.parametrize(
    "loss",
    [
        lambda x: (x * x.conj()).real.sum(),
        lambda x: (x.exp() / (x + 2)).abs().sum(),
        lambda x: T.view_as_real(x.sin() * x).pow(2).sum(),
        lambda x: (x.reshape(2, 4) @ x.reshape(4, 2)).abs().sum(),
        lambda x: x[T.tensor([0, 0, 3], device=x.device)].imag.sum() + x.cumsum(0).real.sum(),
        lambda x: (x * 0.3 + 0.1).asin().abs().sum() + (x * 0.3).atanh().imag.sum(),
        lambda x: x.cumprod(0).abs().sum(),
    ],
)
def test_gradients(loss):
    x, y = pair([*(z for z in A if z != 0), 1 - 1j])
    x.requires_grad_()
    y.requires_grad_()
    loss(x).backward()
    loss(y).backward()
    agree(x.grad, y.grad, 1e-4)


def test_extremes():
    large, inf, nan = 1e30, math.inf, math.nan
    x, y = pair(
        [complex(large, large), complex(0, large), complex(inf, 1), complex(nan, 1), complex(1, nan), complex(1e-30, 1e-30)]
    )
    for f in (T.isnan, T.isinf, T.isfinite, T.abs, T.neg, lambda t: t == t):
        agree(f(x), f(y))
    x, y = pair([complex(large, large), complex(1e-30, 1e-30), complex(0, -large)])
    agree((1 / x) * large, (1 / y) * large)


def test_what_has_no_formula_says_so():
    _, y = pair(A)
    with pytest.raises(NotImplementedError, match="is not implemented on the GPU for .ComplexFloat."):
        y.scatter_reduce(0, positions(y, 1, 0), y[:2], "prod")
