"""Kernels with several ways to one result: by layout, by size, and by what the numbers are."""

import itertools
import math
import operator
import time

import numpy as np
import pytest

from library import T

SIZES = [3, 20, 511, 513, 70_000]


def same(found, wanted):
    """Bit by bit, but for what kind of NaN it is."""
    found, wanted = found.numpy(), np.asarray(wanted)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    if wanted.dtype.kind == "f":
        kept = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found)[kept], np.signbit(wanted)[kept])


def layouts(array):
    """The same numbers: dense, transposed, with gaps between columns, with gaps between rows."""
    rows, cols = array.shape
    yield T.tensor(array)
    yield T.tensor(np.ascontiguousarray(array.T)).t()
    spread = np.zeros((rows, 2 * cols), array.dtype)
    spread[:, ::2] = array
    yield T.tensor(spread)[:, ::2]
    padded = np.zeros((rows, cols + 7), array.dtype)
    padded[:, :cols] = array
    yield T.tensor(padded)[:, :cols]


@pytest.mark.parametrize("shape", [(3, 5), (40, 17), (33, 70), (300, 20), (257, 511)])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float32", "float64", "complex64"])
def test_operands_across_each_other(shape, dtype):
    draw = np.random.default_rng(0)
    a, b = (draw.integers(0, 90, shape).astype(dtype) for _ in range(2))
    for x, y in itertools.product(layouts(a), layouts(b)):
        same(x + y, a + b)
        same(x * 2, a * np.array(2, dtype))
        out = T.zeros(shape[::-1], dtype=x.dtype).t()
        T.sub(x, y, out=out)
        same(out, a - b)
        written = x.clone()
        written.add_(y)
        same(written, a + b)
        same(x.contiguous(), a)


