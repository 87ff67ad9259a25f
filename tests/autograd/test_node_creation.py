"""`node_creation_hook`: told of each node that is made, when it is complete."""

import threading

import pytest

from library import Square, T, assert_values, leaf

watching = T.autograd.graph.node_creation_hook


def names_of(act):
    """The names of the nodes that `act` makes, without those of views made anew, which come at other moments."""
    names = []
    with watching(lambda node: names.append(node.name())):
        act()
    return [name.removeprefix("torch::autograd::") for name in names if name != "AsStridedBackward0"]


def test_nodes_come_complete():
    seen = []

    def look(node):
        seen.append((node.name(), [edge and edge.name() for edge, _ in node.next_functions]))
        if node.name() == "MulBackward0":
            assert node._saved_self is not None
            assert len(node._input_metadata) == 1

    x = leaf([1.0, 2.0])
    with watching(look):
        y = x * x
        y.exp()
    accumulate = "torch::autograd::AccumulateGrad"
    assert seen == [(accumulate, []), ("MulBackward0", [accumulate, accumulate]), ("ExpBackward0", ["MulBackward0"])]


def test_the_node_is_the_tensor_s():
    nodes = []
    with watching(nodes.append):
        y = leaf([1.0]) * 2
    assert nodes[-1] is y.grad_fn


def test_a_leaf_s_node_is_new_when_no_graph_has_it():
    x = leaf([1.0])
    kept = x * 2
    assert names_of(lambda: x * 3) == ["MulBackward0"]
    del kept
    assert names_of(lambda: x * 3) == ["AccumulateGrad", "MulBackward0"]
    assert names_of(lambda: x * 3) == ["AccumulateGrad", "MulBackward0"]


def test_notes_of_an_old_leaf_s_node_are_gone():
    x = leaf([1.0])
    calls = []

    def hang(node):
        node.metadata.setdefault("seen", 0)
        node.metadata["seen"] += 1
        node.register_prehook(lambda grads: calls.append(node.name()))

    with watching(hang):
        for _ in range(3):
            y = x * 2
            assert y.grad_fn.next_functions[0][0].metadata == {"seen": 1}
            y.sum().backward()
            del y
    assert calls.count("torch::autograd::AccumulateGrad") == 3


def test_hooks_hung_at_creation_run():
    ran = []
    x = leaf([1.0]) + 1

    def hang(node):
        node.register_hook(lambda inputs, outputs: ran.append(node.name()))

    with watching(hang):
        y = (x * 2).sum()
    y.backward()
    assert ran == ["SumBackward0", "MulBackward0"]


def test_views_writes_and_lists():
    x = leaf([1.0, 2.0, 3.0, 4.0])
    assert names_of(lambda: x.view(2, 2)) == ["AccumulateGrad", "ViewBackward0"]
    assert names_of(lambda: x.split(2)) == ["AccumulateGrad", "SplitBackward0"]
    h = x * 2
    assert names_of(lambda: h.mul_(3)) == ["MulBackward0"]
    assert names_of(lambda: T.cat([h, h])) == ["CatBackward0"]


def test_a_write_through_a_view_is_one_node():
    h = leaf([1.0, 2.0]) * 2
    part = h[:1]
    assert names_of(lambda: part.mul_(3)) == ["CopySlices"]
    assert names_of(lambda: h.__setitem__(0, 5.0)) == ["SelectBackward0", "CopySlices"]
    base, value = T.zeros(3), leaf([1.0]) * 2
    assert names_of(lambda: base.__setitem__(slice(0, 1), value)) == ["CopySlices"]


def test_a_custom_function_s_node_has_saved_its_tensors():
    seen = []

    def look(node):
        if node.name() == "SquareBackward":
            seen.append((node, len(node.saved_tensors), len(node.next_functions)))

    with watching(look):
        y = Square.apply(leaf([3.0]))
    assert seen == [(y.grad_fn, 1, 1)]


def test_nothing_is_told_where_nothing_is_recorded():
    x = leaf([1.0])
    assert names_of(lambda: T.ones(2) * 2) == []
    with T.no_grad():
        assert names_of(lambda: x * 2) == []
    assert names_of(lambda: x.detach()) == []


def test_double_backward_and_another_thread():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    assert "MulBackward0" in names_of(lambda: T.autograd.grad(y, x, create_graph=True))

    def elsewhere():
        worker = threading.Thread(target=lambda: x * 2)
        worker.start()
        worker.join()

    assert names_of(elsewhere) == []


def test_nested_hooks_are_called_outermost_first():
    order = []
    x = leaf([1.0])
    kept = x * 2
    with watching(lambda node: order.append("outer")):
        with watching(lambda node: order.append("inner")):
            x + 1
        x + 1
    x + 1
    assert order == ["outer", "inner", "outer"]
    assert_values(kept, [2.0])


def raising(error):
    def hook(node):
        raise error

    return hook


def test_an_error_of_a_hook_is_the_operator_s():
    x = leaf([1.0, 2.0])
    with watching(raising(ValueError("no"))):
        with pytest.raises(ValueError, match="no"):
            x * 2
        with pytest.raises(ValueError, match="no"):
            x.clone().mul_(2)
    assert_values((x * 2), [2.0, 4.0])


def test_an_error_of_a_hook_leaves_the_block():
    x = leaf([1.0, 2.0])
    with pytest.raises(ValueError, match="no"), watching(raising(ValueError("no"))):
        x.view(2, 1)
    assert_values(x * 2, [2.0, 4.0])


def test_a_hook_makes_no_nodes():
    x = leaf([1.0])
    message = "Creating a new autograd node from inside a node creation hook is not supported"
    with watching(lambda node: x * 2), pytest.raises(RuntimeError, match=message):
        x * 3


def test_a_hook_returns_nothing():
    x = leaf([1.0])
    with watching(lambda node: 3), pytest.raises(RuntimeError, match="node creation hook must return None, got int"):
        x * 2


def test_a_hook_is_callable():
    with pytest.raises(TypeError, match=r"_push_node_creation_hook\(\): incompatible function arguments"), watching(3):
        pass


def test_checkpoints_recompute_under_the_hook():
    x = leaf([1.0])
    y = T.utils.checkpoint.checkpoint(lambda t: t.sin().cos(), x, use_reentrant=False)
    assert "SinBackward0" in names_of(y.sum().backward)
