"""What a node saved of an input is that very tensor, while anybody holds it; the node itself keeps the values only."""

import gc
import weakref

import pytest

from library import IS_GRADIRON, T, assert_values, leaf


class Keeps(T.autograd.Function):
    """x * w, which shows what it saved to `seen`."""

    seen = []

    @staticmethod
    def forward(ctx, x, w, *others):
        ctx.save_for_backward(x, w, *others)
        return x * w

    @staticmethod
    def backward(ctx, grad):
        Keeps.seen.append((ctx.saved_tensors, ctx.saved_tensors))
        x, w, *others = ctx.saved_tensors
        return grad * w, grad * x, *(None for _ in others)


@pytest.fixture(autouse=True)
def nothing_seen():
    Keeps.seen.clear()


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda x: x.log(), "self"),
        (lambda x: x * leaf([2.0]), "self"),
        (lambda x: leaf([2.0]) * x, "other"),
        (lambda x: x[:1].exp() + x.sin(), None),
        (lambda x: x.gather(0, T.tensor([0])), None),
        (lambda x: T.where(x > 0, x.cos(), x), None),
    ],
)
@pytest.mark.parametrize("kind", [lambda: leaf([1.0, 2.0]), lambda: leaf([1.0, 2.0]) * 1, lambda: leaf([0.0, 1.0, 2.0])[1:]])
def test_an_input_comes_back_as_itself(make, name, kind):
    x = kind()
    y = make(x)
    (g,) = T.autograd.grad(y.sum(), x, create_graph=True)
    if name is not None:
        assert getattr(y.grad_fn, f"_saved_{name}") is x
        assert getattr(y.grad_fn, f"_raw_saved_{name}").data is x
    assert g.shape == x.shape


def test_arguments_come_back_as_themselves():
    x, index, mask = leaf([1.0, 2.0]), T.tensor([1, 0]), T.tensor([True, False])
    assert x.gather(0, index).grad_fn._saved_index is index
    assert T.where(mask, x, 0.0).grad_fn._saved_condition is mask


def test_an_output_comes_back_as_another():
    y = leaf([1.0]).exp()
    assert y.grad_fn._saved_result is not y
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn


def test_what_a_function_saved_is_itself():
    a, constant, index = leaf([1.0, 2.0]), T.ones(2), T.tensor([1])
    computed = a * 3
    constant.note = "mine"
    y = Keeps.apply(computed, constant, index)
    y.sum().backward()
    ((once, again),) = Keeps.seen
    assert once[0] is computed and once[1] is constant and once[2] is index
    assert all(x is y for x, y in zip(once, again))
    assert once[1].note == "mine"


def test_what_nobody_holds_is_the_same_each_time():
    def build():
        a = leaf([1.0, 2.0])
        return Keeps.apply(a * 3, a * 2), (a * 3).log()

    y, z = build()
    y.sum().backward()
    ((once, again),) = Keeps.seen
    assert all(x is y for x, y in zip(once, again))
    first = z.grad_fn._saved_self
    first.note = 1
    assert z.grad_fn._saved_self is first and z.grad_fn._saved_self.note == 1


def test_a_saved_leaf_gets_its_gradient_of_a_second_order():
    x, w = leaf([2.0]), T.tensor([3.0])
    y = x.pow(3) * w
    w.requires_grad_()
    (g,) = T.autograd.grad(y.sum(), x, create_graph=True)
    g.sum().backward()
    assert_values(w.grad, [12.0])
    assert_values(x.grad, [36.0])


def test_other_values_under_a_saved_tensor_count():
    x = leaf([1.0, 2.0])
    t = x * 2
    w = T.ones(2)
    y = t.square() + x * w
    t.data = T.tensor([5.0, 6.0])
    w.data = T.tensor([10.0, 20.0])
    y.sum().backward()
    assert_values(x.grad, [30.0, 44.0])


def test_a_saved_tensor_that_was_cut_off_is_refused():
    x = leaf([1.0, 2.0])
    t = x * 2
    y = t.square()
    t.detach_()
    with pytest.raises(RuntimeError, match="saved tensor that has been detached in-place"):
        y.sum().backward()


def test_what_a_write_in_place_saved_is_not_its_target():
    y = leaf([1.0, 2.0]) * 1
    y.pow_(3)
    saved = y.grad_fn._saved_self
    assert saved is not y
    assert_values(saved, [1.0, 2.0])


@pytest.mark.skipif(not IS_GRADIRON, reason="a node of PyTorch's keeps the tensor")
def test_a_node_does_not_keep_the_tensor():
    x = leaf([1.0, 2.0])
    t = x * 2
    y = t.square()
    gone = weakref.ref(t)
    del t
    gc.collect()
    assert gone() is None
    y.sum().backward()
    assert_values(x.grad, [8.0, 16.0])


def test_a_tensor_at_the_place_of_one_that_is_gone_is_another():
    for _ in range(50):
        x = leaf([1.0, 2.0])
        y = (x * 3).square()
        others = [T.ones(2) for _ in range(20)]
        for other in others:
            other.requires_grad_()
        y.sum().backward()
        assert_values(x.grad, [18.0, 36.0])
        assert all(other.grad is None for other in others)
