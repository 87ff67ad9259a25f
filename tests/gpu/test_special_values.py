"""Zeros of either sign, infinities, NaN, subnormals and what lies beside poles: pointwise operators and their derivatives
give the CPU's numbers on the GPU."""

import math
import random
import struct

import pytest

from library import NO_GPU, T, gpu_flushes, gpu_is_software, near_subnormal

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")]

F = T.nn.functional
INF, NAN = float("inf"), float("nan")
BOTH_SIGNS = [0.0, 1.0, INF, 1e-45, 1e-40, 1.1754944e-38, 1e-30, 1e-10, 1e-5, 1e-3, 0.1, 0.25, 0.5, 0.75, 0.999999, 1.000001]
BOTH_SIGNS += [1.5, 2.0, 2.5, 3.0, 3.1415927, 1.5707964, 5.0, 8.0, 8.5, 10.0, 20.5, 50.0, 88.0, 89.0, 100.0, 104.0, 127.5]
BOTH_SIGNS += [500.0, 12345.678, 1e5, 1e6, 2.0**24 + 2, 1e10, 1e20, 1e30, 3.4028234e38]
draw = random.Random(0)
VALUES = [s * v for v in BOTH_SIGNS for s in (1.0, -1.0)] + [NAN]
VALUES += [k + d for k in range(-6, 4) for d in (1e-6, -1e-6, 1e-4, -1e-4, 1e-2)]
VALUES += [draw.choice([-1, 1]) * 2 ** draw.uniform(-149, 127) for _ in range(100)] + [draw.uniform(-9, 9) for _ in range(100)]
FEW = [s * v for v in (0.0, 1.0, INF, 1e-40, 0.5, 1.5, 2.0, 3.0, 20.5, 1e5, 2.0**24 + 2, 3e9, 1e20, 3e38) for s in (1, -1)] + [
    NAN
]
WHOLE = [0, 1, -1, 2, -2, 3, -3, 7, -7, 31, 32, 33, 63, 127, -128, 255, 32767, -32768, 46341, 65536, 2**31 - 1, -(2**31)]
WIDE = [*WHOLE, 2**31, -(2**31) - 1, 2**32, 3000000000, 2**40 + 3, 2**63 - 1, -(2**63)]
# Units in the last place by which both may differ; functions with zeros have more beside them.
ULPS = {"erfc": 16, "digamma": 200, "lgamma": 400, "sinc": 16, "gelu": 50_000}
SLOPE_ULPS = {"lgamma": 200, "sinc": 2000, "expm1": 2**31, "tanh": 2**31, "erfc": 16, "gelu": 2**31}
NO_SLOPE = {"floor_divide", "heaviside"}


def rank(x):
    """A float32's place among all of them."""
    (bits,) = struct.unpack("<i", struct.pack("<f", x))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFF)


def differ(a, b, ulps):
    if not isinstance(a, float) or math.isnan(a) or math.isnan(b):
        return not (a == b or (a != a and b != b))
    if a == b:
        return math.copysign(1, a) != math.copysign(1, b)
    return math.isinf(a) or math.isinf(b) or (abs(rank(a) - rank(b)) > ulps and abs(a - b) > 1e-6 * (ulps > 2**30))


def flushed(*numbers):
    return gpu_flushes() and any(map(near_subnormal, numbers))


def compare(label, arguments, expected, got, ulps=8):
    assert got.is_cuda and got.dtype is expected.dtype
    if label.startswith("slope") and not gpu_is_software():
        # A GPU's compiler may round `1 - x * x` once where a processor rounds twice. (Of sinc near 0 neither has a digit.)
        ulps = 1 << 31 if label == "slope of sinc" else max(ulps, 1 << 17)
    pairs = list(zip(arguments, expected.reshape(-1).tolist(), got.cpu().reshape(-1).tolist()))
    if label.startswith("ldexp") and gpu_flushes():
        pairs = [pair for pair in pairs if not pair[0][1] < -126]  # That power of two is subnormal.
    kept = [(x, e, g) for x, e, g in pairs if not flushed(*(x if isinstance(x, tuple) else (x,)), e)]
    assert len(kept) > len(pairs) // 2
    wrong = [(x, e, g) for x, e, g in kept if differ(e, g, ulps)]
    assert wrong == [], f"{label}: arguments, CPU, GPU"


def rows(operands):
    seen = {}
    for row in T._core.rows():
        kinds = [kind for _, kind, *_ in row["params"] if kind in ("Tensor", "Operand")]
        pointwise = row["family"] == "pointwise" or row["name"] in ("gelu", "silu", "softplus", "elu", "relu", "logsigmoid")
        if pointwise and len(kinds) == operands and hasattr(F if row["nn"] else T, row["name"]):
            seen.setdefault(row["name"], row)
    # They give no tensors, or want whole numbers.
    for name in ("is_nonzero", "is_signed", "is_same_size", "bitwise_not", "is_floating_point", "is_complex"):
        seen.pop(name, None)
    return sorted(seen)


