"""The graph as objects: nodes and what they tell, gradient edges, hooks on several tensors, callbacks after a backward."""

import gc

import pytest

from library import IS_GRADIRON, T, assert_values, leaf, tensor

graph = T.autograd.graph


class Double(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def accumulator(x):
    return x.view_as(x).grad_fn.next_functions[0][0]


# Nodes.


@pytest.mark.parametrize(
    "make, name",
    [
        (lambda x: x * 2, "MulBackward0"),
        (lambda x: x.exp(), "ExpBackward0"),
        (lambda x: Double.apply(x), "DoubleBackward"),
        (lambda x: x.sum(), "SumBackward0"),
        (lambda x: x.clone(), "CloneBackward0"),
    ],
)
def test_names(make, name):
    node = make(leaf([1.0, 2.0])).grad_fn
    assert node.name() == name and type(node).__name__ == name
    assert name in repr(node) and "object at 0x" in repr(node)


def test_next_functions():
    x, y = leaf([1.0]), leaf([2.0])
    z = x * y + x * tensor([3.0])
    (a, i), (b, j) = z.grad_fn.next_functions
    assert (a.name(), i, b.name(), j) == ("MulBackward0", 0, "MulBackward0", 0)
    assert [n.name() for n, _ in a.next_functions] == ["torch::autograd::AccumulateGrad"] * 2
    assert b.next_functions[1] == (None, 0)
    assert a.next_functions[0][0] is b.next_functions[0][0]
    assert a.next_functions[0][0].next_functions == ()


def test_number_of_an_output():
    a, b = (leaf([1.0, 2.0]) * 1).unbind()
    assert (b * 2).grad_fn.next_functions[0] == (a.grad_fn, 1)
    assert a.grad_fn is b.grad_fn
    assert (a.output_nr, b.output_nr) == (0, 1)


def test_leaves():
    x = leaf([1.0])
    node = accumulator(x)
    assert node.variable is x
    assert type(node).__name__ == "AccumulateGrad" and node.name() == "torch::autograd::AccumulateGrad"
    assert accumulator(x) is node
    with pytest.raises(AttributeError, match="has no attribute 'variable'"):
        (x * 2).grad_fn.variable
    assert "variable" in dir(node) and "variable" not in dir((x * 2).grad_fn)


def test_a_leaf_that_only_the_graph_holds():
    y = leaf([1.0, 2.0]) * 2
    gc.collect()
    y.sum().backward()
    again = y.grad_fn.next_functions[0][0].variable
    assert again.tolist() == [1.0, 2.0] and again.is_leaf and again.requires_grad


def test_identity():
    y = leaf([1.0]) * 2
    assert y.grad_fn is y.grad_fn and y.grad_fn == y.grad_fn and hash(y.grad_fn) == hash(y.grad_fn)
    z = y + 1
    assert z.grad_fn.next_functions[0][0] is y.grad_fn
    assert y.grad_fn != z.grad_fn
    assert {y.grad_fn: 1, z.grad_fn: 2}[y.grad_fn] == 1


def test_no_such_attribute():
    with pytest.raises(AttributeError, match="'MulBackward0' object has no attribute 'other_thing'"):
        (leaf([1.0]) * 2).grad_fn.other_thing


def test_node_class():
    y = leaf([1.0]) * 2
    for node in (y.grad_fn, accumulator(leaf([1.0])), Double.apply(y).grad_fn):
        assert isinstance(node, graph.Node) and issubclass(type(node), graph.Node)
    for other in (y, 3, None, Double):
        assert not isinstance(other, graph.Node)
    with pytest.raises(TypeError, match="Can't instantiate abstract class Node"):
        graph.Node()


@pytest.mark.parametrize("make", [lambda x: x * 2, Double.apply], ids=["operator", "function"])
def test_metadata(make):
    y = make(leaf([1.0]))
    assert y.grad_fn.metadata == {} and y.grad_fn.metadata is y.grad_fn.metadata
    y.grad_fn.metadata["key"] = [1, 2]
    gc.collect()
    assert y.grad_fn.metadata == {"key": [1, 2]}
    assert (y + 1).grad_fn.metadata == {}
    y.backward()
    assert y.grad_fn.metadata == {"key": [1, 2]}


def test_metadata_of_a_leaf():
    x = leaf([1.0])
    node = accumulator(x)
    node.metadata["key"] = 1
    assert accumulator(x).metadata == {"key": 1}


@pytest.mark.skipif(not IS_GRADIRON, reason="PyTorch does not free this cycle")
def test_metadata_that_holds_its_tensor_is_freed():
    live = T._core.live_nodes()
    for _ in range(10):
        y = leaf([1.0]) * 2
        y.grad_fn.metadata["self"] = y
        del y
    gc.collect()
    assert T._core.live_nodes() <= live + 2


@pytest.mark.parametrize("make", [lambda x: x.sum(0), lambda x: x.sum(0).double(), lambda x: Double.apply(x.sum(0))])
def test_input_metadata(make):
    y = make(leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    (about,) = y.grad_fn._input_metadata
    assert (about.dtype, tuple(about.shape), about.device) == (y.dtype, (3,), y.device)
    assert about.is_nested_tensor is False and about.is_cpp_nested_tensor is False


def test_input_metadata_of_several_outputs():
    values, indices = leaf([[1.0, 2.0], [4.0, 3.0]]).max(1)
    assert tuple(values.grad_fn._input_metadata[0].shape) == (2,)
    assert [tuple(m.shape) for m in accumulator(leaf([1.0]))._input_metadata] == [(1,)]


def test_sequence_numbers():
    x = leaf([1.0])
    y = x * 2
    z = y * 3
    assert y.grad_fn._sequence_nr() < z.grad_fn._sequence_nr() < Double.apply(z).grad_fn._sequence_nr()
    assert accumulator(x)._sequence_nr() == 2**64 - 1


def test_the_whole_graph_can_be_walked():
    x = leaf([0.5])
    y = x
    for _ in range(100):
        y = y.sin() * y
    seen, waiting = set(), [y.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting.extend(n for n, _ in node.next_functions)
    assert len(seen) == 201


# Gradient edges.


def test_gradient_edge():
    x = leaf([1.0, 2.0])
    y = x * 2
    edge = graph.get_gradient_edge(y)
    assert isinstance(edge, graph.GradientEdge) and isinstance(edge, tuple)
    assert edge.node is y.grad_fn and edge.output_nr == 0 and edge.ownership_token is None
    assert edge == graph.get_gradient_edge(y) and hash(edge) == hash(graph.get_gradient_edge(y))
    assert graph.get_gradient_edge(x).node.variable is x
    assert graph.GradientEdge(edge.node, 0) == edge


def test_gradient_edges_as_inputs():
    x = leaf([1.0, 2.0])
    y = x * 2
    z = (y * y).sum()
    edges = [graph.get_gradient_edge(y), graph.get_gradient_edge(x)]
    del y
    gc.collect()
    by_y, by_x = T.autograd.grad(z, edges, retain_graph=True)
    assert_values(by_y, [4.0, 8.0])
    assert_values(by_x, [8.0, 16.0])
    (only,) = T.autograd.grad(z, [edges[0]])
    assert_values(only, [4.0, 8.0])


def test_gradient_edges_as_roots():
    x = leaf([1.0, 2.0])
    y = x * 3
    edge = graph.get_gradient_edge(y)
    z = y.sum()
    (g,) = T.autograd.grad(edge, x, T.ones(2), retain_graph=True)
    assert_values(g, [3.0, 3.0])
    (g,) = T.autograd.grad([edge, z], [x], [T.ones(2), None], retain_graph=True)
    assert_values(g, [6.0, 6.0])
    T.autograd.backward(edge, T.tensor([1.0, 10.0]), retain_graph=True)
    assert_values(x.grad, [3.0, 30.0])
    T.autograd.backward([graph.get_gradient_edge(z)], retain_graph=True)
    assert_values(x.grad, [6.0, 33.0])


def test_gradient_edges_of_backward():
    x, w = leaf([1.0]), leaf([2.0])
    y = x * w
    z = y * 3
    z.backward(inputs=graph.get_gradient_edge(x), retain_graph=True)
    assert_values(x.grad, [6.0])
    assert w.grad is None
    z.backward(inputs=[graph.get_gradient_edge(y), w], retain_graph=True)
    assert_values(w.grad, [3.0])
    assert_values(x.grad, [6.0])


def test_gradient_edges_of_several_outputs():
    a, b = (leaf([1.0, 2.0]) * 1).unbind()
    edges = graph.get_gradient_edge(a), graph.get_gradient_edge(b)
    assert edges[0].node is edges[1].node and edges[1].output_nr == 1
    found = T.autograd.grad(a * 2 + b * 3, edges)
    assert [g.item() for g in found] == [2.0, 3.0]


def test_gradient_edges_unused():
    x = leaf([1.0])
    other = graph.get_gradient_edge(x * 2)
    z = x * 3
    assert T.autograd.grad(z, [other], retain_graph=True, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="^The differentiated Tensor at index 0 appears to not have been used in the graph"):
        T.autograd.grad(z, [other], retain_graph=True)
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used when the given input is a GradientEdge"):
        T.autograd.grad(z, [other], materialize_grads=True)


def test_gradient_edge_mistakes():
    x = leaf([1.0, 2.0])
    y = x * 2
    z = y.sum()
    with pytest.raises(
        RuntimeError, match="^It is not possible to get the gradient edge for a Tensor that does not require gradients"
    ):
        graph.get_gradient_edge(tensor([1.0]))
    with pytest.raises(AttributeError, match="requires_grad"):
        graph.get_gradient_edge(3)
    with pytest.raises(RuntimeError, match="^GradientEdge's first object must be an autograd.graph.Node but got NoneType"):
        T.autograd.grad(z, [graph.GradientEdge(None, 0)])
    with pytest.raises(RuntimeError, match="^all inputs have to be Tensors or GradientEdges, but got tuple"):
        T.autograd.grad(z, [(y.grad_fn, 0)])
    with pytest.raises(RuntimeError, match="^all inputs have to be Tensors or GradientEdges, but got int"):
        T.autograd.grad(z, [1])
    with pytest.raises(RuntimeError, match="^grad can be implicitly created only for scalar outputs"):
        T.autograd.grad(graph.get_gradient_edge(y), [x])
    with pytest.raises(RuntimeError, match="^Mismatch in shape: grad_output"):
        T.autograd.grad(graph.get_gradient_edge(y), [x], T.ones(3))


@pytest.mark.skipif(not IS_GRADIRON, reason="PyTorch crashes")
def test_gradient_edge_beyond_the_outputs():
    x = leaf([1.0])
    y = x * 2
    with pytest.raises(RuntimeError, match="has 1 outputs"):
        T.autograd.grad(y, [graph.GradientEdge(y.grad_fn, 5)])


def test_gradient_edge_keeps_a_function_alive():
    x = leaf([1.0])
    y = Double.apply(x)
    edge = graph.get_gradient_edge(y)
    z = y * 3
    del y
    gc.collect()
    assert_values(T.autograd.grad(z, [edge])[0], [3.0])


# increment_version.


def test_increment_version():
    x, y = leaf([1.0]), tensor([1.0])
    graph.increment_version(x)
    graph.increment_version([x, y])
    graph.increment_version(t for t in (y,))
    assert (x._version, y._version) == (2, 2)
    z = y * x
    graph.increment_version(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_increment_version_of_other_things():
    with pytest.raises(RuntimeError, match="increment_version expect a Iterable"):
        graph.increment_version(3)
    with pytest.raises(RuntimeError, match="increment_version expects each element of the iterable to be a tensor"):
        graph.increment_version([3])


# register_multi_grad_hook.


def values(grads):
    return [None if g is None else g.tolist() for g in grads]


def four():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    return a, b, a * b, a * b


def test_multi_grad_hook():
    a, b, c, d = four()
    seen = []
    handle = graph.register_multi_grad_hook((a, b, c, d), lambda grads: seen.append(values(grads)))
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    (c + 2 * d).sum().backward(retain_graph=True)
    assert seen == [
        [[3.0, 4.0], [1.0, 2.0], [1.0, 1.0], None],
        [[3.0, 4.0], None, [1.0, 1.0], None],
        [[9.0, 12.0], [3.0, 6.0], [1.0, 1.0], [2.0, 2.0]],
    ]
    handle.remove()
    c.sum().backward(retain_graph=True)
    assert len(seen) == 3


def test_multi_grad_hook_with_grad():
    a, b, c, d = four()
    seen = []
    graph.register_multi_grad_hook([c, d], lambda grads: seen.append(values(grads)))
    T.autograd.grad(c.sum(), b, retain_graph=True)
    T.autograd.grad((c * d).sum(), a, retain_graph=True)
    assert seen == [[[1.0, 1.0], None], [[3.0, 8.0], [3.0, 8.0]]]


def test_any_grad_hook():
    a, b, c, d = four()
    seen = []
    constant = tensor([1.0])
    handle = graph.register_multi_grad_hook((a, b, c, constant), lambda grad: seen.append(grad.tolist()), mode="any")
    c.sum().backward(retain_graph=True)
    (3 * c).sum().backward(retain_graph=True)
    assert seen == [[1.0, 1.0], [3.0, 3.0]]
    handle.remove()
    c.sum().backward(retain_graph=True)
    assert len(seen) == 2


def test_multi_grad_hook_of_one_tensor_twice():
    a = leaf([1.0])
    seen = []
    graph.register_multi_grad_hook([a, a], lambda grads: seen.append(values(grads)))
    (a * 2).backward()
    assert seen == [[[2.0], [2.0]]]


def test_multi_grad_hook_that_raises():
    a = leaf([1.0])

    def fail(grads):
        raise ValueError("oops")

    with graph.register_multi_grad_hook([a], fail) as handle:
        with pytest.raises(ValueError, match="oops"):
            (a * 2).backward()
        assert handle is not None
    (a * 2).backward()


def test_multi_grad_hook_keeps_gradients_as_they_are():
    a, b = leaf([1.0]), leaf([2.0])
    graph.register_multi_grad_hook([a, b], lambda grads: [g * 100 for g in grads])
    (a * b).backward()
    assert_values(a.grad, [2.0])


def test_multi_grad_hook_mistakes():
    a = leaf([1.0])
    with pytest.raises(ValueError, match=r"Expects mode to be one of \('all', 'any'\) but got some"):
        graph.register_multi_grad_hook([a], print, mode="some")
    with pytest.raises(AssertionError, match="Expected gradient function to be set"):
        graph.register_multi_grad_hook([tensor([1.0])], print)
    graph.register_multi_grad_hook([tensor([1.0])], print, mode="any").remove()
    graph.register_multi_grad_hook([], print).remove()


def test_multi_grad_hook_in_nested_backwards():
    a = leaf([1.0])
    seen = []

    def hook(grads):
        seen.append(values(grads))
        if len(seen) == 1:
            with T.enable_grad():
                y = a * 5
            y.backward()

    graph.register_multi_grad_hook([a], hook)
    (a * 2).backward()
    assert seen == [[[2.0]], [[5.0]]]


# queue_callback.


def test_queue_callback():
    a = leaf([1.0])
    log = []

    def hook(g):
        log.append("hook")
        graph.queue_callback(lambda: log.append(("done", a.grad.tolist())))

    a.register_hook(hook)
    (a * 2).backward()
    assert log == ["hook", ("done", [2.0])]


def test_callbacks_may_queue_callbacks():
    a = leaf([1.0])
    log = []
    a.register_hook(lambda g: graph.queue_callback(lambda: (log.append(1), graph.queue_callback(lambda: log.append(2)))))
    (a * 2).backward()
    assert log == [1, 2]


def test_callback_that_raises():
    a = leaf([1.0])
    a.register_hook(lambda g: graph.queue_callback(lambda: 1 // 0))
    with pytest.raises(ZeroDivisionError):
        (a * 2).backward()
    assert_values(a.grad, [2.0])


def test_no_callback_after_an_error():
    a = leaf([1.0])
    log = []

    def hook(g):
        graph.queue_callback(lambda: log.append(1))
        raise KeyError("oops")

    handle = a.register_hook(hook)
    with pytest.raises(KeyError):
        (a * 2).backward()
    handle.remove()
    (a * 2).backward()
    assert log == []


def test_callback_outside_of_a_backward():
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass."):
        graph.queue_callback(print)


def test_everything_is_there():
    missing = {"node_creation_hook", "region_activation_memory_budget"} if IS_GRADIRON else set()
    names = {"saved_tensors_hooks", "save_on_cpu", "disable_saved_tensors_hooks", "register_multi_grad_hook", "Node"}
    names |= {"allow_mutation_on_saved_tensors", "GradientEdge", "get_gradient_edge", "increment_version", "queue_callback"}
    assert names <= set(graph.__all__) - missing


def test_an_edge_keeps_a_functions_node():
    x = leaf([1.0, 2.0])
    y = Double.apply(x * 1)
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn
    del y
    gc.collect()
    T.autograd.backward(edge, grad_tensors=T.ones(2), retain_graph=True)
    assert_values(x.grad, [2.0, 2.0])
    assert_values(T.autograd.grad(edge, x, T.ones(2))[0], [2.0, 2.0])


def test_no_edge_of_a_view_made_unrecorded():
    base = leaf([1.0, 2.0]) * 1
    with T.no_grad():
        view = base[:1]
    calls = graph.get_gradient_edge, lambda view: graph.register_multi_grad_hook([view], print)
    for call in calls:
        with pytest.raises(AssertionError, match="^Expected gradient function to be set"):
            call(view)
    base.mul_(2)
    for call in calls:
        with pytest.raises(RuntimeError, match="A view was created in no_grad mode and its base or another view"):
            call(view)


def test_no_edge_of_one_of_several_views_once_the_base_is_written():
    base = leaf([1.0, 2.0]) * 1
    view, _ = base.split(1)
    edge = graph.get_gradient_edge(view)
    assert T.autograd.grad(view.sum(), edge, retain_graph=True)[0].tolist() == [1.0]
    base.mul_(2)
    with pytest.raises(RuntimeError, match="Output 0 of Split.* is a view and its base or another view"):
        graph.get_gradient_edge(view)


def test_nodes_take_no_attributes():
    x = leaf([1.0])
    y = x.exp()
    gradient = y.grad_fn.next_functions[0][0]
    for node, name in ((y.grad_fn, "ExpBackward0"), (gradient, "AccumulateGrad")):
        for change in (lambda node=node: setattr(node, "foo", 1), lambda node=node: delattr(node, "foo")):
            with pytest.raises(AttributeError, match=f"^'{name}' object has no attribute 'foo'"):
                change()
    with pytest.raises(AttributeError, match="^attribute '_saved_result' of 'ExpBackward0' objects is not writable"):
        y.grad_fn._saved_result = x
    with pytest.raises(AttributeError, match="^attribute 'variable' of 'AccumulateGrad' objects is not writable"):
        gradient.variable = x
    y.grad_fn.metadata["foo"] = 1
    assert y.grad_fn.metadata == {"foo": 1}


def test_names_of_saved_values_after_the_graph_was_freed():
    y = leaf([1.0]).exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second time"):
        _ = y.grad_fn._saved_result
    for name in ("_saved_other", "_saved_foo", "foo"):
        with pytest.raises(AttributeError, match=f"^'ExpBackward0' object has no attribute '{name}'"):
            getattr(y.grad_fn, name)
