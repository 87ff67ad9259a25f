"""Pools beside windows written out: values, places, gradients, and what is refused."""

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from library import T

F = T.nn.functional


def distinct(shape, seed):
    n = math.prod(shape)
    order = random.Random(seed).sample(range(n), n)
    return T.tensor([0.25 * i - 2 for i in order], dtype=T.float64).reshape(tuple(shape))


def sliding(size, kernel, stride, padding, dilation, ceil):
    """The elements that each window meets."""
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (room + (stride - 1 if ceil else 0)) // stride + 1
    if ceil and (count - 1) * stride >= size + padding:
        count -= 1
    whole = [[o * stride - padding + k * dilation for k in range(kernel)] for o in range(count)]
    return [[i for i in window if 0 <= i < size] for window in whole]


def parts(size, count):
    return [list(range(o * size // count, -((o + 1) * size // -count))) for o in range(count)]


def windows(lines):
    """All windows of a plane, as lists of places, in the order of the result."""
    return [list(itertools.product(*axes)) for axes in itertools.product(*lines)]


def check_largest(x, lines, values, indices):
    n = len(lines)
    assert list(values.shape[-n:]) == [len(line) for line in lines]
    sizes = x.shape[-n:]
    for plane, found, places in zip(x.flatten(0, -n - 1), values.flatten(0, -n - 1), indices.flatten(0, -n - 1)):
        for window, value, place in zip(windows(lines), found.flatten().tolist(), places.flatten().tolist()):
            best = max(window, key=lambda at: plane[at].item())
            flat = 0
            for d, i in enumerate(best):
                flat = flat * sizes[d] + i
            assert (plane[best].item(), flat) == (value, place)


@given(st.data())
@settings(max_examples=30)
def test_largest_of_sliding_windows(data):
    n = data.draw(st.integers(1, 3))
    few = st.lists(st.integers(1, 3), min_size=n, max_size=n)
    kernel, stride, more = data.draw(few), data.draw(few), data.draw(few)
    dilation = data.draw(st.lists(st.integers(1, 2), min_size=n, max_size=n))
    padding, ceil = [data.draw(st.integers(0, k // 2)) for k in kernel], data.draw(st.booleans())
    x = distinct((2, *(d * (k - 1) + m for d, k, m in zip(dilation, kernel, more))), data.draw(st.integers(0, 99)))
    values, indices = getattr(F, f"max_pool{n}d")(x, kernel, stride, padding, dilation, ceil, return_indices=True)
    lines = [sliding(*args, ceil) for args in zip(x.shape[1:], kernel, stride, padding, dilation)]
    check_largest(x, lines, values, indices)
    assert T.equal(getattr(F, f"max_pool{n}d")(x, kernel, stride, padding, dilation, ceil), values)


@given(st.data())
@settings(max_examples=30)
def test_means_of_sliding_windows(data):
    n = data.draw(st.integers(1, 3))
    few = st.lists(st.integers(1, 3), min_size=n, max_size=n)
    kernel, stride, more = data.draw(few), data.draw(few), data.draw(few)
    padding, ceil = [data.draw(st.integers(0, k // 2)) for k in kernel], data.draw(st.booleans())
    padded = data.draw(st.booleans())
    divisor = data.draw(st.sampled_from([None, 3])) if n > 1 else None
    x = distinct((2, *(k + m for k, m in zip(kernel, more))), data.draw(st.integers(0, 99))).requires_grad_()
    options = {} if n == 1 else {"divisor_override": divisor}
    y = getattr(F, f"avg_pool{n}d")(x, kernel, stride, padding, ceil, padded, **options)
    lines = [sliding(s, k, by, p, 1, ceil) for s, k, by, p in zip(x.shape[1:], kernel, stride, padding)]
    assert list(y.shape[1:]) == [len(line) for line in lines]
    counts = []
    for d in range(n):
        ends = [min(o * stride[d] + kernel[d], x.shape[d + 1] + 2 * padding[d]) for o in range(len(lines[d]))]
        counts.append([end - o * stride[d] for o, end in enumerate(ends)])
    wanted = T.zeros_like(x).detach()
    for at, window in zip(itertools.product(*(range(len(line)) for line in lines)), windows(lines)):
        by = divisor or (math.prod(counts[d][o] for d, o in enumerate(at)) if padded else len(window))
        assert math.isclose(y[(0, *at)].item(), sum(x[(0, *i)].item() for i in window) / by, abs_tol=1e-12)
        for i in window:
            wanted[(slice(None), *i)] += 1 / by
    y.sum().backward()
    assert T.allclose(x.grad, wanted)


@given(st.data())
@settings(max_examples=20)
def test_nearly_equal_parts(data):
    n = data.draw(st.integers(1, 3))
    few = st.lists(st.integers(1, 5), min_size=n, max_size=n)
    sizes, counts = data.draw(few), data.draw(few)
    x = distinct((2, 1, *sizes), data.draw(st.integers(0, 99)))
    lines = [parts(s, c) for s, c in zip(sizes, counts)]
    values, indices = getattr(F, f"adaptive_max_pool{n}d")(x, counts, return_indices=True)
    check_largest(x, lines, values, indices)
    means = getattr(F, f"adaptive_avg_pool{n}d")(x, counts)
    for found, window in zip(means[0, 0].flatten().tolist(), windows(lines)):
        assert math.isclose(found, sum(x[(0, 0, *i)].item() for i in window) / len(window), abs_tol=1e-12)


def test_sizes_that_stay():
    x = distinct((2, 3, 4, 6), 0)
    assert T.equal(F.adaptive_avg_pool2d(x, (None, 3)), F.adaptive_avg_pool2d(x, (4, 3)))
    assert F.adaptive_max_pool3d(x, (None, None, 2)).shape == (2, 3, 4, 2)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpooling_undoes(n):
    x = distinct((2, 3, *[4] * n), 1)
    values, indices = getattr(F, f"max_pool{n}d")(x, 2, return_indices=True)
    unpool = getattr(F, f"max_unpool{n}d")
    y = unpool(values, indices, 2)
    assert y.shape == x.shape and T.equal(y[y != 0], x[y != 0]) and int((y != 0).sum()) <= values.numel()
    values.requires_grad_()
    weight = distinct(y.shape, 2)
    (g,) = T.autograd.grad((unpool(values, indices, 2) * weight).sum(), values)
    assert T.equal(g.flatten(2), weight.flatten(2).gather(-1, indices.flatten(2)))
    assert unpool(values, indices, 2, output_size=[5] * n).shape == (2, 3, *[5] * n)
    with pytest.raises(ValueError, match="dim 0 must be between"):
        unpool(values, indices, 2, output_size=[50] * n)
    for wrong in (-1, 1000):
        with pytest.raises(RuntimeError, match=f"Found an invalid max index: {wrong} "):
            unpool(values, T.full_like(indices, wrong), 2)


@pytest.mark.parametrize("n", [2, 3])
def test_windows_at_random_places(n):
    x = distinct((2, 3, *[7] * n), 1).requires_grad_()
    pool = getattr(F, f"fractional_max_pool{n}d")
    values, indices = pool(x, 2, output_size=3, return_indices=True)
    assert values.shape == (2, 3, *[3] * n)
    assert T.equal(x.flatten(2).gather(-1, indices.flatten(2)).reshape(values.shape), values)
    # The first window is at the start and the last one at the end, whatever the numbers.
    numbers = T.full((2, 3, n), 0.5, dtype=T.float64)
    fixed = pool(x, 2, output_size=3, _random_samples=numbers)
    assert T.equal(fixed, pool(x, 2, output_size=3, _random_samples=numbers))
    corner = x.detach()[(..., *[slice(5, 7)] * n)].flatten(2).amax(-1)
    assert T.equal(fixed[(..., *[2] * n)], corner)
    (g,) = T.autograd.grad(values.sum(), x)
    assert int(g.sum()) == values.numel()


def test_ties_and_nans():
    x = T.tensor([[[1.0, 1.0, float("nan"), 0.0, float("nan"), 5.0]]])
    values, indices = F.max_pool1d(x, 2, return_indices=True)
    assert indices.tolist() == [[[0, 2, 4]]] and values[0, 0, 0] == 1 and values[0, 0, 1:].isnan().all()
    # A row long enough for whole registers.
    x = T.zeros(1, 1, 4, 200)
    x[..., 77] = float("nan")
    values, indices = F.max_pool2d(x, (2, 3), 1, return_indices=True)
    assert int(values.isnan().sum()) == 9 and set(indices[values.isnan()].tolist()) == {277, 477, 677}


@pytest.mark.parametrize("size", [15, 16, 64, 70])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_long_rows(size, stride):
    x = distinct((1, 2, 5, size), 3).float()
    values, indices = F.max_pool2d(x, 3, stride, 1, return_indices=True)
    lines = [sliding(5, 3, stride, 1, 1, False), sliding(size, 3, stride, 1, 1, False)]
    check_largest(x[0], lines, values[0], indices[0])
    means = F.avg_pool2d(x, 3, stride, 1)
    for found, window in zip(means[0, 0].flatten().tolist(), windows(lines)):
        assert math.isclose(found, sum(x[(0, 0, *i)].item() for i in window) / 9, rel_tol=1e-5, abs_tol=1e-4)


def test_whole_numbers():
    x = T.arange(8).reshape(1, 2, 4)
    for dtype in (T.int64, T.int32, T.uint8):
        assert F.max_pool2d(x.to(dtype)[None], 2, return_indices=True)[0].tolist() == [[[[5, 7]]]]
    assert F.avg_pool1d(x, 2).tolist() == [[[0, 2], [4, 6]]]
    with pytest.raises(NotImplementedError, match="\"avg_pool2d\" not implemented for 'Int'"):
        F.avg_pool1d(x.int(), 2)
    with pytest.raises(NotImplementedError, match="\"max_pool2d\" not implemented for 'Bool'"):
        F.max_pool2d(x.bool()[None], 2)


def test_channels_stay_last():
    x = distinct((2, 4, 6, 6), 0).to(memory_format=T.channels_last)
    for pool in (F.max_pool2d, F.avg_pool2d, F.adaptive_avg_pool2d, F.adaptive_max_pool2d):
        y = pool(x, 2)
        assert y.is_contiguous(memory_format=T.channels_last) and T.allclose(y, pool(x.contiguous(), 2))


NODES = [
    (lambda x: F.max_pool2d(x, 2), "MaxPool2DWithIndicesBackward0"),
    (lambda x: F.avg_pool2d(x, 2), "AvgPool2DBackward0"),
    (lambda x: F.adaptive_avg_pool2d(x, 2), "AdaptiveAvgPool2DBackward0"),
    (lambda x: F.adaptive_avg_pool2d(x, 1), "MeanBackward1"),
    (lambda x: F.adaptive_max_pool2d(x, 2), "AdaptiveMaxPool2DBackward0"),
    (lambda x: F.fractional_max_pool2d(x, 2, 2), "FractionalMaxPool2DBackward0"),
    (lambda x: F.max_pool3d(x, 2), "MaxPool3DWithIndicesBackward0"),
    (lambda x: F.unfold(x, 2), "Im2ColBackward0"),
    (lambda x: F.fold(F.unfold(x, 2), (4, 4), 2), "Col2ImBackward0"),
]


@pytest.mark.parametrize("call, node", NODES, ids=[node for _, node in NODES])
def test_nodes(call, node):
    x = distinct((2, 3, 4, 4), 0).requires_grad_()
    y = call(x)
    assert type(y.grad_fn).__name__ == node
    # What a gradient is made of counts as moved by the input, though its slope is zero.
    (g,) = T.autograd.grad((y * 1).sum(), x, create_graph=True)
    if "Pool" in node:
        assert type(g.grad_fn).__name__ == node.replace("Backward0", "BackwardBackward0")
        assert not T.autograd.grad(g.sum(), x)[0].any()


def test_columns_and_back():
    x = distinct((2, 3, 5, 6), 0)
    columns = F.unfold(x, (2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2))
    padded = F.pad(x, (0, 0, 1, 1))
    assert columns.shape == (2, 18, 5 * 2)
    for o, i in itertools.product(range(5), range(2)):
        block = padded[:, :, o : o + 3 : 2, 2 * i : 2 * i + 3].reshape(2, -1)
        assert T.equal(columns[:, :, o * 2 + i], block)
    ones = F.fold(F.unfold(T.ones_like(x), 2), (5, 6), 2)
    assert ones[0, 0].tolist() == [[a * b for b in (1, 2, 2, 2, 2, 1)] for a in (1, 2, 2, 2, 1)]


def plane(*shape):
    return T.zeros(*shape)


ERRORS = [
    (lambda: F.max_pool2d(plane(1, 3, 8, 8), 0), "stride should not be zero"),
    (lambda: F.max_pool2d(plane(1, 3, 8, 8), 2, padding=2), "pad should be at most half of effective kernel size, but got pad=2, kernel_size=2 and dilation=1"),
    (lambda: F.max_pool2d(plane(1, 3, 8, 8), 20), "Given input size: (3x8x8). Calculated output size: (3x0x0). Output size is too small"),
    (lambda: F.max_pool2d(plane(1, 3, 8, 8), (2, 2, 2)), "max_pool2d: kernel_size must either be a single int, or a tuple of two ints"),
    (lambda: F.max_pool1d(plane(3, 8), 2, padding=2), "max_pool1d() padding should be at most half of kernel size, but got padding=2 and kernel_size=2"),
    (lambda: F.max_pool3d(plane(3, 8), 2), "non-empty 4D or 5D (batch mode) tensor expected for input"),
    (lambda: F.avg_pool2d(plane(1, 3, 8, 8), 2, divisor_override=0), "divisor must be not zero"),
    (lambda: F.avg_pool3d(plane(1, 3, 6, 6, 6), 20), "input image (T: 6 H: 6 W: 6) smaller than kernel size (kT: 20 kH: 20 kW: 20)"),
    (lambda: F.adaptive_avg_pool2d(plane(1, 3, 8, 8), -1), "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but received {-1, -1}"),
    (lambda: F.adaptive_max_pool2d(plane(8, 8), 2), "adaptive_max_pool2d(): Expected 3D or 4D tensor, but got: [8, 8]"),
    (lambda: F.fractional_max_pool2d(plane(1, 3, 8, 8), 2, output_size=8), "fractional_max_pool2d(): pool height 2 too large relative to input height 8"),
    (lambda: F.fractional_max_pool2d(plane(1, 3, 8, 8), (2,), 2), "fractional_max_pool2d: kernel_size must either be a single Int or tuple of Ints"),
    (lambda: F.fractional_max_pool3d(plane(3, 8, 8, 8), 2, (2, 2)), "fractional_max_pool3d: output_size must either be a single Int or tuple of three Ints"),
    (lambda: F.fractional_max_pool2d(plane(1, 3, 8, 8), 0, 2), "fractional_max_pool2d(): kernel size should be greater than zero, but got 0x0"),
    (lambda: F.fractional_max_pool2d(plane(1, 0, 8, 8), 2, 2), "fractional_max_pool2d(): Expected input to have non-zero size for non-batch dimensions, but got[1, 0, 8, 8] with dimension 1 being empty."),
    (lambda: F.fractional_max_pool2d(plane(1, 3, 8, 8), 2, -1), "Trying to create tensor with negative dimension -1: [1, 3, -1, -1]"),
    (lambda: F.adaptive_max_pool2d(plane(1, 0, 8, 8), 2), "adaptive_max_pool2d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes [1, 0, 8, 8] with dimension 1 being empty"),
    (lambda: F.adaptive_avg_pool3d(plane(1, 0, 8, 8, 8), 2), "adaptive_avg_pool3d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes [1, 0, 8, 8, 8] with dimension 1 being empty"),
    (lambda: F.unfold(plane(1, 3, 8, 8), 20), "Given input with spatial size (8, 8), kernel_size=(20, 20), dilation=(1, 1), padding=(0, 0), calculated shape of the array of sliding blocks as (-11, -11), but its components must be at least one."),
    (lambda: F.fold(plane(2, 5, 49), (8, 8), 2), "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)=5 and kernel_size=(2, 2)."),
]  # fmt: skip


@pytest.mark.parametrize("call, words", ERRORS, ids=[words[:40] for _, words in ERRORS])
def test_refusals(call, words):
    with pytest.raises(RuntimeError) as raised:
        call()
    assert words in str(raised.value)


@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_parts_without_windows_send_nothing_back(n, kind):
    pool, x = getattr(F, f"adaptive_{kind}_pool{n}d"), T.zeros(2, 3, *[4] * n, requires_grad=True)
    none = pool(x, 0)
    assert none.shape == (2, 3, *[0] * n)
    with pytest.raises(
        RuntimeError, match=rf"^adaptive_{kind}_pool{max(n, 2)}d_backward\(\): Expected grad_output to have non-ze"
    ):
        none.sum().backward()
    # A batch of none is no matter.
    pool(x[:0], 2).sum().backward()
    assert not x.grad.any()


def test_no_windows_at_random_places():
    assert F.fractional_max_pool2d(plane(2, 3, 8, 8), 2, (0, 1)).shape == (2, 3, 0, 1)
    assert F.fractional_max_pool3d(plane(3, 8, 8, 8), 2, 0, return_indices=True)[1].shape == (3, 0, 0, 0)


def test_channels_of_space_without_samples_stay_last():
    x = distinct((2, 3, 4, 4, 4), 0).to(memory_format=T.channels_last_3d)[0].requires_grad_()
    values = F.max_pool3d(x, 2)
    assert values.stride() == (1, 12, 6, 3) and T.equal(values, F.max_pool3d(x.detach().contiguous(), 2))
    (g,) = T.autograd.grad(values, x, T.ones_like(values))
    assert g.stride() == x.stride() and g.sum() == values.numel()


@pytest.mark.parametrize("dtype", [T.float32, T.float64, T.bfloat16])
@pytest.mark.parametrize("options", [(2,), (2, 1), (2, 2, 1), (3, 2, 1, 1, True), (3, 1, 1, 2), (5, 5, 2, 3, True), (1, 3)])
@pytest.mark.parametrize("size", [7, 64, 257])
def test_pools_of_lines_without_places_are_those_with(size, options, dtype):
    T.manual_seed(size)
    x = T.randn(2, 3, 2 * size).to(dtype)[:, :, ::2]
    x[0, 0, 3], x[1, 2, -1] = math.nan, -math.inf
    with_places = F.max_pool1d(x.clone().requires_grad_(), *options)
    assert with_places.requires_grad
    T.testing.assert_close(F.max_pool1d(x, *options), with_places.detach(), rtol=0, atol=0, equal_nan=True)
