"""Normalization: what it makes of batches, rows and groups, its gradients, running statistics, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library import IS_GRADIRON, NO_GPU, T, assert_values

F = T.nn.functional


def drawn(*shape, seed=0, dtype=T.float64):
    return T.randn(*shape, dtype=dtype, generator=T.Generator().manual_seed(seed))


def standard(x, dims, eps):
    mean = x.mean(dims, keepdim=True)
    return (x - mean) / ((x - mean) ** 2).mean(dims, keepdim=True).add(eps).sqrt()


def beside(line, x):
    return line.reshape(-1, *[1] * (x.dim() - 2))


def same_gradients(found, expected, operands, rtol=1e-9, atol=1e-10):
    """Values, and the gradients of a weighted sum."""
    assert T.allclose(found, expected, rtol, atol)
    weight = drawn(*found.shape, seed=9, dtype=found.dtype)
    ours = T.autograd.grad((found * weight).sum(), operands)
    theirs = T.autograd.grad((expected * weight).sum(), operands)
    for a, b in zip(ours, theirs):
        assert T.allclose(a, b, rtol, atol)


# Short and long runs, channels that lie innermost, one block and many.
SHAPES = [(7, 5), (300, 3), (4, 3, 2), (3, 4, 40), (2, 3, 5, 7), (130, 2, 4, 4), (2, 2, 70, 71)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("last", [False, True])
def test_batches(shape, last):
    x = drawn(*shape)
    if last and len(shape) == 4:
        x = x.to(memory_format=T.channels_last)
    x.requires_grad_()
    w, b = (drawn(shape[1], seed=s).requires_grad_() for s in (1, 2))
    dims = [d for d in range(len(shape)) if d != 1]
    y = F.batch_norm(x, None, None, w, b, True, eps=0.1)
    assert y.stride() == x.stride() and y.grad_fn.name() == "NativeBatchNormBackward0"
    same_gradients(y, standard(x, dims, 0.1) * beside(w, x) + beside(b, x), (x, w, b))
    mean, var = drawn(shape[1], seed=3), drawn(shape[1], seed=4).abs() + 0.5
    y = F.batch_norm(x, mean, var, w, b, eps=0.1)
    settled = (x - beside(mean, x)) / beside(var + 0.1, x).sqrt()
    same_gradients(y, settled * beside(w, x) + beside(b, x), (x, w, b))


@pytest.mark.parametrize("shape", [s for s in SHAPES if len(s) > 2])
def test_samples(shape):
    x = drawn(*shape).requires_grad_()
    w, b = (drawn(shape[1], seed=s).requires_grad_() for s in (1, 2))
    y = F.instance_norm(x, weight=w, bias=b, eps=0.1)
    same_gradients(y, standard(x, list(range(2, len(shape))), 0.1) * beside(w, x) + beside(b, x), (x, w, b))


@pytest.mark.parametrize("shape, groups", [((6, 4), 2), ((3, 6, 5), 3), ((2, 4, 7, 9), 1), ((2, 4, 7, 9), 4), ((1, 8, 600), 2)])
@pytest.mark.parametrize("last", [False, True])
def test_groups(shape, groups, last):
    x = drawn(*shape)
    if last and len(shape) == 4:
        x = x.to(memory_format=T.channels_last)
    x.requires_grad_()
    w, b = (drawn(shape[1], seed=s).requires_grad_() for s in (1, 2))
    y = F.group_norm(x, groups, w, b, 0.1)
    assert y.stride() == x.stride() and y.grad_fn.name() == "NativeGroupNormBackward0"
    parted = standard(x.reshape(shape[0], groups, -1), 2, 0.1).reshape(shape)
    same_gradients(y, parted * beside(w, x) + beside(b, x), (x, w, b))


@pytest.mark.parametrize("rows, width", [(1, 1), (3, 5), (40, 33), (700, 64), (5, 5000)])
@pytest.mark.parametrize("affine", [0, 1, 2])
def test_rows(rows, width, affine):
    x = drawn(rows, width).requires_grad_()
    w, b = (drawn(width, seed=s).requires_grad_() for s in (1, 2))
    given = [w, b][:affine]
    expected = standard(x, 1, 0.1)
    expected = expected * w if affine else expected
    expected = expected + b if affine == 2 else expected
    same_gradients(F.layer_norm(x, (width,), *given, eps=0.1), expected, (x, *given))
    root = x / (x * x).mean(1, keepdim=True).add(0.1).sqrt()
    given = given[:1]
    same_gradients(F.rms_norm(x, (width,), *given, eps=0.1), root * w if affine else root, (x, *given))


def test_complex_numbers_are_divided_by_the_root_of_their_mean_square():
    x = T.tensor([[3 + 4j, 1j, 2.0], [1 - 1j, 2.0, 0.5j]], dtype=T.complex128, requires_grad=True)
    weight = T.tensor([2.0, 1j, 1 + 1j], dtype=T.complex128, requires_grad=True)
    expected = x / T.sqrt((x * x).mean(-1, keepdim=True) + 0.5) * weight
    found = F.rms_norm(x, (3,), weight, 0.5)
    same_gradients(T.view_as_real(found), T.view_as_real(expected), (x, weight))


@given(st.integers(0, 2**16), st.floats(-1e3, 1e3), st.floats(0.1, 1e3))
def test_what_shifts_and_scales_all_changes_nothing(seed, shift, scale):
    x = drawn(6, 4, 3, seed=seed)
    for f in (
        lambda x: F.layer_norm(x, (4, 3), eps=0.0),
        lambda x: F.batch_norm(x, None, None, training=True, eps=1e-12),
        lambda x: F.group_norm(x, 2, eps=0.0),
        lambda x: F.instance_norm(x, eps=1e-12),
    ):
        assert T.allclose(f(x * scale + shift), f(x), 1e-5, 1e-5)
    assert T.allclose(F.rms_norm(x * scale, (3,), eps=0.0), F.rms_norm(x, (3,), eps=0.0), 1e-6, 1e-6)


def test_means_far_from_zero_keep_their_digits():
    x = drawn(64, 256, dtype=T.float32) + 1000
    exact = standard(x.double(), 1, 1e-5)
    assert (F.layer_norm(x, (256,)).double() - exact).abs().max().item() < 1e-3
    exact = standard(x.double(), 0, 1e-5)
    assert (F.batch_norm(x, None, None, training=True).double() - exact).abs().max().item() < 1e-3


def test_running_statistics():
    x, mean, var = drawn(5, 3, 2), T.zeros(3, dtype=T.float64), T.ones(3, dtype=T.float64)
    version = mean._version
    x.requires_grad_()
    y = F.batch_norm(x, mean, var, training=True, momentum=0.25)
    assert mean._version == version
    flat = x.detach().transpose(0, 1).reshape(3, -1)
    assert T.allclose(mean, flat.mean(1) * 0.25) and T.allclose(var, 0.75 + flat.var(1) * 0.25)
    y.sum().backward()  # what was saved of them does not matter
    F.batch_norm(x, mean, var, training=False)
    assert T.allclose(mean, flat.mean(1) * 0.25)


def test_the_mean_of_all_batches():
    layer = T.nn.BatchNorm1d(3, momentum=None, dtype=T.float64)
    batches = [drawn(4, 3, seed=s) for s in range(3)]
    for x in batches:
        layer(x)
    assert T.allclose(layer.running_mean, T.stack([x.mean(0) for x in batches]).mean(0))
    assert layer.num_batches_tracked.item() == 3


def test_statistics_that_are_returned():
    x = drawn(5, 3, 2)
    y, mean, scale = T.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
    assert T.allclose(mean, x.mean((0, 2))) and y.shape == x.shape
    assert T.allclose(scale, (x.var((0, 2), unbiased=False) + 1e-5).rsqrt())


@pytest.mark.parametrize("dtype", [T.float16, T.bfloat16])
def test_halves_with_weights_of_float32(dtype):
    x = drawn(4, 6, dtype=T.float32).to(dtype).requires_grad_()
    w, b = T.ones(6, requires_grad=True), T.zeros(6, requires_grad=True)
    for f in (
        lambda: F.layer_norm(x, (6,), w, b),
        lambda: F.batch_norm(x, None, None, w, b, True),
        lambda: F.group_norm(x, 2, w, b),
    ):
        y = f()
        assert y.dtype == dtype
        gx, gw = T.autograd.grad(y.sum(), (x, w))
        assert gx.dtype == dtype and gw.dtype == T.float32


@pytest.mark.parametrize("shape", [(0, 4), (2, 0), (0, 4, 3)])
def test_nothing_to_normalize(shape):
    x = T.empty(shape, requires_grad=True)
    mean, var = T.zeros(shape[1]), T.ones(shape[1])
    y = F.batch_norm(x, mean, var, training=True)
    assert y.shape == x.shape and mean.tolist() == [0] * shape[1]
    y.sum().backward()
    assert x.grad.shape == x.shape


X, B = drawn(2, 4, 3, dtype=T.float32), T.ones(4)
REFUSED = [
    (lambda: F.batch_norm(X[:1, :, 0], None, None, training=True), ValueError, "Expected more than 1 value per channel"),
    (lambda: F.batch_norm(X, None, None), RuntimeError, "running_mean must be defined in evaluation mode"),
    (lambda: F.batch_norm(X, T.ones(3), B), RuntimeError, "running_mean should contain 4 elements not 3"),
    (lambda: F.batch_norm(X, B, T.ones(3)), RuntimeError, "running_var should contain 4 elements not 3"),
    (lambda: F.batch_norm(X, B, B, T.ones(5)), RuntimeError, "weight should contain 4 elements not 5"),
    (lambda: F.batch_norm(X, B, B, B, T.ones(5)), RuntimeError, "bias should contain 4 elements not 5"),
    (lambda: F.batch_norm(X.int(), B, B), NotImplementedError, "\"batch_norm\" not implemented for 'Int'"),
    (lambda: F.batch_norm(X, B.double(), B.double()), RuntimeError, "mixed dtype .CPU.: expect parameter to have scalar"),
    (lambda: F.batch_norm(X.double(), B, B), RuntimeError, "mixed dtype .CPU.: all inputs must share same datatype"),
    (lambda: F.batch_norm(X, None, None, training=True, eps=0.0), ValueError, "batch_norm eps must be positive during"),
    (lambda: F.instance_norm(X[..., :1]), ValueError, "Expected more than 1 spatial element when training"),
    (lambda: F.instance_norm(X, use_input_stats=False), RuntimeError, "Expected running_mean and running_var to be defined"),
    (lambda: F.group_norm(X, 3), RuntimeError, "Expected number of channels in input to be divisible by num_groups"),
    (lambda: F.group_norm(X, 2, T.ones(3)), RuntimeError, "Expected weight to be a vector of size equal to the number of"),
    (lambda: F.group_norm(X[0, 0], 2), RuntimeError, "Expected at least 2 dimensions for input tensor but received 1"),
    (lambda: F.group_norm(X[..., :0], 2), RuntimeError, "Expected HxW to be greater than 0, got 0"),
    (lambda: F.group_norm(X, -2), RuntimeError, "Expected num groups to be greater than 0, got -2"),
    (lambda: F.group_norm(X.int(), 2), NotImplementedError, "\"GroupNormKernelImpl\" not implemented for 'Int'"),
    (lambda: F.layer_norm(X, (3,), T.ones(3).double()), RuntimeError, "mixed dtype .CPU.: expect parameter to have scalar"),
    (lambda: F.rms_norm(X, (4,)), RuntimeError, r"Given normalized_shape=\[4\], expected input with shape \[\*4\]"),
    (lambda: F.rms_norm(X, ()), RuntimeError, "Expected normalized_shape to be at least 1-dimensional"),
    (lambda: F.rms_norm(X, (3,), T.ones(2)), RuntimeError, "Expected weight to be of same shape as normalized_shape"),
    (lambda: F.rms_norm(X.int(), (3,)), NotImplementedError, "\"rms_norm\" not implemented for 'Int'"),
]


@pytest.mark.parametrize("call, kind, text", REFUSED)
def test_what_is_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_samples_of_vmap_need_statistics_of_their_own():
    x = drawn(2, 4, 3)
    mean, var = T.zeros(3, dtype=T.float64), T.ones(3, dtype=T.float64)
    with pytest.raises(RuntimeError, match="Batch norm got a batched tensor as input while the running_mean or running_var"):
        T.func.vmap(lambda x: F.batch_norm(x, mean, var, training=True))(x)
    y = T.func.vmap(lambda x: F.batch_norm(x, mean, var))(x)
    assert T.allclose(y, F.batch_norm(x.reshape(8, 3), mean, var).reshape(2, 4, 3))


@pytest.mark.skipif(NO_GPU or not IS_GRADIRON, reason="without the GPU")
def test_layers_on_the_gpu():
    """The same running statistics and gradients on both devices."""
    found = []
    for device in ("cpu", "cuda"):
        layer = T.nn.BatchNorm2d(3, device=device)
        x = drawn(4, 3, 5, 2, dtype=T.float32).to(device).requires_grad_()
        (layer(x) ** 3).sum().backward()
        found.append([x.grad.cpu(), layer.weight.grad.cpu(), layer.running_mean.cpu(), layer.running_var.cpu()])
    for a, b in zip(*found):
        assert T.allclose(a, b, 1e-4, 1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_epsilon_of_short_floats_is_that_of_float32(dtype):
    x = T.full((2,), 2.0**-6, dtype=getattr(T, dtype))
    # The mean square is 2^-12, far above float32's epsilon and below those of the short ones.
    assert_values(T.nn.functional.rms_norm(x, (2,)).float(), [1.0, 1.0], 1e-2)


def test_without_an_epsilon():
    x = T.tensor([[[1.0, 3.0]]])
    assert_values(T.nn.InstanceNorm1d(1, eps=0.0)(x), [[[-1.0, 1.0]]], 1e-6)
    made = T.batch_norm(x, None, None, None, None, True, 0.1, 0.0, False)
    assert_values(made, [[[-1.0, 1.0]]], 1e-6)
    with pytest.raises(ValueError, match="batch_norm eps must be positive during training, but got 0.0"):
        T.nn.functional.batch_norm(x, None, None, training=True, eps=0.0)


def test_an_old_state_gives_a_module_on_meta_a_count():
    norm = T.nn.BatchNorm1d(2, device="meta")
    norm.load_state_dict({}, assign=True, strict=False)
    assert norm.num_batches_tracked.device.type == "cpu" and norm.num_batches_tracked.item() == 0


def test_rows_of_millions_keep_their_digits():
    x = T.rand(1 << 22)
    found, wide = F.layer_norm(x, x.shape), F.layer_norm(x.double(), x.shape)
    assert (found - wide).abs().max() < 1e-6
