"""A Function's context is its node: who holds either has both, and what belongs to them, as long as he likes."""

import gc
import threading
import weakref

import pytest

from library import Square, T, assert_values, leaf

graph = T.autograd.graph
KEPT = []


class Exp(T.autograd.Function):
    """Keeps its result, and its context where everybody finds it."""

    @staticmethod
    def forward(ctx, x):
        KEPT.append(ctx)
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        KEPT.append(ctx)
        return g * ctx.saved_tensors[0]


@pytest.fixture(autouse=True)
def nothing_kept():
    KEPT.clear()
    yield
    KEPT.clear()


def test_a_held_context_keeps_its_node():
    x = leaf([2.0, 3.0])
    node = Square.apply(x).grad_fn
    gc.collect()
    assert node.saved_tensors[0] is x
    assert node.next_functions[0][0].variable is x and node.name() == "SquareBackward"
    assert len(node._raw_saved_tensors) == len(node._input_metadata) == 1
    node.metadata["note"] = 1
    gc.collect()
    assert node.metadata == {"note": 1} and node.next_functions[0][0].variable is x
    assert_values(node.apply(T.ones(2)), [4.0, 6.0])


def test_gradients_flow_through_a_node_without_its_output():
    x = leaf([2.0, 3.0])
    node = Square.apply(x).grad_fn
    seen = []
    first = node.register_hook(lambda inputs, outputs: seen.append("after"))
    node.register_prehook(lambda outputs: seen.append("before"))
    edge = graph.GradientEdge(node, 0)
    (grad,) = T.autograd.grad((edge,), (x,), (T.ones(2),), retain_graph=True)
    assert_values(grad, [4.0, 6.0])
    first.remove()
    T.autograd.grad((edge,), (x,), (T.ones(2),))
    assert seen == ["before", "after", "before"]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        node.saved_tensors  # noqa: B018


def test_a_saved_output_leads_to_the_node_again():
    x = leaf([0.0, 1.0])
    node = Exp.apply(x).grad_fn
    node.note = "here"
    KEPT.clear()
    (y,) = node.saved_tensors
    assert y.grad_fn is node
    del node
    gc.collect()
    assert y.grad_fn.note == "here"
    y.sum().backward()
    assert_values(x.grad, y.tolist())


def test_a_context_kept_by_forward_or_backward():
    x = leaf([0.0, 1.0])
    y = Exp.apply(x)
    assert KEPT[0] is y.grad_fn
    y.sum().backward()
    del y
    gc.collect()
    assert KEPT[0] is KEPT[1]
    assert KEPT[0].next_functions[0][0].variable is x
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        KEPT[0].saved_tensors  # noqa: B018


@pytest.mark.parametrize("recorded", [True, False])
def test_notes_that_forward_made(recorded):
    class Notes(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            KEPT.append(ctx)
            ctx.metadata["from"] = "forward"
            return x * 1

        @staticmethod
        def backward(ctx, g):
            assert ctx.metadata is KEPT[1]
            return g * len(ctx.metadata)

    x = leaf([2.0])
    y = Notes.apply(x if recorded else x.detach())
    KEPT.append(KEPT[0].metadata)
    assert KEPT[1] == {"from": "forward"} and KEPT[0]._input_metadata[1:] == ()
    if recorded:
        y.grad_fn.metadata["second"] = 1
        y.backward()
        assert_values(x.grad, [2.0])


def test_a_node_behind_another():
    x = leaf([2.0])
    last = Square.apply(Square.apply(x)).grad_fn
    last.next_functions[0][0].note = 1
    gc.collect()
    first = last.next_functions[0][0]
    del last
    assert first.note == 1 and first.saved_tensors[0] is x


def test_the_output_goes_in_another_thread():
    x = leaf([2.0])
    outputs = [Square.apply(x)]
    node = outputs[0].grad_fn
    thread = threading.Thread(target=outputs.clear)
    thread.start()
    thread.join()
    assert node.saved_tensors[0] is x


def test_contexts_go_at_once_when_nobody_holds_them():
    gc.disable()
    try:
        y = Square.apply(leaf([2.0]))
        node = y.grad_fn
        ghost = weakref.ref(node)
        del y
        assert node.saved_tensors and ghost() is node
        del node
        assert ghost() is None
    finally:
        gc.enable()


def test_a_saved_tensor_from_elsewhere_keeps_its_history():
    x, w = leaf([2.0]), leaf([3.0])
    elsewhere = w * w

    class Scaled(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(elsewhere, w)
            return x * elsewhere

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    y = Scaled.apply(x)
    saved = y.grad_fn.saved_tensors
    assert saved[0].requires_grad and saved[0].grad_fn is elsewhere.grad_fn and saved[1] is w
    (g,) = T.autograd.grad(y, x, create_graph=True)
    g.backward()
    assert_values(w.grad, [6.0])


def test_a_saved_output_that_is_not_differentiable_has_no_history():
    class Two(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            sign = x.sign()
            ctx.mark_non_differentiable(sign)
            ctx.save_for_backward(sign)
            return x.abs(), sign

        @staticmethod
        def backward(ctx, g, _):
            (sign,) = ctx.saved_tensors
            assert not sign.requires_grad and sign.grad_fn is None
            return g * sign

    x = leaf([-2.0, 3.0])
    Two.apply(x)[0].sum().backward()
    assert_values(x.grad, [-1.0, 1.0])
