"""What a node's hooks see fits the inputs, what gradients of views look like, and other facts of gradients."""

import pytest

from library import T


class Returns(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, grad):
        ctx.grad = grad
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return ctx.grad, None


def test_hooks_see_gradients_as_they_go_on():
    a, b = T.ones(2, 1, requires_grad=True), T.ones(2, 3, dtype=T.float64, requires_grad=True)
    seen = []
    y = a * b
    y.grad_fn.register_hook(lambda grads, _: seen.extend((tuple(g.shape), g.dtype) for g in grads))
    y.sum().backward()
    assert seen == [((2, 1), T.float32), ((2, 3), T.float64)]


def test_a_wrong_shape_is_refused_before_hooks():
    y = Returns.apply(T.ones(2, requires_grad=True) * 1, T.ones(7, 5))
    y.grad_fn.register_hook(lambda *_: pytest.fail("called"))
    with pytest.raises(RuntimeError, match=r"invalid gradient at index 0 - got \[7, 5\]"):
        y.sum().backward()


def test_complex_gradients_of_real_inputs_are_refused():
    y = Returns.apply(T.ones(2, requires_grad=True) * 1, T.ones(2) * 1j)
    with pytest.raises(RuntimeError, match=r"Expected isFloatingType\(grad.scalar_type\(\)\)"):
        y.sum().backward()


def test_a_slice_alone_is_an_operator():
    x = T.ones(2, 3, requires_grad=True)
    assert x[:].grad_fn.name() == "SliceBackward0"
    assert x[:, :].grad_fn.name() == "AliasBackward0"
    assert T.autograd.grad(x[:].sum(), x)[0].stride() == (3, 1)


def test_the_gradient_of_a_stretched_number_is_a_sum():
    x = T.tensor(2.0, requires_grad=True)
    y = x * 1
    z = y.expand_as(y)
    first, second = T.autograd.grad(z.sum(), [z, y], create_graph=True)
    assert first is not second


def test_gradients_after_writes_lie_as_the_values():
    x = T.ones(2, 3, requires_grad=True).transpose(0, 1)
    y = x.div(3)
    y.abs_()
    assert T.autograd.grad(y.sum(), x)[0].stride() == (1, 3)
    y = x * 2
    part = y.mT
    y.log1p_()
    assert T.autograd.grad(part[:, 1:].sum(), y)[0].stride() == (1, 3)


def test_reshapes_of_what_is_not_contiguous():
    x = T.ones(2, 3, 4, requires_grad=True)
    assert x.mT.reshape(2, 4, 3, 1).grad_fn.name() == "ReshapeAliasBackward0"
    assert x.reshape(6, 4).grad_fn.name() == "ViewBackward0"


def test_retaining_twice_asks_nothing():
    y = (T.ones(2, requires_grad=True) * 1).unbind()[1]
    y.retain_grad()
    y.detach().mul_(2)
    y.retain_grad()
    assert y.retains_grad


@pytest.mark.parametrize("write", ["tril_", "triu_"])
def test_triangles_of_stretched_batches(write):
    assert getattr(T.ones(2, 3).expand(2, 2, 3), write)() is not None
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        getattr(T.ones(2, 3).expand(1, 2, 2, 3), write)()


def test_overlap_is_told_before_a_missing_kernel():
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        T.ones(2, dtype=T.bool).expand(2, 2).round_()


def test_sums_of_nothing_are_zeros():
    for _ in range(3):
        assert T.inner(T.ones(3, 0), T.ones(2, 0)).tolist() == [[0.0, 0.0]] * 3


@pytest.mark.parametrize("make", [T.empty, T.ones, T.rand, T.randn, T.ones(1).new_zeros, T.ones(1).new_empty])
def test_negative_sizes(make):
    with pytest.raises(RuntimeError, match=r"Trying to create tensor with negative dimension -1: \[2, -1\]"):
        make(2, -1)


def test_tolerances_are_not_negative():
    with pytest.raises(RuntimeError):
        T.testing.assert_close(T.ones(1), T.zeros(1), rtol=-1.0, atol=0.0)
