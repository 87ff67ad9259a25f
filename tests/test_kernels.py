"""Kernels with several ways to one result: by layout, by size, and by what the numbers are."""

import itertools
import math

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
