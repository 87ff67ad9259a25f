"""Kernels over many short lines: every length about a register's, beside plain NumPy in double precision."""

import numpy as np
import pytest

from library import T

LENGTHS = [1, 2, 5, 15, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128, 200]
DTYPES = {"float32": 2e-6, "float64": 1e-13}


def numbers(*shape):
    return np.random.default_rng(0).normal(0, 3, shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 16, 35])
def test_softmax_and_its_gradient(dtype, rows):
    for n in LENGTHS:
        x, g = numbers(rows, n), numbers(rows, n + 1)[:, 1:]
        x[0, n // 2] = -1000.0
        inputs = T.tensor(x).to(getattr(T, dtype)).requires_grad_()
        x = inputs.detach().double().numpy()
        given = T.tensor(np.ascontiguousarray(g)).to(getattr(T, dtype))
        g = given.double().numpy()
        e = np.exp(x - x.max(1, keepdims=True))
        y = e / e.sum(1, keepdims=True)
        found = inputs.softmax(1)
        np.testing.assert_allclose(found.detach().numpy(), y, DTYPES[dtype], DTYPES[dtype])
        (grad,) = T.autograd.grad(found, inputs, given)
        wanted = y * (g - (g * y).sum(1, keepdims=True))
        np.testing.assert_allclose(grad.numpy(), wanted, 10 * DTYPES[dtype], 10 * DTYPES[dtype])
        found = inputs.log_softmax(1)
        wanted = x - x.max(1, keepdims=True) - np.log(e.sum(1, keepdims=True))
        np.testing.assert_allclose(found.detach().numpy(), wanted, DTYPES[dtype], DTYPES[dtype])
        (grad,) = T.autograd.grad(found, inputs, given)
        wanted = g - y * g.sum(1, keepdims=True)
        np.testing.assert_allclose(grad.numpy(), wanted, 10 * DTYPES[dtype], 20 * DTYPES[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_of_special_rows(dtype):
    none, inf = float("-inf"), float("inf")
    for n in LENGTHS[2:]:
        x = T.zeros(4, n, dtype=getattr(T, dtype))
        x[0, 1:], x[1, :], x[2, n - 1], x[3, 0] = none, none, inf, float("nan")
        found = x.softmax(1)
        assert found[0].tolist() == [1.0] + [0.0] * (n - 1)
        assert found[1:, 0].isnan().all() and found[1].isnan().all() and found[3].isnan().all()
        assert found[2, n - 1].isnan()


@pytest.mark.parametrize("scale", [1.0, 1e-14, 1e14])
def test_norms(scale):
    for n in [*LENGTHS, 1000, 5000]:
        x = (numbers(3, n) * scale).astype(np.float32)
        wanted = np.sqrt((x.astype(np.float64) ** 2).sum(1))
        np.testing.assert_allclose(T.tensor(x).norm(dim=1).numpy(), wanted, 3e-7)
    special = T.ones(3, 200)
    special[0, 190], special[1, 3] = float("nan"), float("inf")
    assert str(special.norm(dim=1).tolist()).startswith("[nan, inf, 14.14")


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "complex128"])
def test_small_parts_are_joined(dtype):
    for shape in [(), (1,), (7,), (3, 20), (2, 3, 40)]:
        parts = [numbers(*shape).astype(dtype) for _ in range(5)]
        tensors = [T.tensor(part) for part in parts]
        for dim in range(len(shape) + 1):
            np.testing.assert_array_equal(T.stack(tensors, dim).numpy(), np.stack(parts, dim))
        for dim in range(len(shape)):
            longer = [*parts, np.concatenate(parts[:2], dim)]
            found = T.cat([T.tensor(part) for part in longer], dim)
            np.testing.assert_array_equal(found.numpy(), np.concatenate(longer, dim))
    mixed = T.stack([T.ones(3), T.arange(3)])
    assert mixed.dtype == T.float32 and mixed.tolist() == [[1, 1, 1], [0, 1, 2]]
    assert T.stack([T.ones(2, 3).t(), T.zeros(3, 2)]).stride() == (6, 2, 1)


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("padding", [None, 2])
def test_bags(mode, padding):
    random = np.random.default_rng(1)
    for width in [1, 6, 16, 70, 133]:
        table, index = numbers(9, width).astype(np.float32), random.integers(0, 9, 40)
        offsets = [0, 0, 3, 11, 11, 39, 40]
        found = T.nn.functional.embedding_bag(
            T.tensor(index), T.tensor(table), T.tensor(offsets), mode=mode, padding_idx=padding
        )
        for row, start, end in zip(found.numpy(), offsets, [*offsets[1:], 40]):
            kept = [i for i in index[start:end] if i != padding]
            wanted = table[kept].astype(np.float64).sum(0) / (max(len(kept), 1) if mode == "mean" else 1)
            np.testing.assert_allclose(row, wanted, 1e-5, 1e-5)
    with pytest.raises(RuntimeError, match="9"):
        T.nn.functional.embedding_bag(T.tensor([0, 9]), T.ones(9, 4), T.tensor([0]), mode=mode)


@pytest.mark.parametrize("width", [1, 3, 5, 8, 10, 13, 21])
@pytest.mark.parametrize("dtype", DTYPES)
def test_convolutions_of_short_rows(width, dtype):
    x, w, b = numbers(2, 6, 7, width + 4), numbers(20, 3, 5, 5), numbers(20)
    tensors = [T.tensor(array).to(getattr(T, dtype)) for array in (x, w, b)]
    x, w, b = (tensor.double().numpy() for tensor in tensors)
    windows = np.lib.stride_tricks.sliding_window_view(x, (5, 5), (2, 3)).reshape(2, 2, 3, 3, width, 5, 5)
    wanted = np.einsum("ngchwij,gocij->ngohw", windows, w.reshape(2, 10, 3, 5, 5)).reshape(2, 20, 3, width)
    found = T.nn.functional.conv2d(*tensors, groups=2)
    np.testing.assert_allclose(found.numpy(), wanted + b[:, None, None], 50 * DTYPES[dtype], 50 * DTYPES[dtype])


def test_gather_along_the_last():
    random = np.random.default_rng(2)
    for shape in [(4, 1), (3, 5), (2, 3, 33), (40, 100)]:
        x, index = numbers(*shape), random.integers(0, shape[-1], shape)
        np.testing.assert_array_equal(T.tensor(x).gather(-1, T.tensor(index)).numpy(), np.take_along_axis(x, index, -1))
    with pytest.raises(RuntimeError, match="out of bounds"):
        T.zeros(3, 5).gather(1, T.full((3, 2), -1))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
def test_picked_along_the_last(dtype):
    """Elements of any size, from both ends; one index outside, wherever it stands."""
    for n in [1, 15, 16, 17, 40]:
        x = (10 * numbers(30)).astype(dtype)
        index = np.random.default_rng(3).integers(-30, 30, n)
        np.testing.assert_array_equal(T.tensor(x)[T.tensor(index)].numpy(), x[index])
        for place in {0, n // 2, n - 1}:
            for wrong in (30, -31, 2**62):
                outside = index.copy()
                outside[place] = wrong
                with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
                    T.tensor(x)[T.tensor(outside)]


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex64", "complex128"])
def test_stretched_columns(dtype):
    for n in LENGTHS:
        x, y = numbers(9, 1).astype(dtype), numbers(9, n).astype(dtype)
        np.testing.assert_array_equal(T.tensor(x).expand(9, n).contiguous().numpy(), np.broadcast_to(x, (9, n)))
        np.testing.assert_array_equal((T.tensor(x) * T.tensor(y)).numpy(), x * y)
        np.testing.assert_array_equal(T.full((n,), x[0, 0].item(), dtype=getattr(T, dtype)).numpy(), np.full(n, x[0, 0]))
