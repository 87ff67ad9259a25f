"""Which backwards count for a hook of several gradients, and what else hooks of nodes are shown and may return."""

import pytest

from library import T


def leaf():
    return T.ones(2).requires_grad_()


def listening(*tensors):
    """What a hook of these tensors is shown, a list of gradients each time."""
    seen = []
    handle = T.autograd.graph.register_multi_grad_hook(tensors, lambda gs: seen.append([g is not None for g in gs]))
    return seen, handle


def test_a_single_root_is_not_waited_for():
    x = leaf()
    y = x * 2
    seen, _ = listening(y)
    y.backward(T.ones(2))
    assert seen == []
    y = x * 2
    seen, _ = listening(x, y)
    y.backward(T.ones(2))
    assert seen == [[False, True], [True, False]]


def test_a_leaf_that_is_the_root_is_not_waited_for():
    x = leaf()
    seen, _ = listening(x)
    x.backward(T.ones(2))
    assert seen == []


def test_several_roots_are_waited_for():
    x = leaf()
    y = x * 2
    seen, _ = listening(x, y)
    T.autograd.backward([y, x], [T.ones(2), T.ones(2)])
    assert seen == [[True, True]]


def test_returned_gradients_of_leaves_cannot_be_waited_for():
    x = leaf()
    _, handle = listening(x)
    with pytest.raises(RuntimeError, match="A leaf node was passed to _will_engine_execute_node"):
        T.autograd.grad((x * 2).sum(), x)
    handle.remove()
    assert T.autograd.grad((x * 2).sum(), x)[0].tolist() == [2.0, 2.0]


def test_wanted_leaves_can():
    x = leaf()
    seen, _ = listening(x)
    (x * 2).sum().backward(inputs=[x])
    assert seen == [[True]]


def test_no_node_leads_to_a_view_made_unrecorded():
    with T.no_grad():
        view = leaf().view(1, 2)
    assert view.requires_grad
    with pytest.raises(AssertionError):
        T.autograd.graph.get_gradient_edge(view)
    with pytest.raises(AssertionError):
        T.autograd.graph.register_multi_grad_hook((view,), print)


class Scaled(T.autograd.Function):
    @staticmethod
    def forward(ctx, number, x, name, y):
        ctx.number = number
        return x * number + y

    @staticmethod
    def backward(ctx, g):
        return None, g * ctx.number, None, g


def test_hooks_of_a_function_see_its_tensors():
    x, y, shown = leaf(), T.ones(2), []
    z = Scaled.apply(3, x, "name", y)
    z.grad_fn.register_hook(lambda gi, go: shown.append([g is not None for g in gi]))
    z.grad_fn.register_hook(lambda gi, go: (gi[0] * 2, None))
    z.sum().backward()
    assert shown in ([[True, True]], [[True, False]]) and x.grad.tolist() == [6.0, 6.0]


def test_what_runs_after_a_leaf_returns_nothing():
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(RuntimeError, match="Tensor post accumulate grad hooks should return None"):
        (x * 2).sum().backward()
    assert x.grad is not None


def test_a_size_that_stays_is_no_write():
    x = T.ones(4)
    view = x.view(4)
    view.resize_(4)
    view.resize_as_(T.ones(4))
    assert x._version == 0
    view.resize_(2, 2)
    assert x._version == 1
