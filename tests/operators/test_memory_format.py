"""Memory formats: in which order copies lie, what keeps the order, and what a format asks of a tensor."""

import operator

import pytest

from library import T, leaf

LAST, LAST_3D = T.channels_last, T.channels_last_3d
IMAGES, VOLUMES = (2, 3, 4, 5), (1, 2, 3, 4, 5)
IN_LAST, IN_LAST_3D = (60, 1, 15, 3), (120, 1, 40, 10, 2)


def images(**options):
    return T.arange(120.0, **options).reshape(IMAGES)


COPIES = {
    "to": lambda x, f: x.to(memory_format=f),
    "contiguous": lambda x, f: x.contiguous(memory_format=f),
    "clone": lambda x, f: x.clone(memory_format=f),
    "float": lambda x, f: x.float(memory_format=f),
    "double": lambda x, f: x.double(memory_format=f),
    "cpu": lambda x, f: x.cpu(memory_format=f),
}
LIKE = {
    "empty": lambda x, f: T.empty(x.shape, memory_format=f),
    "zeros_like": lambda x, f: T.zeros_like(x, memory_format=f),
    "randn_like": lambda x, f: T.randn_like(x, memory_format=f),
    "resize_": lambda x, f: T.empty(0).resize_(x.shape, memory_format=f),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_lie_as_asked(name):
    x = images()
    y = COPIES[name](x, LAST)
    assert y.stride() == IN_LAST and y.is_contiguous(memory_format=LAST) and not y.is_contiguous()
    assert T.equal(y.to(x.dtype), x)
    back = COPIES[name](y, T.contiguous_format)
    assert back.is_contiguous() and T.equal(back.to(x.dtype), x)


@pytest.mark.parametrize("name", COPIES | LIKE)
def test_images_and_volumes_have_a_format_each(name):
    make = (COPIES | LIKE)[name]
    assert make(T.ones(IMAGES), LAST).stride() == IN_LAST
    assert make(T.ones(VOLUMES), LAST_3D).stride() == IN_LAST_3D


@pytest.mark.parametrize("name", COPIES | LIKE)
@pytest.mark.parametrize(
    "shape, form, words", [((2, 3), LAST, "rank 4"), (IMAGES, LAST_3D, "rank 5"), (VOLUMES, LAST, "rank 4")]
)
def test_another_rank_is_refused(name, shape, form, words):
    kind = "channels_last" if form is LAST else "channels_last_3d"
    with pytest.raises(RuntimeError, match=f"required {words} tensor to use {kind} format"):
        (COPIES | LIKE)[name](T.ones(shape), form)


def test_what_lies_so_already_is_not_copied():
    x = images().to(memory_format=LAST)
    assert x.to(memory_format=LAST) is x and x.contiguous(memory_format=LAST) is x
    assert x.to(memory_format=T.preserve_format) is x and x.float(memory_format=LAST) is x
    assert x.clone(memory_format=LAST) is not x
    turned = images().permute(1, 0, 2, 3)
    assert turned.to(memory_format=T.contiguous_format) is turned, "only the other format is undone"


def test_one_channel_looks_alike_in_both_formats():
    x = T.ones(2, 1, 3, 3)
    assert x.is_contiguous() and x.is_contiguous(memory_format=LAST)
    assert x.to(memory_format=LAST).stride() == (9, 1, 3, 1)
    assert T.ones(0, 2, 3, 3).to(memory_format=LAST).stride() == (18, 1, 6, 2)


def test_preserving_is_no_format_to_make_things_in():
    with pytest.raises(RuntimeError, match="unsupported memory format Preserve"):
        T.empty(2, memory_format=T.preserve_format)
    with pytest.raises(RuntimeError, match="Unsupported memory formatPreserve"):
        T.empty(2).resize_(3, memory_format=T.preserve_format)
    with pytest.raises(RuntimeError, match="preserve memory format is unsupported by the contiguous operator"):
        T.ones(2, 3).t().contiguous(memory_format=T.preserve_format)


def test_operators_hand_the_format_on():
    x = images().to(memory_format=LAST)
    for y in (x + 1, (x * 2).exp(), x + T.ones(3, 1, 1), T.relu(x), x.clone(), x.double(), T.zeros_like(x)):
        assert y.stride() == IN_LAST
    assert T.cat([x, x]).stride() == IN_LAST
    assert T.cat([x, images()]).stride() == (60, 20, 5, 1)


@pytest.mark.parametrize(
    "name, node", [("to", "ToCopyBackward0"), ("contiguous", "CloneBackward0"), ("clone", "CloneBackward0")]
)
def test_gradients_come_back(name, node):
    x = leaf(images().tolist())
    y = COPIES[name](x, LAST)
    assert y.grad_fn.name() == node
    weight = images() + 1
    (grad,) = T.autograd.grad((y * weight).sum(), x)
    assert T.equal(grad, weight)


ELEMENTS = ("i0", "special.i0e", "special.i1", "special.ndtri", "special.log_ndtr", "special.bessel_y0", "special.airy_ai")


@pytest.mark.parametrize("name", ELEMENTS)
def test_special_functions_hand_the_order_on(name):
    f = operator.attrgetter(name)(T)
    for kind in (T.float32, T.float64):
        x = (images(dtype=kind) / 200 + 0.1).contiguous(memory_format=LAST)
        turned = x.permute(2, 0, 1, 3)
        assert f(x).stride() == IN_LAST and f(turned).stride() == turned.stride()
        assert T.equal(f(x), f(x.contiguous()))


def test_mantissas_lie_as_their_numbers():
    x = images().contiguous(memory_format=LAST)
    parts = T.frexp(x)
    assert [part.stride() for part in parts] == [IN_LAST, IN_LAST]
    assert T.equal(T.ldexp(*parts), x)


def test_samples_have_no_format():
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        T.vmap(lambda x: x.to(memory_format=LAST))(T.ones(2, *IMAGES))


def test_copying_by_position():
    x = leaf([1.0, 2.0])
    assert x.to(T.float32, True) is x
    assert x.to(T.float32, False, True).grad_fn.name() == "ToCopyBackward0"
    assert x.to("cpu", T.float32, False, True) is not x
    assert T.ones(2, 3).t().to(T.float32, copy=True).stride() == (1, 3)


def test_names():
    assert str(LAST) == repr(LAST) == "torch.channels_last"
    assert str(LAST_3D) == "torch.channels_last_3d" and str(T.strided) == "torch.strided"


@pytest.mark.parametrize("n, format", [(2, "channels_last"), (3, "channels_last_3d")])
def test_means_of_whole_images_keep_the_format(n, format):
    x = T.ones(2, 3, *[4] * n).to(memory_format=getattr(T, format)).requires_grad_()
    pool = getattr(T.nn.functional, f"adaptive_avg_pool{n}d")
    y = pool(x, 1)
    assert y.stride() == (3, 1, *[3] * n) and type(y.grad_fn).__name__ == "AsStridedBackward1"
    y.sum().backward()
    assert x.grad.stride() == x.stride() and x.grad.eq(4.0**-n).all()
    assert pool(x.detach().contiguous(), 1).stride() == (3, *[1] * (n + 1))
