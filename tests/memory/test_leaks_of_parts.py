"""Cycles through what the graph hands out piecemeal: saved values, contexts and their lists, tangents, arrays, classes."""

import gc
import sys
import weakref

import pytest
from test_leaks import Token, assert_collected, assert_memory_flat, patterns_in

from library import T

pytestmark = pytest.mark.gradiron  # PyTorch leaks several of these for good
graph = T.autograd.graph
SIZE = 2000


def new():
    return T.ones(SIZE, requires_grad=True)


class Asks(T.autograd.Function):
    """Its forward does with the context what it is told."""

    @staticmethod
    def forward(ctx, x, act):
        act(ctx, x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2, None

    @staticmethod
    def jvp(ctx, tangent, _):
        return tangent * 2


class Refused(Exception):
    pass


def refused(act, token):
    """A forward that fails after it filled a list of the context, which its argument knows."""

    def fill(ctx, x):
        x.token = token, ctx
        act(ctx, x)
        raise Refused

    with pytest.raises(Refused) as caught:
        Asks.apply(new(), fill)
    caught.value.__traceback__ = None


def a_saved_value_held_by_a_hook(token):
    y = new().exp()
    saved = y.grad_fn._raw_saved_result
    y.register_hook(lambda g: (saved, token) and None)


def a_saved_value_held_by_a_tensor(token):
    x = new()
    y = x.exp()
    x.register_hook(lambda g: (y, token) and None)
    x.saved = y.grad_fn._raw_saved_result


def a_saved_value_that_packs_itself(token):
    saved = new().exp().grad_fn._raw_saved_result
    saved.register_hooks(lambda t: (t, saved, token), lambda packed: packed[0])


def a_saved_value_that_was_freed(token):
    y = new().exp()
    saved = y.grad_fn._raw_saved_result
    y.register_hook(lambda g: (saved, token) and None)
    y.sum().backward()


def a_saved_value_with_attributes(token):
    y = new().exp()
    y.grad_fn._saved_result.token = token, y


def saved_values_held_by_their_context(token):
    def fill(ctx, x):
        ctx.save_for_backward(x)
        ctx.token = token

    ctx = Asks.apply(new(), fill).grad_fn
    ctx.raw = ctx._raw_saved_tensors


def what_was_to_be_saved(token):
    refused(lambda ctx, x: ctx.save_for_backward(x), token)


def what_was_to_be_saved_for_forward(token):
    refused(lambda ctx, x: ctx.save_for_forward(x), token)


def what_was_marked_as_written(token):
    refused(lambda ctx, x: ctx.mark_dirty(x), token)


def what_was_marked_as_not_differentiable(token):
    refused(lambda ctx, x: ctx.mark_non_differentiable(x), token)


def a_context_of_an_unrecorded_call(token):
    def fill(ctx, x):
        x.token = token, ctx
        ctx.save_for_forward(x)
        ctx.save_for_backward(x)

    with T.no_grad():
        Asks.apply(new(), fill)


def a_context_of_a_recorded_call(token):
    def fill(ctx, x):
        x.token = token, ctx
        ctx.save_for_forward(x)
        ctx.save_for_backward(x)

    Asks.apply(new(), fill)


def a_context_made_by_hand(token):
    ctx, x = T.autograd.function.FunctionCtx(), new()
    x.token = token, ctx
    ctx.save_for_backward(x)
    ctx.save_for_forward(x)
    ctx.mark_dirty(x)
    ctx.mark_non_differentiable(x)


def notes_of_a_node(token):
    y = new() * 2
    y.grad_fn.metadata["y"] = y, token


def notes_of_a_context(token):
    y = Asks.apply(new(), lambda ctx, x: None)
    y.grad_fn.metadata["y"] = y, token


def a_context_that_keeps_its_node_and_itself(token):
    node = Asks.apply(new(), lambda ctx, x: ctx.save_for_backward(x)).grad_fn
    node.me, node.token = node, token


def a_context_that_its_nodes_hook_holds(token):
    node = Asks.apply(new(), lambda ctx, x: None).grad_fn
    node.register_hook(lambda inputs, outputs: (node, token) and None)


def a_context_that_its_nodes_notes_hold(token):
    node = Asks.apply(new(), lambda ctx, x: None).grad_fn
    node.metadata["node"] = node, token


def a_context_held_by_a_node_behind_its_own(token):
    y = new() * 2
    node = Asks.apply(y, lambda ctx, x: None).grad_fn
    y.register_hook(lambda g: (node, token) and None)


def a_context_whose_hook_holds_a_tensor_above(token):
    y = Asks.apply(new(), lambda ctx, x: None)
    y.grad_fn.register_hook(lambda inputs, outputs: (z, token) and None)
    z = y.exp()
    z.node = y.grad_fn


def a_saved_tensor_from_elsewhere(token):
    w = new() * 2
    y = Asks.apply(new(), lambda ctx, x: ctx.save_for_backward(w))
    w.register_hook(lambda g: (y, token) and None)


def a_class_that_knows_its_result(token):
    class Doubles(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    Doubles.token, Doubles.result = token, Doubles.apply(new())


def a_tangent_that_holds_its_tensor(token):
    with T.autograd.forward_ad.dual_level():
        tangent = T.ones(SIZE)
        tangent.token = token, T.autograd.forward_ad.make_dual(new(), tangent)


def a_tangent_whose_history_holds_its_tensor(token):
    with T.autograd.forward_ad.dual_level():
        tangent = new() * 2
        dual = T.autograd.forward_ad.make_dual(new(), tangent)
        tangent.register_hook(lambda g: (dual, token) and None)


def a_context_in_forward_mode(token):
    def fill(ctx, x):
        ctx.save_for_forward(x)
        ctx.token = token, ctx, x

    with T.autograd.forward_ad.dual_level():
        Asks.apply(T.autograd.forward_ad.make_dual(new(), T.ones(SIZE)), fill)


def an_edge_held_by_its_tensor(token):
    y = new() * 2
    edge = graph.get_gradient_edge(y)
    y.edge = edge, token
    edge.node.register_hook(lambda inputs, outputs: (edge, token) and None)


def an_end_of_the_graph_held_by_its_leaf(token):
    x = new()
    end = (x * 2).grad_fn.next_functions[0][0]
    x.end = end, token
    end.register_hook(lambda *_: (x, token) and None)
    end.register_prehook(lambda *_: (end, token) and None)


def a_handle_held_by_a_hook(token):
    x = new()
    handle = x.register_hook(lambda g: None)
    x.handle = handle, token
    x.register_hook(lambda g: (handle, token) and None)


def values_kept_for_writes(token):
    x = new()
    with graph.allow_mutation_on_saved_tensors() as kept:
        y = x.clone()
        z = y.exp() * y
        y.token, y.z = token, z
        y.mul_(2)
        x.kept = kept, y


def the_error_of_an_anomaly(token):
    x = new()
    x.token = token
    y = x.exp()
    y.register_hook(lambda g: 1 / 0)
    try:
        y.sum().backward()
    except ZeroDivisionError as error:
        x.error = error


def a_view_written_in_place(token):
    whole = new() * 2
    part = whole[:2]
    part.register_hook(lambda g: (whole, token) and None)
    part.mul_(3)
    whole.register_hook(lambda g: (part, token) and None)


def an_array_held_by_its_tensor(token):
    x = T.ones(SIZE)
    x.array, x.token = x.numpy(), token


def a_capsule_held_by_its_tensor(token):
    x = T.ones(SIZE)
    x.other, x.token = T.from_dlpack(x), token
    x.other.first = x


def gradients_of_each_other(token):
    x, y = new(), new()
    x.grad, y.grad = y, x


def a_gradient_that_is_a_view_of_its_tensor(token):
    x = T.ones(SIZE)
    x.grad = x.view(SIZE)


def a_ring_of_gradients_and_views(token):
    x, y, z = T.ones(SIZE), T.ones(SIZE), T.ones(SIZE)
    x.grad, y.grad, z.grad = y.view(SIZE), z, x.view(SIZE)
    y.grad.grad = T.ones(SIZE)


def samples_of_vmap(token):
    x = new()

    def keeps(sample):
        x.sample = sample
        sample.token, sample.me = token, sample
        return sample * 2

    x.result = T.func.vmap(keeps)(x)


def arguments_of_func(token):
    x = new()

    def keeps(argument):
        x.argument = argument
        argument.token, argument.me = token, argument
        return (argument * 2).sum()

    x.gradient = T.func.grad(keeps)(x)
    x.tangent = T.func.jvp(keeps, (T.ones(SIZE),), (T.ones(SIZE),))


PATTERNS = patterns_in(globals())
named = pytest.mark.parametrize("pattern", PATTERNS, ids=lambda f: f.__name__)


@named
def test_is_collected(pattern):
    assert_collected(pattern)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@named
def test_memory_stays_flat(pattern):
    assert_memory_flat(pattern, first=100)


def test_what_a_saved_value_shows_stays_while_it_is_held():
    y = new().exp()
    saved = y.grad_fn._raw_saved_result
    token = Token()
    ghost = weakref.ref(token)
    y.register_hook(lambda g, saved=saved, token=token: (saved, token) and None)
    del y, token
    gc.collect()
    assert ghost() is not None
    assert saved.unpack().shape == (SIZE,)
    del saved
    gc.collect()
    assert ghost() is None


def test_a_level_that_stays_entered_keeps_no_cycle():
    forward = T.autograd.forward_ad
    level = forward.enter_dual_level()
    try:
        token = Token()
        ghost = weakref.ref(token)
        tangent = new() * 2
        dual = forward.make_dual(new(), tangent, level=level)
        tangent.register_hook(lambda g, dual=dual, token=token: (dual, token) and None)
        del tangent, dual, token
        gc.collect()
        assert ghost() is None
    finally:
        forward.exit_dual_level(level=level)


def test_a_ring_that_somebody_holds_stays():
    x, y = T.ones(3), T.ones(3)
    x.grad, y.grad = y, x.view(3)
    held = x.grad
    del x, y
    gc.collect()
    assert held.grad._base.grad is held
    other = held.grad
    del held
    gc.collect()
    assert other._base.grad.grad is other
