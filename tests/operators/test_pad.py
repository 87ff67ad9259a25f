"""`nn.functional.pad` in all its modes, against a definition by single elements."""

import itertools

import pytest

from library import T, assert_values, tensor

F = T.nn.functional
MODES = ("constant", "reflect", "replicate", "circular")
NODES = {"reflect": "ReflectionPad{}DBackward0", "replicate": "ReplicationPad{}DBackward0"}


def source(place, size, mode):
    """Where in a line of `size` elements the one at `place`, perhaps beyond its ends, is found."""
    if 0 <= place < size:
        return place
    if mode == "reflect":
        return -place if place < 0 else 2 * (size - 1) - place
    if mode == "replicate":
        return min(max(place, 0), size - 1)
    return place % size if mode == "circular" else None


def expected(x, pad, mode, value=0.0):
    """The padded list, element by element; what a circular one loses is lost before it goes round."""
    dims = len(pad) // 2
    if mode == "circular":
        for i in range(dims):
            before, after = -min(pad[2 * i], 0), -min(pad[2 * i + 1], 0)
            x = x.narrow(-1 - i, before, x.shape[-1 - i] - before - after)
        pad = [max(n, 0) for n in pad]
    shape = list(x.shape)
    for i in range(dims):
        shape[-1 - i] += pad[2 * i] + pad[2 * i + 1]
    out = T.full(shape, value, dtype=x.dtype)
    for place in itertools.product(*(range(n) for n in shape)):
        found = list(place)
        for i in range(dims):
            found[-1 - i] = source(place[-1 - i] - pad[2 * i], x.shape[-1 - i], mode)
        if None not in found:
            out[place] = x[tuple(found)]
    return out


