"""float64 on adapters that have it: functions and their derivatives within four units in the last place of the CPU's,
zeros of either sign, infinities, NaN and what lies between included."""

import math
import random
import struct

import pytest

from library import NO_GPU, T, gpu_is_software

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")]

if not NO_GPU and not T._core._gpu.properties()["has_float64"]:
    pytest.skip("this adapter has no float64", allow_module_level=True)

F = T.nn.functional
INF, NAN = float("inf"), float("nan")
SMALLEST = 2.2250738585072014e-308
# The 62 bits before its cosine's first are those of a multiple of pi/2.
HARD = 6381956970095103.0 * 2.0**797
BOTH_SIGNS = [0.0, INF, 5e-324, 1e-310, SMALLEST, 1e-300, 1e-100, 1e-20, 1e-10, 1e-5, 1e-3, 0.1, 0.25, 0.5, 0.75, 1 - 2**-53]
BOTH_SIGNS += [
    1.0,
    1 + 2**-52,
    1.5,
    2.0,
    2.5,
    3.0,
    math.pi / 2,
    math.pi,
    5.0,
    8.5,
    20.5,
    88.0,
    700.0,
    709.7,
    710.0,
    745.0,
    1024.0,
]
BOTH_SIGNS += [1e5, 1048576.0, 1e7, 1e10, 2.0**53, 1e22, 1e100, 1e300, 1.7e308]
draw = random.Random(0)
VALUES = [s * v for v in BOTH_SIGNS for s in (1.0, -1.0)] + [NAN]
VALUES += [draw.choice([-1, 1]) * 2 ** draw.uniform(-1070, 1023) for _ in range(400)]
VALUES += [draw.uniform(-reach, reach) for reach in (1, 10, 750) for _ in range(500)]
VALUES += [k * math.pi / 2 for k in range(1, 100)] + [2.0**k for k in range(-60, 1023, 7)]
VALUES += [k + d for k in range(-8, 5) for d in (1e-6, -1e-6, 1e-12, 0.3)]

ONE = """floor ceil trunc round frac exp exp2 expm1 log log2 log10 log1p sigmoid tanh sinh cosh asinh acosh atanh
sin cos tan asin acos atan erf erfc erfinv
lgamma digamma rsqrt reciprocal sinc logit gelu silu softplus elu logsigmoid""".split()
TWO = "pow atan2 hypot logaddexp xlogy fmod remainder floor_divide".split()
# Beside zeros of theirs, these are as exact as their terms.
HAVE_ZEROS = {"lgamma", "digamma", "slope of lgamma", "slope of digamma", "slope of gelu"}


def rank(x):
    """A float64's place among all of them."""
    (bits,) = struct.unpack("<q", struct.pack("<d", x))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFFFFFFFFFF)


def differ(a, b, ulps, near):
    if math.isnan(a) or math.isnan(b):
        return not (math.isnan(a) and math.isnan(b))
    if a == b:
        return math.copysign(1, a) != math.copysign(1, b)
    # Adapters may flush what is smaller than any normal number.
    if max(abs(a), abs(b)) <= SMALLEST or abs(a - b) <= near:
        return False
    return math.isinf(a) or math.isinf(b) or abs(rank(a) - rank(b)) > ulps


def compare(name, arguments, expected, got, ulps=4):
    assert got.is_cuda and got.dtype is T.float64
    near = 1e-14 if name in HAVE_ZEROS else 0.0
    if not gpu_is_software():
        # A GPU's compiler may round `1 - x * x` once where a processor rounds twice. (Of sinc near 0 neither has many digits.)
        ulps = 1 << (32 if name == "slope of sinc" else 26) if name.startswith("slope") else 16
    triples = zip(arguments, expected.reshape(-1).tolist(), got.cpu().reshape(-1).tolist())
    if not gpu_is_software():
        # The sign that a zero has is lost where the argument is flushed.
        triples = [t for t in triples if not (isinstance(t[0], float) and 0 < abs(t[0]) < SMALLEST)]
    assert [t for t in triples if differ(t[1], t[2], ulps, near)] == [], f"{name}: arguments, CPU, GPU"


def slope(function, x):
    x = x.detach().clone().requires_grad_()
    function(x).sum().backward()
    return x.grad