def exact_remainders(a, b):
    return np.array([math.fmod(p, q) for p, q in zip(a.tolist(), b.tolist(), strict=True)], a.dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("far", [False, True])
def test_remainders_of_floats(dtype, size, far):
    draw = np.random.default_rng(size)
    a, b = (draw.normal(size=size).astype(dtype) for _ in range(2))
    if far:
        a[:: size // 2] *= dtype_of(dtype)(1e30)
        b[1 :: size // 2] = np.inf
    same(T.fmod(T.tensor(a), T.tensor(b)), exact_remainders(a, b))
    rest = (T.tensor(a) % T.tensor(b)).numpy()
    wanted = exact_remainders(a, b)
    turned = (wanted != 0) & ((wanted < 0) != (b < 0))
    np.testing.assert_array_equal(rest, np.where(turned, wanted + b, wanted))


def dtype_of(name):
    return np.dtype(name).type


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("far", [False, True])
def test_quotients_of_integers(dtype, size, far):
    draw, most = np.random.default_rng(size), np.iinfo(dtype)
    low, high = (most.min + 1, most.max) if far else (max(most.min + 1, -100), 100)
    a, b = (draw.integers(low, high, size, dtype=dtype) for _ in range(2))
    b[b == 0] = 7
    x, y = T.tensor(a), T.tensor(b)
    same(x // y, a // b)
    same(x % y, a % b)
    same(T.fmod(x, y), np.fmod(a, b))
    same(T.div(x, y, rounding_mode="trunc"), (a - np.fmod(a, b)) // b)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("largest", [1.0, 1e5, 1e9, 1e300])
def test_angles_of_double_precision(name, largest):
    x = np.random.default_rng(1).uniform(-largest, largest, 3000)
    x[0] = largest
    found = getattr(T.tensor(x), name)().numpy()
    wanted = np.array([getattr(math, name)(v) for v in x.tolist()])
    assert (np.abs(found - wanted) <= 2 * np.spacing(np.abs(wanted))).all()


@pytest.mark.parametrize("size", SIZES)
def test_powers_of_double_precision(size):
    draw = np.random.default_rng(size)
    a, b = draw.uniform(0.01, 30, size), draw.uniform(-90, 90, size)
    found = (T.tensor(a) ** T.tensor(b)).numpy()
    wanted = np.array([p**q for p, q in zip(a.tolist(), b.tolist(), strict=True)])
    assert (np.abs(found - wanted) <= 2 * np.spacing(wanted)).all()


@pytest.mark.parametrize("shape", [(7,), (70_000,), (9, 1000), (1000, 9), (300, 300), (5, 3, 70)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_running_sums_are_added_in_order(shape, dtype):
    x = (np.random.default_rng(0).normal(size=shape) * 9).astype(dtype)
    for x, y in [(x, T.tensor(x)), (x.T, T.tensor(x).permute(*range(len(shape))[::-1]))]:
        for dim in range(len(shape)):
            wide = np.cumsum(x.astype("float64") if dtype != "int64" else x, dim)
            same(y.cumsum(dim), wide.astype(dtype))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64", "complex128"])
def test_reversed_views(dtype):
    x = np.arange(5 * 70 * 33).reshape(5, 70, 33).astype(dtype)
    for order in itertools.permutations(range(3)):
        a, y = x.transpose(order), T.tensor(x).permute(*order)
        for dims in [(0,), (1,), (2,), (0, 2), (0, 1, 2), ()]:
            same(y.flip(dims), np.flip(a, dims))


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 1000, 100_001])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_even_steps_meet_both_ends(steps, dtype):
    found = T.linspace(-0.7, 3.1, steps, dtype=getattr(T, dtype)).numpy()
    number = dtype_of(dtype)
    assert len(found) == steps
    if steps > 1:
        assert (found[0], found[-1]) == (number(-0.7), number(3.1))
        assert (np.diff(found) > 0).all()
    np.testing.assert_allclose(found, np.linspace(-0.7, 3.1, steps), rtol=4 * np.finfo(number).eps, atol=1e-6)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_that_need_no_logarithm(size, dtype):
    x = np.random.default_rng(0).random(size).astype(dtype) + np.array(0.25, dtype)
    power = {3: x * x * x, 0.5: np.sqrt(x), -0.5: 1 / np.sqrt(x), -1: 1 / x, -2: 1 / (x * x)}
    slope = {4: 4 * (x * x * x), 3: 3 * (x * x), 1.5: np.sqrt(x) * np.array(1.5, dtype), -1: -1 / (x * x)}
    for exponent, wanted in power.items():
        np.testing.assert_allclose((T.tensor(x) ** exponent).numpy(), wanted, rtol=1e-15 if dtype == "float64" else 3e-7)
    for exponent, wanted in slope.items():
        t = T.tensor(x, requires_grad=True)
        (t**exponent).sum().backward()
        np.testing.assert_allclose(t.grad.numpy(), wanted, rtol=1e-15 if dtype == "float64" else 3e-7)


def test_powers_where_roots_end():
    inf, nan = math.inf, math.nan
    x = T.tensor([0.0, -0.0, -1.0, inf, -inf, nan])
    same(x**0.5, np.array([0.0, -0.0, nan, inf, nan, nan], "float32"))
    same(x**-1, np.array([inf, -inf, -1.0, 0.0, -0.0, nan], "float32"))
    same(x**3, np.array([0.0, -0.0, -1.0, inf, -inf, nan], "float32"))
    same(T.tensor([2, -3]) ** 3, np.array([8, -27]))


@pytest.mark.parametrize("size", [*SIZES, 0, 1, 8, 15])
def test_logic_of_truth_values_and_bits(size):
    draw = np.random.default_rng(0)
    for dtype in ("bool", "uint8", "int32"):
        a, b = (draw.integers(0, 2 if dtype == "bool" else 200, size).astype(dtype) for _ in range(2))
        x, y = T.tensor(a), T.tensor(b)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor"):
            same(getattr(T, name)(x, y), getattr(np, name)(a, b))
        same(~x, ~a)
        same(x.logical_not(), np.logical_not(a))
        same(x[1:] & y[1:], a[1:] & b[1:])
        written = x.clone()
        written &= y
        written ^= True if dtype == "bool" else 3
        same(written, (a & b) ^ np.array(True if dtype == "bool" else 3, dtype))


@pytest.mark.parametrize("shape", [(1, 1), (3, 10), (5, 63), (4, 200), (70, 513), (2, 5000), (1000, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
def test_folds_of_rows_of_any_length(shape, dtype):
    a = np.random.default_rng(0).integers(-50, 50, shape).astype(dtype)
    if dtype == "complex64":
        a = a + a[::-1] * 1j
    x = T.tensor(a)
    for dim in (0, 1):
        same(x.sum(dim), a.sum(dim))
        same(x.all(dim), a.all(dim))
        same(x.any(dim), a.any(dim))
        same(T.real(x).sign().prod(dim), np.sign(a.real).prod(dim))
        if dtype != "complex64":
            same(x.max(dim).values, a.max(dim))
            for ours, theirs in (("amax", "max"), ("amin", "min"), ("argmax", "argmax"), ("argmin", "argmin")):
                same(getattr(x, ours)(dim), getattr(a, theirs)(dim))
    if dtype.startswith("float"):
        for row, col in itertools.product((0, shape[0] - 1), (0, shape[1] // 2, shape[1] - 1)):
            spoiled = x.clone()
            spoiled[row, col] = math.nan
            assert spoiled.amax(1).isnan().nonzero().tolist() == [[row]]
            assert spoiled.amin(0).isnan().nonzero().tolist() == [[col]]
            assert spoiled[row].argmax().item() == col and math.isnan(spoiled.max().item())


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_change_their_width(dtype):
    a = np.array([1 + 2j, math.inf - 1j, complex(math.nan, 3), 1e-40 + 0j] * 300, dtype)
    for other, part in (("complex64", "float32"), ("complex128", "float64")):
        same(T.view_as_real(T.tensor(a).to(getattr(T, other))), a.astype(other).view(part).reshape(-1, 2))
        across = T.tensor(a).reshape(30, 40).t()
        same(across.to(getattr(T, other)).imag, a.reshape(30, 40).T.imag.astype(part))


@pytest.mark.parametrize("size", [1, 7, 8, 9, 1000, 70_001])
def test_halves_and_singles(size):
    every = np.resize(np.arange(65536, dtype=np.uint16), size).view(np.float16)
    wide = T.tensor(every).float()
    with np.errstate(all="ignore"):
        same(wide, every.astype(np.float32))
        between = np.resize(np.linspace(-70000, 70000, 7919, dtype=np.float32) * np.float32(1.0001), size)
        same(T.tensor(between).half(), between.astype(np.float16))


@pytest.mark.parametrize("dtype", ["uint8", "float32", "int64", "complex64"])
def test_index_writes_in_place_are_those_out_of_place(dtype):
    draw = np.random.default_rng(0)
    shape = (70, 90)
    t, s = (T.tensor(draw.integers(0, 9, shape).astype(dtype)) for _ in range(2))
    index, line = T.tensor(draw.integers(0, 70, shape)), T.tensor(draw.permutation(70))
    for dim in (0, 1):
        writes = [
            ("scatter", (dim, index, s)),
            ("scatter", (dim, index, 3)),
            ("scatter_add", (dim, index, s)),
            ("index_add", (dim, line, s.narrow(dim, 0, 70))),
            ("index_copy", (dim, line, s.narrow(dim, 0, 70))),
            ("index_fill", (dim, line[:5], 4)),
        ]
        for name, args in writes:
            for target in (t.clone(), t.t().contiguous().t(), t.repeat(1, 2)[:, ::2]):
                wanted = getattr(target, name)(*args)
                version, kept = target._version, target.data_ptr()
                assert getattr(target, name + "_")(*args) is target
                assert target.data_ptr() == kept and target._version == version + 1
                same(target.contiguous(), wanted.contiguous().numpy())


@pytest.mark.gradiron  # PyTorch has written some by then.
def test_an_index_out_of_bounds_leaves_the_target_as_it_was():
    t, wrong = T.zeros(4, 5), T.tensor([[0, 1], [9, 2]])
    for write in (
        lambda: t.scatter_(0, wrong, T.ones(2, 2)),
        lambda: t.scatter_(0, wrong, 1.0),
        lambda: t.scatter_add_(1, wrong, T.ones(2, 2)),
        lambda: t.index_add_(0, wrong[1], T.ones(2, 5)),
        lambda: t.index_copy_(0, wrong[1], T.ones(2, 5)),
        lambda: t.index_fill_(1, wrong[1], 1.0),
    ):
        with pytest.raises((RuntimeError, IndexError)):
            write()
        assert t.count_nonzero() == 0


@pytest.mark.parametrize("shape", [(3, 4), (300, 400)])
def test_picks_check_their_indices(shape):
    x = T.arange(math.prod(shape)).reshape(shape)
    index = T.arange(shape[1] - 1, -1, -1).repeat(shape[0], 1)
    same(x.gather(1, index), x.numpy()[:, ::-1])
    for wrong in (shape[1], -1):
        index[-1, -1] = wrong
        with pytest.raises(RuntimeError, match=f"index {wrong} is out of bounds for dimension 1 with size {shape[1]}"):
            x.gather(1, index)


def test_softmax_of_what_lies_across():
    x = T.randn(60, 70, dtype=T.float64)
    for dim in (0, 1):
        for f in (T.softmax, T.log_softmax):
            same(f(x.t(), dim), f(x.t().contiguous(), dim).numpy())
            same(f(x[:, ::2], dim), f(x[:, ::2].contiguous(), dim).numpy())


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64"])
def test_products_of_integers_wrap(dtype):
    draw = np.random.default_rng(0)
    a, b = (draw.integers(-3000, 3000, shape).astype(dtype) for shape in ((40, 300), (300, 270)))
    same(T.tensor(a) @ T.tensor(b), a @ b)
    same(T.tensor(b).t() @ T.tensor(a).t(), b.T @ a.T)


@pytest.mark.parametrize("count", [1, 7, 1000, 70_000])
def test_ranges_are_counted(count):
    same(T.arange(count), np.arange(count))
    same(T.arange(5, 5 + 3 * count, 3), np.arange(5, 5 + 3 * count, 3))
    same(T.arange(count, 0, -1), np.arange(count, 0, -1))
    for dtype in ("float32", "float64"):
        step = 0.1 * np.arange(count, dtype="float64") + 2.5
        found = T.arange(2.5, 2.5 + 0.1 * count - 0.01, 0.1, dtype=getattr(T, dtype))
        np.testing.assert_allclose(found.numpy(), step, rtol=2e-7 if dtype == "float32" else 1e-15)


@pytest.mark.parametrize("size", [0, 1, *SIZES])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32"])
def test_narrow_integers_wrap_and_compare_as_they_are(size, dtype):
    draw, limits = np.random.default_rng(3), np.iinfo(dtype)
    a, b = (draw.integers(limits.min, limits.max, 2 * size, dtype, endpoint=True) for _ in range(2))
    for step in (1, 2):
        p, q = a[: size * step : step], b[: size * step : step]
        x, y = T.tensor(a)[: size * step : step], T.tensor(b)[: size * step : step]
        same(x + y, p + q)
        same(x - y, p - q)
        same(x * y, p * q)
        same(3 - x, np.array(3, dtype) - p)
        same(T.maximum(x, y), np.maximum(p, q))
        same(T.minimum(x, y), np.minimum(p, q))
        for compare in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
            same(compare(x, y), compare(p, q))
            same(compare(x, 7), compare(p, 7))
        same(x.clone().add_(y).mul_(5), ((p + q) * np.array(5, dtype)).astype(dtype))
        same(x + y.to(T.int64), p.astype("int64") + q)
        same(x.to(T.int64).add_(y), p.astype("int64") + q)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_activations_in_place(size, dtype):
    values = np.random.default_rng(4).normal(size=size).astype(dtype)
    values[::7] = np.nan
    for write, wanted in [
        (lambda x: x.relu_(), np.where(values < 0, 0, values)),
        (lambda x: x.abs_(), np.abs(values)),
        (lambda x: x.clamp_(-0.5, 0.5), np.clip(values, -0.5, 0.5)),
        (lambda x: x.clamp_(min=-0.5), np.maximum(values, -0.5)),
        (lambda x: x.clamp_(max=0.5), np.minimum(values, 0.5)),
        (lambda x: x.div_(x), values / values),
        (lambda x: x.div_(3.0), values / np.array(3, dtype)),
    ]:
        for x in (T.tensor(values), T.tensor(np.stack([values, values]).T.copy())[:, 1]):
            alias, version = x.view_as(x), x._version
            assert write(x) is x and x._version == version + 1
            same(alias, wanted.astype(dtype))


@pytest.mark.parametrize("size", [1, 31, 32, 33, 200, 70_001])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_extremes_of_rows(size, dtype):
    values = np.random.default_rng(5).normal(size=(4, size)) * 1000
    values = values.astype(dtype)
    if dtype.startswith("float"):
        values[0, size // 2], values[1, -1], values[2, 0] = np.nan, np.inf, -np.inf
    for x in layouts(values):
        same(x.amax(1), values.max(1))
        same(x.amin(1), values.min(1))
        same(x[3].max(), values[3].max())
        same(T.stack([x.amin(), x.amax()]), np.stack([values.min(), values.max()]))
        same(x.max(1).indices, values.argmax(1))


def test_reductions_of_nothing_are_as_fast_as_filling(device):
    x = T.ones(3, 0, 2, device=device)
    for name, of_nothing in (("sum", 0.0), ("prod", 1.0), ("any", False), ("all", True)):
        assert getattr(T, name)(x, 1).tolist() == [[of_nothing] * 2] * 3
    assert T.norm(x, 2, 1).tolist() == [[0.0, 0.0]] * 3
    assert x.mean(1).isnan().all() and x.mean().isnan() and x.sum().item() == 0.0 and x.mean(0).shape == (0, 2)
    many = T.zeros(2**24, 0, device=device)
    start = time.perf_counter()
    assert many.any(1).shape == many.sum(1, dtype=T.int32).shape == (2**24,)
    assert time.perf_counter() - start < 5
