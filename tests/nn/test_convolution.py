"""Convolutions beside sums written out, and what they say about arguments that do not fit."""

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from library import IS_GRADIRON, T, assert_values

F = T.nn.functional


def values(shape, seed):
    r = random.Random(seed)
    return T.tensor([r.uniform(-1, 1) for _ in range(math.prod(shape))], dtype=T.float64).reshape(tuple(shape))


def by_hand(x, w, b, stride, padding, dilation, groups):
    """Every element of the result, one tap after the other."""
    n, kernel = x.dim() - 2, w.shape[2:]
    sizes = [(x.shape[d + 2] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) // stride[d] + 1 for d in range(n)]
    out = T.zeros(x.shape[0], w.shape[0], *sizes, dtype=x.dtype)
    share, outputs = w.shape[1], w.shape[0] // groups
    for place in itertools.product(*(range(s) for s in sizes)):
        for tap in itertools.product(*(range(k) for k in kernel)):
            at = [place[d] * stride[d] + tap[d] * dilation[d] - padding[d] for d in range(n)]
            if all(0 <= i < size for i, size in zip(at, x.shape[2:])):
                for o in range(w.shape[0]):
                    first = o // outputs * share
                    taken = x[(slice(None), slice(first, first + share), *at)]
                    out[(slice(None), o, *place)] += (taken * w[(o, slice(None), *tap)]).sum(1)
    return out if b is None else out + b.reshape(-1, *[1] * n)


@given(st.data())
@settings(max_examples=30)
def test_sums_by_hand(data):
    dims = data.draw(st.integers(1, 3))
    few = st.lists(st.integers(1, 2), min_size=dims, max_size=dims)
    kernel, stride, dilation, padding = (data.draw(few) for _ in range(4))
    groups, seed = data.draw(st.integers(1, 2)), data.draw(st.integers(0, 999))
    x = values((2, 2 * groups, *(k + 3 for k in kernel)), seed)
    w, b = values((3 * groups, 2, *kernel), seed + 1), values((3 * groups,), seed + 2)
    b = b if data.draw(st.booleans()) else None
    found = getattr(F, f"conv{dims}d")(x, w, b, stride, padding, dilation, groups)
    wanted = by_hand(x, w, b, stride, padding, dilation, groups)
    assert found.shape == wanted.shape and T.allclose(found, wanted)
    # The transpose is the adjoint: what it does to weights is what the convolution's gradient does.
    y = values(found.shape, seed + 3)
    sizes = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in zip(y.shape[2:], stride, padding, dilation, kernel)]
    more = [a - b for a, b in zip(x.shape[2:], sizes)]
    back = getattr(F, f"conv_transpose{dims}d")(y, w, None, stride, padding, more, groups, dilation)
    plain = found if b is None else found - b.reshape(-1, *[1] * dims)
    assert math.isclose((plain * y).sum().item(), (x * back).sum().item(), abs_tol=1e-9)


def by_taps(x, w, b, stride, padding, dilation, groups):
    """The sum over the taps of what each adds to all positions."""
    padded = F.pad(x, [p for p in reversed(padding) for _ in range(2)]).unflatten(1, (groups, -1))
    weight, total = w.unflatten(0, (groups, -1)), 0
    lasts = [size + 2 * p - d * (k - 1) for size, p, d, k in zip(x.shape[2:], padding, dilation, w.shape[2:])]
    for tap in itertools.product(*(range(k) for k in w.shape[2:])):
        met = padded[(..., *(slice(t * d, t * d + last, s) for t, d, last, s in zip(tap, dilation, lasts, stride)))]
        total = total + T.einsum("ngi...,goi->ngo...", met, weight[(..., *tap)])
    return total.flatten(1, 2) + b.reshape(-1, *[1] * (x.dim() - 2))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_sizes(data):
    """Few and many channels in and out, with gradients, whatever the strides of what is given."""
    dims = data.draw(st.integers(1, 3))
    kernel, stride, dilation = (data.draw(st.lists(st.integers(1, 3), min_size=dims, max_size=dims)) for _ in range(3))
    padding = data.draw(st.lists(st.integers(0, 3), min_size=dims, max_size=dims))
    spare = data.draw(st.lists(st.integers(0, 12 if dims < 3 else 4), min_size=dims, max_size=dims))
    size = [max(d * (k - 1) + 1 - 2 * p, 1) + more for k, d, p, more in zip(kernel, dilation, padding, spare)]
    groups, n = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    inputs, outputs = (data.draw(st.sampled_from([1, 2, 7, 8, 9, 16, 18, 33, 70])) for _ in range(2))
    dtype = data.draw(st.sampled_from([T.float32, T.float64]))
    shapes = ((n, groups * inputs, *size), (groups * outputs, inputs, *kernel), (groups * outputs,))
    operands = [T.rand(shape, dtype=dtype) - 0.5 for shape in shapes]
    turned = data.draw(st.sampled_from([[1, 0], [0, *range(2, dims + 2), 1], list(range(dims + 2))]))
    turned += range(len(turned), dims + 2)
    back = [turned.index(d) for d in range(dims + 2)]
    operands[:2] = [t.permute(turned).contiguous().permute(back) for t in operands[:2]]
    operands = [t.requires_grad_() for t in operands]
    found = getattr(F, f"conv{dims}d")(*operands, stride, padding, dilation, groups)
    wanted = by_taps(*operands, stride, padding, dilation, groups)
    g = (T.rand(found.shape, dtype=dtype) - 0.5).permute(turned).contiguous().permute(back)
    close = {"atol": 1e-3, "rtol": 1e-4} if dtype == T.float32 else {"atol": 1e-10}
    assert T.allclose(found, wanted, **close)
    for one, other in zip(T.autograd.grad(found, operands, g), T.autograd.grad(wanted, operands, g)):
        assert T.allclose(one, other, **close)


