"""`Tensor.grad_dtype`: in which dtype a leaf's gradients come."""

import pytest

from library import T, assert_values, leaf


class Widens(T.autograd.Function):
    """Hands a wider gradient on than it was given."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g.double()


def test_a_tensor_s_own_at_first():
    assert T.ones(2).grad_dtype == T.float32
    assert T.ones(2, dtype=T.int64).grad_dtype == T.int64
    x = leaf([1.0], kind="float64")
    assert x.grad_dtype == (x * 2).grad_dtype == T.float64
    x.data = T.ones(1).half()
    assert x.grad_dtype == T.float16


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64", "complex64"])
def test_gradients_come_converted(kind):
    x, dtype = leaf([1.0, 2.0]), getattr(T, kind)
    seen = []
    x.register_hook(lambda g: seen.append(g.dtype))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.dtype))
    early = x * 3
    x.grad_dtype = dtype
    assert x.grad_dtype == dtype and x.dtype == T.float32
    for y in (early, x * 2, (x * x).view(2)):
        y.sum().backward()
        assert x.grad.dtype == dtype
    assert seen == [dtype] * 6
    assert x.grad.tolist() == [7.0, 9.0]
    assert T.autograd.grad((x * 2).sum(), x)[0].dtype == dtype


def test_at_the_root_itself_and_with_a_graph():
    x = leaf([1.0])
    x.grad_dtype = T.float64
    x.backward()
    assert x.grad.dtype == T.float64
    (gradient,) = T.autograd.grad(x * x, x, create_graph=True)
    assert gradient.dtype == T.float64
    assert T.autograd.grad(gradient, x)[0].tolist() == [2.0]


def test_none_lets_any_in():
    x = leaf([1.0])
    x.grad_dtype = None
    assert x.grad_dtype is None
    Widens.apply(x).backward()
    assert x.grad.dtype == T.float64
    (x * 2).backward()
    assert_values(x.grad, [3.0])
    assert x.grad.dtype == T.float64
    x.grad = T.ones(1, dtype=T.float16)
    assert x.grad.dtype == T.float16
    y = leaf([1.0])
    Widens.apply(y).backward()
    assert y.grad.dtype == T.float32


def test_it_stays_with_the_tensor_alone():
    x = leaf([1.0])
    x.grad_dtype = T.float64
    for other in (x.detach(), x.clone(), x.view(1), x * 1):
        assert other.grad_dtype == T.float32
    x.requires_grad_(False)
    x.data = T.ones(1).half()
    assert x.grad_dtype == T.float64
    x.requires_grad_()
    (x * 2).backward()
    assert x.grad.dtype == T.float64


def test_no_node_is_made_for_it():
    nodes = []
    with T.autograd.graph.node_creation_hook(nodes.append):
        leaf([1.0]).grad_dtype = T.float64
    assert nodes == []


def test_before_a_gradient_is_wanted():
    x = T.ones(2)
    x.grad_dtype = T.float64
    (x.requires_grad_() * 2).sum().backward()
    assert x.grad.dtype == T.float64


def test_what_a_function_declares():
    class Declares(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, dtype):
            ctx.set_output_grad_dtype(dtype)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g, None

    x = leaf([1.0])
    assert Declares.apply(x, T.float16).grad_dtype == T.float16
    assert Declares.apply(x, None).grad_dtype is None


def test_errors():
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match=r"grad_dtype must be a torch\.dtype or None, but got int"):
        x.grad_dtype = 3
    with pytest.raises(RuntimeError, match="grad_dtype can only be set on leaf tensors"):
        (x * 2).grad_dtype = T.float16
    x.grad_dtype = T.float16
    message = "attempting to assign a gradient with dtype 'float' to a tensor with grad_dtype 'Half'. The gradient must match"
    with pytest.raises(RuntimeError, match=message):
        x.grad = T.ones(2)
    x.grad = T.ones(2).half()
    message = "Cannot set grad_dtype to 'Float' because there is already a gradient with dtype 'c10::Half'"
    with pytest.raises(RuntimeError, match=message):
        x.grad_dtype = T.float32
    x.grad_dtype = None
    x.grad = None
    x.grad_dtype = T.float32


@pytest.mark.gradiron
def test_whole_numbers_are_no_gradients():
    """PyTorch's own assertion fails in the backward, and deleting the attribute ends its process."""
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="gradients are floating point or complex, not int64"):
        x.grad_dtype = T.int64
    with pytest.raises(AttributeError):
        del x.grad_dtype
