"""`utils.swap_tensors`: two tensors become each other."""

import gc
import weakref

import pytest

from library import IS_GRADIRON, T, assert_values, leaf

swap = T.utils.swap_tensors


class Tagged(T.Tensor):
    pass


class Slotted(T.Tensor):
    __slots__ = ("mark",)


def test_values_and_gradients():
    a, b = leaf([1.0, 2.0]), T.zeros(3, dtype=T.float64)
    (a * a).sum().backward()
    a.note = "a"
    names = id(a), id(b)
    swap(a, b)
    assert (id(a), id(b)) == names
    assert a.tolist() == [0.0, 0.0, 0.0] and a.dtype == T.float64 and not a.requires_grad and a.grad is None
    assert b.tolist() == [1.0, 2.0] and b.requires_grad and b.is_leaf
    assert_values(b.grad, [2.0, 4.0])
    assert b.note == "a" and not hasattr(a, "note")
    (b * 3).sum().backward()
    assert_values(b.grad, [5.0, 7.0])
    swap(a, b)
    assert_values(a.grad, [5.0, 7.0])


def test_histories():
    x = leaf([1.0, 2.0])
    y, z = x * 2, T.ones(2)
    swap(y, z)
    assert y.grad_fn is None and z.grad_fn.name() == "MulBackward0" and z.requires_grad
    z.sum().backward()
    assert_values(x.grad, [2.0, 2.0])


def test_what_was_saved_stays():
    x, other = T.tensor([3.0]), T.tensor([7.0])
    w = leaf([2.0])
    y = w.exp()
    z = T.ones(1)
    value = y.item()
    swap(y, z)
    z.backward()
    assert w.grad.item() == value
    swap(x, other)
    assert x.item() == 7.0 and other.item() == 3.0


def test_classes():
    a, b = T.ones(2).as_subclass(Tagged), T.zeros(2)
    swap(a, b)
    assert type(a) is T.Tensor and type(b) is Tagged
    assert b.tolist() == [1.0, 1.0]
    p, q = T.nn.Parameter(T.ones(2)), T.nn.Parameter(T.zeros(3))
    swap(p, q)
    assert type(p) is T.nn.Parameter and p.shape == (3,) and p.requires_grad


def test_slots():
    a, b = T.ones(1).as_subclass(Slotted), T.zeros(1).as_subclass(Slotted)
    a.mark = 3
    swap(a, b)
    assert b.mark == 3 and not hasattr(a, "mark") and b.item() == 1.0
    with pytest.raises(RuntimeError, match="Cannot swap t1 and t2 if they have different slots"):
        swap(a, T.ones(1))


def test_a_graph_of_before_is_refused():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = (a.view(2) + b.view(2)).sum()
    swap(a, b)
    with pytest.raises(RuntimeError, match="Trying to execute AccumulateGrad node that was poisoned by swap_tensors"):
        y.backward()


def test_who_looks_on():
    a, b = leaf([1.0, 1.0]), T.zeros(2)
    watch = weakref.ref(a)
    with pytest.raises(RuntimeError, match="Cannot swap t1 because it has weakref associated with it"):
        swap(a, b)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref associated with it"):
        swap(b, a)
    del watch
    part = a[:1]
    with pytest.raises(RuntimeError, match="Expected use_count of t1 to be 1 or 2 with an AccumulateGrad node but got"):
        swap(a, b)
    del part
    gc.collect()
    swap(a, b)
    assert a.tolist() == [0.0, 0.0]


@pytest.mark.gradiron
def test_what_is_not_supported():
    base = T.ones(2)
    with pytest.raises(NotImplementedError, match="t1 is a view"):
        swap(base.view(2), T.ones(1))
    x = leaf([1.0])
    x.register_hook(lambda g: g)
    with pytest.raises(NotImplementedError, match="t2 is watched by hooks"):
        swap(T.ones(1), x)
    with T.autograd.forward_ad.dual_level():
        dual = T.autograd.forward_ad.make_dual(T.ones(1), T.ones(1))
        with pytest.raises(NotImplementedError):
            swap(dual, T.ones(1))


def test_views_that_nobody_else_shows():
    a, b = T.ones(2).view(2), T.arange(3.0)
    swap(a, b)
    assert a.tolist() == [0.0, 1.0, 2.0] and b.tolist() == [1.0, 1.0]
    w = leaf([2.0, 3.0])
    b.mul_(w)
    b.sum().backward()
    assert_values(w.grad, [1.0, 1.0])
    base = T.ones(3)
    if IS_GRADIRON:
        with pytest.raises(NotImplementedError, match="t1 is a view, which is not supported"):
            swap(base[:2], b)
