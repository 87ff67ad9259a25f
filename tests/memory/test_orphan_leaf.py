"""A leaf that only its graph holds: its gradient goes on where it was, and whoever asks the graph for it has it again."""

import gc
import weakref

import pytest

from library import IS_GRADIRON, T, assert_values, leaf


def graph_of(values=(1.0, 2.0), grad=None):
    """Three times a leaf, and the leaf's end."""
    w = leaf(list(values))
    w.grad = grad
    y = w * 3
    return y, y.grad_fn.next_functions[0][0]


def test_a_gradient_reaches_a_leaf_without_a_name():
    y, end = graph_of()
    y.sum().backward()
    assert_values(end.variable.grad, [3.0, 3.0])
    assert end.variable.requires_grad and end.variable.is_leaf
    assert end.variable.grad_fn is None


def test_gradients_add_up_there():
    y, end = graph_of(grad=T.tensor([10.0, 20.0]))
    y.sum().backward(retain_graph=True)
    assert_values(end.variable.grad, [13.0, 23.0])
    y.sum().backward(retain_graph=True)
    held = end.variable
    y.sum().backward()
    assert end.variable is held
    assert_values(held.grad, [19.0, 29.0])


def test_a_gradient_that_others_name_is_added_to():
    given = T.tensor([10.0, 20.0])
    y, end = graph_of(grad=given)
    y.sum().backward()
    assert_values(given, [13.0, 23.0])
    assert end.variable.grad is given


def test_its_gradient_can_be_written_and_taken_away():
    y, end = graph_of()
    y.sum().backward(retain_graph=True)
    end.variable.grad.zero_()
    y.sum().backward(retain_graph=True)
    assert_values(end.variable.grad, [3.0, 3.0])
    end.variable.grad = None
    y.sum().backward()
    assert_values(end.variable.grad, [3.0, 3.0])


def test_it_is_the_leaf_of_what_is_computed_of_it():
    y, end = graph_of()
    again = end.variable
    z = again.square()
    assert z.grad_fn.next_functions[0][0] is end
    (y.sum() + z.sum()).backward()
    assert_values(again.grad, [5.0, 7.0])
    again.grad.zero_()
    del again
    assert_values(end.variable.grad, [0.0, 0.0])


def test_a_leaf_that_wants_no_gradient_any_more_gets_none():
    w = leaf([1.0])
    y = w * 3
    end = y.grad_fn.next_functions[0][0]
    w.requires_grad_(False)
    del w
    y.sum().backward()
    assert end.variable.grad is None and not end.variable.requires_grad


def test_hooks_see_it_with_its_gradient():
    seen = []
    w = leaf([1.0, 2.0])
    w.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    y = w * 3
    del w
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert seen == [[3.0, 3.0], [6.0, 6.0]]


@pytest.mark.skipif(not IS_GRADIRON, reason="PyTorch has a leak here")
def test_a_gradient_with_a_history_goes_with_the_leaf():
    w = leaf([1.0, 2.0])
    y = w.pow(3)
    y.sum().backward(create_graph=True)
    gone = weakref.ref(w.grad.grad_fn)
    end = y.grad_fn.next_functions[0][0]
    del w, y
    gc.collect()
    assert gone() is None and end.variable.grad is None


def test_what_hangs_on_its_gradient_is_collected():
    class Thing:
        pass

    def build():
        thing = Thing()
        y, end = graph_of()
        y.sum().backward(retain_graph=True)
        end.variable.grad.note = thing
        thing.graph = y
        return weakref.ref(thing)

    gone = build()
    gc.collect()
    gc.collect()
    assert gone() is None or not IS_GRADIRON