BIG = [
    (5, 1, 8, 340, 3, 1, 1),
    (3, 9, 8, 5, 1, 1, 0),
    (2, 16, 24, (3, 7), 1, 2, 0),
    (2, 130, 128, 4, 3, 1, 1),
    (2, 16, 40, 9, 3, 2, 1),
    (9, 8, 70, 8, 3, 1, 1),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n, inputs, outputs, size, kernel, stride, padding", BIG)
def test_columns_met_by_weights(n, inputs, outputs, size, kernel, stride, padding, dtype):
    """Sizes at which kernels take other ways: one element for a window, weights beyond the cache, many outputs."""
    size = (size, size) if isinstance(size, int) else size
    shapes = ((n, inputs, *size), (outputs, inputs, kernel, kernel), (outputs,))
    x, w, b = (T.rand(shape, dtype=getattr(T, dtype)) - 0.5 for shape in shapes)
    operands = [t.requires_grad_() for t in (x, w, b)]
    found = F.conv2d(*operands, stride, padding)
    columns = F.unfold(x, kernel, padding=padding, stride=stride)
    wanted = (w.flatten(1) @ columns + b[:, None]).reshape(found.shape)
    weight = T.rand(found.shape, dtype=x.dtype) - 0.5
    pairs = zip([found, *T.autograd.grad(found, operands, weight)], [wanted, *T.autograd.grad(wanted, operands, weight)])
    room = 1e-3 if dtype == "float32" else 1e-10
    for a, e in pairs:
        assert T.allclose(a, e, rtol=room, atol=room)


@pytest.mark.parametrize("kernel", [1, 2, 3, 4])
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_same_keeps_the_size(kernel):
    x, w = values((2, 2, 7), 0), values((3, 2, kernel), 1)
    y = F.conv1d(x, w, padding="same", dilation=2)
    left = kernel - 1
    wanted = F.conv1d(F.pad(x, (left, 2 * (kernel - 1) - left)), w, dilation=2)
    assert y.shape == (2, 3, 7) and T.allclose(y, wanted)
    assert T.allclose(F.conv1d(x, w, padding="valid"), F.conv1d(x, w))


def test_even_kernels_are_padded_at_the_end():
    x, w = values((1, 1, 5), 0).requires_grad_(), T.ones(1, 1, 2, dtype=T.float64)
    with pytest.warns(UserWarning, match="Using padding='same' with even kernel lengths and odd dilation may require"):
        y = F.conv1d(x, w, padding="same")
    assert type(y.grad_fn.next_functions[0][0]).__name__ == "SqueezeBackward1" or y.shape == x.shape
    assert T.allclose(y, x + F.pad(x, (0, 1))[..., 1:])


def test_one_sample_and_none():
    x, w = values((2, 3, 6, 6), 0), values((4, 3, 3, 3), 1)
    assert T.equal(F.conv2d(x[1], w), F.conv2d(x, w)[1])
    assert F.conv2d(x[:0], w).shape == (0, 4, 4, 4)
    w.requires_grad_()
    F.conv2d(x[:0], w).sum().backward()
    assert T.equal(w.grad, T.zeros_like(w))


def test_what_the_node_keeps():
    x, w, b = values((1, 2, 5, 5), 0), values((2, 1, 3, 3), 1).requires_grad_(), T.zeros(2, dtype=T.float64)
    f = F.conv2d(x, w, b, 2, 1, 1, 2).grad_fn
    assert type(f).__name__ == "ConvolutionBackward0"
    assert (f._saved_stride, f._saved_padding, f._saved_dilation) == ((2, 2), (1, 1), (1, 1))
    assert (f._saved_groups, f._saved_transposed, f._saved_output_padding) == (2, False, (0, 0))
    assert T.equal(f._saved_input, x) and T.equal(f._saved_weight, w)
    g = T.autograd.grad(F.conv2d(x[:, :1], w).pow(2).sum(), w, create_graph=True)[0]
    assert type(g.grad_fn).__name__ == "ConvolutionBackwardBackward0"


@pytest.mark.parametrize("n", [2, 3])
def test_channels_stay_last(n):
    form = T.channels_last if n == 2 else T.channels_last_3d
    x, w = values((2, 4, *[5] * n), 0).float(), values((3, 4, *[3] * n), 1).float()
    conv = getattr(F, f"conv{n}d")
    y = conv(x.to(memory_format=form), w)
    assert y.is_contiguous(memory_format=form) and T.allclose(y, conv(x, w), atol=1e-5)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_halves_are_summed_in_float(kind):
    dtype = getattr(T, kind)
    x, w = values((1, 64, 8), 0).to(dtype), values((2, 64, 3), 1).to(dtype)
    wanted = F.conv1d(x.float(), w.float()).to(dtype)
    if IS_GRADIRON:
        assert T.equal(F.conv1d(x, w), wanted)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_whole_numbers(data):
    """They are what the same numbers are in float64, as long as these are exact."""
    dims = data.draw(st.integers(1, 3))
    few = st.lists(st.integers(1, 2), min_size=dims, max_size=dims)
    kernel, stride, dilation, padding = (data.draw(few) for _ in range(4))
    groups, seed = data.draw(st.integers(1, 2)), data.draw(st.integers(0, 999))
    x = (values((2, 2 * groups, *(k + 5 for k in kernel)), seed) * 100).long()
    w, b = (values((2 * groups, 2, *kernel), seed + 1) * 100).long(), T.arange(2 * groups)
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    for name in (f"conv{dims}d", f"conv_transpose{dims}d"):
        call = getattr(F, name)
        found = call(x, w, b, **options)
        assert found.dtype is T.int64 and found.is_contiguous()
        assert T.equal(found.double(), call(x.double(), w.double(), b.double(), **options))


def test_narrow_whole_numbers_wrap():
    x = T.full((1, 1, 5), 100, dtype=T.uint8)
    assert F.conv1d(x, T.ones(1, 1, 3, dtype=T.uint8)).tolist() == [[[44, 44, 44]]]
    life = T.zeros(6, 6, dtype=T.int32)
    life[2, 1:4] = 1
    near = F.conv2d(life[None, None], T.ones(1, 1, 3, 3, dtype=T.int32), padding="same")[0, 0] - life
    turned = ((near == 3) | (life == 1) & (near == 2)).int()
    assert turned.nonzero().tolist() == [[1, 2], [2, 2], [3, 2]]


def image(*shape, dtype=T.float32):
    return T.zeros(*shape, dtype=dtype)


ERRORS = [
    (lambda: F.conv2d(image(1, 3, 8, 8), image(4, 2, 3, 3)), "Given groups=1, weight of size [4, 2, 3, 3], expected input[1, 3, 8, 8] to have 2 channels, but got 3 channels instead"),
    (lambda: F.conv2d(image(8, 8), image(4, 2, 3, 3)), "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [8, 8]"),
    (lambda: F.conv2d(image(1, 2, 8, 8), image(4, 2, 3, 3), image(3)), "Given weight of size [4, 2, 3, 3], expected bias to be 1-dimensional with 4 elements, but got bias of size [3] instead"),
    (lambda: F.conv2d(image(1, 2, 2, 2), image(4, 2, 3, 3)), "Calculated padded input size per channel: (2 x 2). Kernel size: (3 x 3). Kernel size can't be greater than actual input size"),
    (lambda: F.conv2d(image(1, 2, 8, 8), image(4, 2, 3, 3), stride=0), "non-positive stride is not supported"),
    (lambda: F.conv2d(image(1, 2, 8, 8), image(4, 2, 3, 3), dilation=0), "dilation should be greater than zero, but got [0, 0]"),
    (lambda: F.conv2d(image(1, 2, 8, 8), image(4, 2, 3, 3), padding=-1), "negative padding is not supported"),
    (lambda: F.conv2d(image(1, 2, 8, 8), image(4, 2, 3, 3), padding="same", stride=2), "padding='same' is not supported for strided convolutions"),
    (lambda: F.conv2d(image(1, 2, 8, 8), image(4, 2, 3, 3), padding="full"), "Invalid padding string: 'full'"),
    (lambda: F.conv2d(image(1, 2, 8, 8), image(4, 2, 3, 3), stride=(1, 1, 1)), "expected stride to be a single integer value or a list of 2 values to match the convolution dimensions, but got stride=[1, 1, 1]"),
    (lambda: F.conv2d(image(1, 2, 8, 8, dtype=T.float64), image(4, 2, 3, 3)), "expected scalar type Double but found Float"),
    (lambda: F.conv2d(image(1, 1, 4), image(1, 1, 2)), "expected stride to be a single integer value or a list of 1 values to match the convolution dimensions, but got stride=[1, 1]"),
    (lambda: F.conv_transpose2d(image(1, 1, 4, 4), image(1, 1, 2)), "expected stride to be a single integer value or a list of 1 values to match the convolution dimensions, but got stride=[1, 1]"),
    (lambda: F.conv_transpose1d(image(1, 1, 4), image(1, 1, 1), padding=2), "Given input size per channel: (1 x 4). Calculated output size per channel: (1 x 0). Output size is too small"),
    (lambda: F.conv_transpose2d(image(1, 1, 4, 4, dtype=T.int64), image(1, 1, 1, 1, dtype=T.int64), padding=3), "Given input size per channel: (4 x 4). Calculated output size per channel: (-2 x -2). Output size is too small"),
    (lambda: F.conv_transpose1d(image(1, 2, 8), image(2, 2, 3), output_padding=1), "output padding must be smaller than either stride or dilation, but got output_padding_height: 0 output_padding_width: 1 stride_height: 1 stride_width: 1 dilation_height: 1 dilation_width: 1"),
]  # fmt: skip


@pytest.mark.parametrize("call, words", ERRORS, ids=[words[:40] for _, words in ERRORS])
def test_refusals(call, words):
    with pytest.raises(RuntimeError) as raised:
        call()
    assert words in str(raised.value)


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_modes_are_padding_before(spatial, mode):
    """Of both kinds, by a number and "same", which puts the odd place behind."""
    for padding, (before, after) in ((1, (1, 1)), ("same", (1, 2))):
        layer = getattr(T.nn, f"Conv{spatial}d")(1, 2, 4, padding=padding, padding_mode=mode)
        x = T.rand((2, 1) + (5,) * spatial)
        wider = T.nn.functional.pad(x, (before, after) * spatial, mode=mode)
        expected = getattr(T.nn.functional, f"conv{spatial}d")(wider, layer.weight, layer.bias)
        assert_values(layer(x), expected.tolist(), 1e-5, 1e-6)
        assert f"padding_mode={mode}" in str(layer)


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_transposed_convolutions_reach_every_size_of_a_stride(spatial):
    layer = getattr(T.nn, f"ConvTranspose{spatial}d")(2, 1, 3, stride=3)
    x = T.rand((1, 2) + (4,) * spatial)
    for size in (12, 13, 14):
        for asked in ([size] * spatial, [1, 1, *[size] * spatial]):
            assert layer(x, output_size=asked).shape == (1, 1) + (size,) * spatial
        assert layer(x[0], output_size=[size] * spatial).shape == (1,) + (size,) * spatial
    with pytest.raises(ValueError, match="requested an output size of .*15.*, but valid sizes range from"):
        layer(x, output_size=[15] * spatial)
    with pytest.raises(ValueError, match="output_size must have .* elements"):
        layer(x, output_size=[12] * (spatial + 1))


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_groups_are_convolutions_of_their_own(groups):
    layer = T.nn.Conv2d(4, 4, 3, groups=groups, dtype=T.float64)
    x = T.rand(2, 4, 6, 6, dtype=T.float64, requires_grad=True)
    out = layer(x)
    (grad,) = T.autograd.grad(out.square().sum(), x)
    n = 4 // groups
    for at in range(0, 4, n):
        part = x.detach()[:, at : at + n].requires_grad_()
        own = T.nn.functional.conv2d(part, layer.weight[at : at + n], layer.bias[at : at + n])
        assert_values(out[:, at : at + n], own.tolist(), 1e-9, 1e-12)
        assert_values(grad[:, at : at + n], T.autograd.grad(own.square().sum(), part)[0].tolist(), 1e-9, 1e-12)


@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_without_batches_have_gradients_of_zero(transposed):
    layer = (T.nn.ConvTranspose2d if transposed else T.nn.Conv2d)(4, 4, 3, stride=2, padding=1, groups=4)
    x = T.rand(0, 4, 4, 4, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.shape == x.shape and not layer.weight.grad.any() and not layer.bias.grad.any()


def test_weights_that_share_memory_have_gradients():
    weight = T.rand(3, 3).expand(2, 1, 3, 3).detach().requires_grad_()
    x = T.rand(1, 2, 5, 5)
    T.nn.functional.conv2d(x, weight, groups=2).sum().backward()
    expected = x.unfold(2, 3, 1).unfold(3, 3, 1).sum((2, 3))
    assert_values(weight.grad[:, 0], expected[0].tolist(), 1e-5)