CASES = [
    ((2, 2, 3), (1, 2)),
    ((2, 3), (2, 0)),
    ((2, 2, 3), (-1, 2)),
    ((2, 2, 4), (-1, -2)),
    ((1, 2, 3, 4), (1, 2, 2, 1)),
    ((2, 3, 4), (3, -1, -1, 2)),
    ((1, 1, 2, 3, 4), (1, 1, 2, 0, 1, 1)),
    ((1, 2, 3, 4), (1, -1, 0, 2, 1, 0)),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape, pad", CASES)
def test_elements(shape, pad, mode, device):
    x = T.arange(1.0, 1 + T.zeros(shape).numel()).reshape(shape)
    assert_values(F.pad(x.to(device), pad, mode), expected(x, pad, mode))
    if mode == "constant":
        assert_values(F.pad(x.to(device), pad, value=2.5), expected(x, pad, mode, 2.5))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape, pad", CASES)
def test_gradients(shape, pad, mode, device):
    """A padding is linear: its gradient is that of the sum of elements, each times its weight."""
    x = T.arange(1.0, 1 + T.zeros(shape).numel(), device=device).reshape(shape).requires_grad_()
    y = F.pad(x, pad, mode)
    weights = T.arange(1.0, 1 + y.numel(), device=device).reshape(y.shape).requires_grad_()
    (g,) = T.autograd.grad((y * weights).sum(), x, create_graph=True)
    wanted = x.detach().cpu().clone().requires_grad_()
    total = expected(wanted, pad, mode) * weights.detach().cpu()
    (h,) = T.autograd.grad(total.sum(), wanted)
    assert_values(g, h)
    (back,) = T.autograd.grad((g * x).sum(), weights)
    assert_values(back, y.detach())


@pytest.mark.parametrize("mode", MODES)
def test_second_derivatives(mode):
    x = T.linspace(0.1, 2.4, 24, dtype=T.float64).reshape(1, 2, 3, 4).requires_grad_()
    for pad in ((1, 2, 1, 0), (-1, 2, 1, -1)):
        assert T.autograd.gradcheck(lambda x, pad=pad: F.pad(x, pad, mode), x, check_forward_ad=True)
        assert T.autograd.gradgradcheck(lambda x, pad=pad: F.pad(x, pad, mode) ** 2, x)


@pytest.mark.parametrize("mode", MODES)
def test_samples_and_tangents(mode):
    x = T.arange(24.0).reshape(2, 2, 2, 3)
    one = lambda x: F.pad(x, (1, 2), mode)  # noqa: E731
    assert_values(T.func.vmap(one)(x), T.stack([one(x[0]), one(x[1])]))
    assert_values(T.func.vmap(one, in_dims=1)(x), T.stack([one(x[:, 0]), one(x[:, 1])]))
    t = x.sin()
    assert_values(T.func.jvp(one, (x[0],), (t[0],))[1], one(t[0]))
    grads = T.func.vmap(T.func.grad(lambda x: (one(x) ** 2).sum()))(x)
    assert_values(grads[1], T.func.grad(lambda x: (one(x) ** 2).sum())(x[1]))


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_nodes(mode, dims):
    x = T.ones([1, 1] + [3] * dims, requires_grad=True)
    y = F.pad(x, [1, 1] * dims, mode)
    name = NODES[mode].format(dims)
    assert y.grad_fn.name() == name
    assert y.grad_fn._saved_padding == (1, 1) * dims and y.grad_fn._saved_self is x
    (g,) = T.autograd.grad(y.exp().sum(), x, create_graph=True)
    assert g.grad_fn.name() == name.replace("Backward0", "BackwardBackward0")
    assert [node.name() for node, _ in g.grad_fn.next_functions] == ["MulBackward0", "torch::autograd::AccumulateGrad"]


def test_nodes_of_the_other_modes():
    x = T.ones(1, 1, 3, requires_grad=True)
    y = F.pad(x, (1, 2), value=3)
    assert y.grad_fn.name() == "ConstantPadNdBackward0" and y.grad_fn._saved_pad == (1, 2)
    assert T.constant_pad_nd(x, (1, 2), 3).tolist() == y.tolist()
    (g,) = T.autograd.grad(y.exp().sum(), x, create_graph=True)
    assert g.grad_fn.name() == "ConstantPadNdBackward0"
    assert "CopySlices" in F.pad(x, (1, 1), "circular").grad_fn.name()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["float64", "float16", "bfloat16", "int64", "uint8", "complex64"])
def test_dtypes(mode, kind):
    x = tensor([[[1, 2, 3], [4, 5, 6]]], kind)
    assert F.pad(x, (1, 1), mode).dtype is x.dtype
    assert F.pad(x, (1, 1), mode)[0, 0, 1:4].tolist() == x[0, 0].tolist()


def test_truth_values():
    x = T.tensor([[[True, False, True]]])
    assert F.pad(x, (1, 1), value=1).tolist() == [[[True, True, False, True, True]]]
    assert F.pad(x, (1, 1), "circular").tolist() == [[[True, True, False, True, True]]]
    for mode, kernel in (("reflect", "reflection_pad1d"), ("replicate", "replication_pad1d")):
        with pytest.raises(NotImplementedError, match=f"\"{kernel}\" not implemented for 'Bool'"):
            F.pad(x, (1, 1), mode)


@pytest.mark.parametrize("mode", MODES)
def test_layouts(mode):
    images = T.ones(2, 3, 4, 5).to(memory_format=T.channels_last)
    formatted = mode != "circular"
    assert F.pad(images, (1, 1, 1, 1), mode).is_contiguous(memory_format=T.channels_last) == formatted
    assert F.pad(T.ones(2, 3, 4, 5).transpose(1, 3), (1, 1, 1, 1), mode).is_contiguous()
    assert F.pad(T.ones(2, 3), (0, 0)).data_ptr() != T.ones(2, 3).data_ptr()