def wide(values):
    return T.tensor(values, dtype=T.float64)


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_number(name):
    function = getattr(T, name, None) or getattr(F, name)
    x = wide(VALUES)
    compare(name, VALUES, function(x), function(x.cuda()))
    compare(f"slope of {name}", VALUES, slope(function, x), slope(function, x.cuda()), 8)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_numbers(name):
    chosen, function = random.Random(1), getattr(T, name)
    pairs = [(chosen.choice(VALUES), chosen.choice(VALUES)) for _ in range(2000)]
    pairs += [(chosen.uniform(0, 3), chosen.uniform(-500, 500)) for _ in range(1000)]
    pairs += [(1 + chosen.uniform(-1, 1) * 2 ** -chosen.uniform(0, 40), 2 ** chosen.uniform(0, 40)) for _ in range(1000)]
    a, b = wide([p[0] for p in pairs]), wide([p[1] for p in pairs])
    compare(name, pairs, function(a, b), function(a.cuda(), b.cuda()))


@pytest.mark.parametrize("power", [2.0, 0.5, -0.5, 3, -2, 1.7, 1 / 3])
def test_powers(power):
    x = wide(VALUES)
    compare("pow", VALUES, x**power, x.cuda() ** power)
    compare("pow", VALUES, slope(lambda x: x**power, x), slope(lambda x: x**power, x.cuda()), 8)


def test_angles_beyond_measure():
    """Values from arithmetic of 1,200 bits."""
    for x, sine, cosine in (
        (HARD, 1.0, -4.687165924254628e-19),
        (1e22, -0.8522008497671888, 0.523214785395139),
        (2.0**1000, -0.15920170308624243, 0.9872460775989135),
        (1.7976931348623157e308, 0.004961954789184062, -0.9999876894265599),
    ):
        for sign in (1, -1):
            at = wide([sign * x]).cuda()
            assert not differ(at.sin().item(), sign * sine, 1, 0) and not differ(at.cos().item(), cosine, 1, 0)
            assert not differ(at.tan().item(), sign * sine / cosine, 3, 0)


def rows(shape):
    T.manual_seed(0)
    return T.randn(shape, dtype=T.float64)


ROWS = [
    (name, shape)
    for name in ("softmax", "log_softmax", "logsumexp", "logcumsumexp", "std", "norm")
    for shape in ((3, 7), (5, 1000))
]
ROWS += [("softmax", (1, 2**20 + 3)), ("log_softmax", (1, 2**20 + 3))]


@pytest.mark.parametrize("name, shape", ROWS)
def test_along_rows(name, shape):
    x, weight = rows(shape), rows(shape)
    outcomes = []
    for place in ("cpu", "cuda"):
        a = x.clone().to(place).requires_grad_()
        y = getattr(T, name)(a, dim=-1)
        (y * (weight if y.shape == weight.shape else weight[:, 0]).to(place)).sum().backward()
        outcomes.append((y.detach().cpu(), a.grad.cpu()))
    for a, b in zip(*outcomes):
        assert a.dtype is T.float64 and (a - b).abs().max().item() <= 1e-11 * a.abs().max().item()


LOSSES = {
    "cross_entropy": lambda x, t: F.cross_entropy(x, t),
    "nll": lambda x, t: F.nll_loss(F.log_softmax(x, -1), t),
    "bce": lambda x, t: F.binary_cross_entropy(x.sigmoid(), x.detach().sin().abs()),
    "bce of logits": lambda x, t: F.binary_cross_entropy_with_logits(x, x.detach().sin().abs()),
    "smooth_l1": lambda x, t: F.smooth_l1_loss(x, x.detach().cos()),
    "index": lambda x, t: (x[t % 8, t] ** 3).sum(),
    "index_add": lambda x, t: (x.index_add(0, t % 8, x.exp()) ** 2).mean(),
    "layer_norm": lambda x, t: T.layer_norm(x, (9,)).tanh().sum(),
    "matrix products": lambda x, t: T.tanh(x @ x.t()).logsumexp(0).sum(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_their_gradients(name):
    x, t = rows((8, 9)), T.tensor([0, 8, 3, 3, 5, 1, 0, 0])
    outcomes = []
    for place in ("cpu", "cuda"):
        a = x.clone().to(place).requires_grad_()
        y = LOSSES[name](a, t.to(place))
        y.backward()
        outcomes.append((y.detach().cpu(), a.grad.cpu()))
    for a, b in zip(*outcomes):
        assert a.dtype is T.float64 and (a - b).abs().max().item() <= 1e-13 * (1 + a.abs().max().item())


def test_a_step_with_powers():
    """Optimizers' fused programs take powers in float64 too."""
    outcomes = []
    for place in ("cpu", "cuda"):
        w = wide([1.0, -2.0, 3.0]).to(place).requires_grad_()
        step = T.optim.Adam([w], lr=0.1)
        for _ in range(5):
            step.zero_grad()
            (w.exp() * w).sum().backward()
            step.step()
        outcomes.append(w.detach().cpu())
    assert (outcomes[0] - outcomes[1]).abs().max().item() < 1e-14