def call(name):
    return getattr(F, name) if not hasattr(T, name) else getattr(T, name)


def slope(function, at, *xs):
    xs = [x.clone().requires_grad_() if k == at else x for k, x in enumerate(xs)]
    function(*xs).sum().backward()
    return xs[at].grad


@pytest.mark.parametrize("name", rows(1))
def test_functions_of_one_number(name):
    x = T.tensor(VALUES)
    function, y = call(name), x.cuda()
    expected = function(x)
    compare(name, x.tolist(), expected, function(y), ULPS.get(name, 8))
    if expected.requires_grad or (expected.is_floating_point() and function(x.clone().requires_grad_()).requires_grad):
        compare(f"slope of {name}", x.tolist(), slope(function, 0, x), slope(function, 0, y), SLOPE_ULPS.get(name, 8))


@pytest.mark.parametrize("name", [name for name in rows(2) if name != "float_power"])
def test_functions_of_two_numbers(name):
    function = call(name)
    for kinds, xs, ys in (
        (("float32", "float32"), FEW, FEW),
        (("int32", "int32"), WHOLE, WHOLE),
        (("int64", "int64"), WIDE, WIDE),
        (("int16", "uint8"), [0, 1, -1, 7, -7, 300, -32768, 32767], [0, 1, 2, 7, 8, 15, 16, 128, 255]),
    ):
        x, y = (T.tensor(v, dtype=getattr(T, k)) for v, k in zip((xs, ys), kinds))
        a, b = x[:, None].expand(-1, len(ys)).contiguous(), y[None].expand(len(xs), -1).contiguous()
        pairs = [(p, q) for p in x.tolist() for q in y.tolist()]
        try:
            expected = function(a, b)
        except (RuntimeError, NotImplementedError):
            continue
        compare(f"{name} {kinds}", pairs, expected, function(a.cuda(), b.cuda()))
        if kinds[0] == "float32" and name not in NO_SLOPE and function(a.clone().requires_grad_(), b).requires_grad:
            for at in (0, 1):
                compare(f"slope {at} of {name}", pairs, slope(function, at, a, b), slope(function, at, a.cuda(), b.cuda()))


NUMBERS = ("add", "sub", "mul", "div", "pow", "remainder", "fmod", "floor_divide", "lt", "ge", "eq", "clamp_min", "clamp_max")


@pytest.mark.parametrize("name", [*NUMBERS, "bitwise_and", "bitwise_left_shift", "bitwise_right_shift", "xlogy", "copysign"])
def test_numbers_as_operands(name):
    function = call(name)
    for kind, xs, numbers in (
        ("float32", FEW, [0.0, -0.0, 0.5, -0.5, 1, -1.0, 1.5, 2, -2, 3, 4.0, INF, -INF, NAN, 3000000000]),
        ("int32", WHOLE, WIDE),
        ("uint8", [0, 1, 7, 200, 255], [0, 1, -1, 7, 255, 256, 300, -300]),
    ):
        x = T.tensor(xs, dtype=getattr(T, kind))
        for number in numbers:
            try:
                expected = function(x, number)
            except (RuntimeError, NotImplementedError) as error:
                if "ZeroDivisionError" not in str(error):
                    with pytest.raises(type(error)):
                        function(x.cuda(), number)
                continue
            compare(f"{name} {kind} {number}", x.tolist(), expected, function(x.cuda(), number))
        for number in numbers[:4]:  # one on the device, which promotes as a number does
            wide = T.tensor(number)
            try:
                expected = function(x, wide)
            except (RuntimeError, NotImplementedError):
                continue
            compare(f"{name} {kind} 0-d {number}", x.tolist(), expected, function(x.cuda(), wide.cuda()))


def test_powers_that_are_roots():
    x = T.tensor([-INF, -0.0, 0.0, 4.0, INF], device="cuda")
    assert str((x**0.5).tolist()) == "[nan, -0.0, 0.0, 2.0, inf]" and str((x**-0.5).tolist()) == "[nan, -inf, inf, 0.5, 0.0]"


def test_signs_of_zero():
    x = T.tensor([-0.0, 0.0], device="cuda")
    for function in (T.sin, T.relu, T.tan, T.asin, T.sinh, T.erf, T.expm1, T.log1p, F.silu, T.trunc, T.round, lambda x: -(-x)):
        assert str(function(x).tolist()) == "[-0.0, 0.0]"
    y = T.tensor([0.0, -0.0], device="cuda")
    for function in (T.maximum, T.minimum, T.fmax, T.fmin):
        assert str(function(x, y).tolist()) == "[-0.0, 0.0]"