LINE, IMAGE, VOLUME = (1, 2, 3), (1, 1, 3, 3), (1, 1, 3, 3, 3)
REFUSED = [
    (LINE, (1,), "constant", RuntimeError, "Padding length must be divisible by 2"),
    (
        LINE,
        (1,) * 8,
        "reflect",
        RuntimeError,
        "Padding length should be less than or equal to two times the input dimension but got padding length 8 and input of "
        "dimension 3",
    ),
    (LINE, (-2, -2), "constant", RuntimeError, r"narrow\(\): length must be non-negative."),
    (
        LINE,
        (2**62, 2**62),
        "constant",
        RuntimeError,
        "The input size 3, plus negative padding .* Check dimension 2 of your input.",
    ),
    (LINE, (1, 1), "foo", NotImplementedError, "Unrecognised padding mode foo"),
    (IMAGE, (1, 1), "reflect", NotImplementedError, "Padding size 2 is not supported for 4D input tensor."),
    ((3,), (1, 1), "circular", NotImplementedError, "Padding size 2 is not supported for 1D input tensor."),
    (LINE, (4, 1), "circular", RuntimeError, "Padding value causes wrapping around more than once."),
    (
        LINE,
        (3, 2),
        "reflect",
        RuntimeError,
        r"Argument #4: Padding size should be less than the corresponding input dimension, but got: padding \(3, 2\) at "
        r"dimension 2 of input \[1, 2, 3\]",
    ),
    (IMAGE, (1, 1, 3, 1), "reflect", RuntimeError, r"Argument #6: .* padding \(3, 1\) at dimension 2 of input"),
    (VOLUME, (1, 1, 1, 1, 3, 1), "reflect", RuntimeError, r"Argument #8: .* padding \(3, 1\) at dimension 2 of input"),
    (LINE, (-1, -2), "reflect", RuntimeError, r"input \(W: 3\) is too small. Calculated output W: 0"),
    (
        IMAGE,
        (-2, -1, 0, 0),
        "replicate",
        RuntimeError,
        r"Calculated output H: 3 W: 0 must be >= 1 in every dimension \(input H: 3, W: 3\)",
    ),
    ((1, 2, 0), (1, 1), "replicate", RuntimeError, r"Expected 2D or 3D \(batch mode\) tensor with possibly 0 batch size"),
    ((1, 0, 3, 3), (1, 1, 1, 1), "reflect", RuntimeError, r"Expected 3D or 4D \(batch mode\) tensor"),
]


@pytest.mark.parametrize("shape, pad, mode, kind, message", REFUSED)
def test_refusals(shape, pad, mode, kind, message):
    with pytest.raises(kind, match=message):
        F.pad(T.zeros(shape), pad, mode)


def test_values_of_other_modes():
    x = T.zeros(1, 2, 3)
    assert F.pad(x, (1, 1), "reflect", 0.0).shape == (1, 2, 5)
    with pytest.raises(RuntimeError, match='Padding mode "reflect" doesn\'t take in value argument'):
        F.pad(x, (1, 1), "reflect", 1.0)
    with pytest.raises(TypeError, match="argument 'pad' .*must be tuple of ints, not int"):
        F.pad(x, 1)
    with pytest.raises(TypeError):
        F.pad(x, (1, 1), value=1j)


def test_nothing_to_pad():
    assert F.pad(T.zeros(0, 2, 3), (1, 1), "reflect").shape == (0, 2, 5)
    assert F.pad(T.zeros(0, 2, 3), (1, 1), "circular").shape == (0, 2, 5)
    assert F.pad(T.zeros(1, 2, 0), (1, 1)).tolist() == [[[0, 0], [0, 0]]]
    assert F.pad(T.tensor(3.0), ()).item() == 3.0


@pytest.mark.gradiron
def test_what_is_taken_away_must_leave_enough_to_go_round():
    """PyTorch shows memory that nobody has written."""
    with pytest.raises(RuntimeError, match="wrapping around more than once"):
        F.pad(T.zeros(1, 2, 3), (-3, 3), "circular")
