"""Hooks that are assigned as a whole, and attributes that cannot be deleted."""

import gc
import weakref
from collections import OrderedDict

import pytest

from library import T


def times(n):
    return lambda g: g * n


def leaf():
    return T.ones(2, requires_grad=True)


def gradient(x):
    x.grad = None
    x.sum().backward()
    return x.grad.tolist()


def test_hooks_in_a_dictionary():
    x, hooks = leaf(), OrderedDict({3: times(2), 7: times(5)})
    x._backward_hooks = hooks
    assert x._backward_hooks is hooks and gradient(x) == [10.0, 10.0]
    hooks[8] = times(10)
    assert gradient(x) == [100.0, 100.0]
    del hooks[3]
    assert gradient(x) == [50.0, 50.0]
    x._backward_hooks = None
    assert x._backward_hooks is None and gradient(x) == [1.0, 1.0]


def test_a_later_hook_joins_the_dictionary():
    x, hooks = leaf(), OrderedDict({50: times(5)})
    x._backward_hooks = hooks
    handle = x.register_hook(lambda g: g + 1)
    assert list(hooks) == [50, handle.id] and gradient(x) == [6.0, 6.0]
    handle.remove()
    assert list(hooks) == [50] and gradient(x) == [5.0, 5.0]


def test_earlier_hooks_are_replaced():
    x = leaf()
    handle = x.register_hook(times(3))
    x._backward_hooks = {0: times(2)}
    assert gradient(x) == [2.0, 2.0]
    handle.remove()
    x._backward_hooks = {}
    assert x._backward_hooks == {} and gradient(x) == [1.0, 1.0]


def test_hooks_of_one_tensor_for_another():
    x, y = leaf(), leaf()
    x.register_hook(times(4))
    y._backward_hooks = x._backward_hooks
    assert gradient(y) == [4.0, 4.0]


def test_what_was_computed_is_left_alone():
    x = leaf()
    y = x * 2
    y.register_hook(times(3))
    y._backward_hooks = None
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_after_accumulation():
    x, seen = leaf(), []
    x._post_accumulate_grad_hooks = {0: lambda t: seen.append(t.grad.tolist())}
    assert gradient(x) == [1.0, 1.0] and seen == [[1.0, 1.0]]


def test_hooks_that_fail():
    x = leaf()
    x._backward_hooks = {0: 3}
    with pytest.raises(TypeError, match="'int' object is not callable"):
        x.sum().backward()
    x._backward_hooks = {0: lambda g: 3}
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        x.sum().backward()


@pytest.mark.gradiron
def test_what_is_no_dictionary():
    """PyTorch takes anything, and dies of it in a backward."""
    x = leaf()
    for wrong in (3, "a", [times(2)]):
        with pytest.raises(TypeError, match="hooks must be a dict or None"):
            x._backward_hooks = wrong
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        T.ones(2)._backward_hooks = {0: times(2)}
    T.ones(2)._backward_hooks = OrderedDict()


@pytest.mark.gradiron
def test_a_cycle_through_assigned_hooks_is_collected():
    x = leaf()
    x._backward_hooks = {0: lambda g, x=x: g}
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    "name, kind, message",
    [
        ("requires_grad", RuntimeError, "requires_grad must be a bool"),
        ("data", RuntimeError, "Deleting tensor data is not allowed. Delete tensor instead!"),
        ("_grad_fn", RuntimeError, "Deletion of _grad_fn not allowed. Detach tensor instead!"),
        ("_backward_hooks", RuntimeError, "Deletion of _backwards_hooks not allowed!"),
        ("_post_accumulate_grad_hooks", RuntimeError, "Deletion of _post_accumulate_grad_hooks not allowed!"),
        *(
            (name, AttributeError, "is not writable")
            for name in "grad_fn shape dtype device is_leaf T output_nr _version".split()
        ),
    ],
)
def test_deletions(name, kind, message):
    x = leaf()
    with pytest.raises(kind, match=message):
        delattr(x, name)


def test_a_gradient_can_be_deleted():
    x = leaf()
    x.sum().backward()
    del x.grad
    assert x.grad is None


def test_a_history_can_be_forgotten():
    y = leaf() * 2
    with pytest.raises(RuntimeError, match="_grad_fn can be only set to None"):
        y._grad_fn = 3
    y._grad_fn = None
    assert y.grad_fn is None and y.is_leaf and not y.requires_grad
