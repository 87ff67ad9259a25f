"""Graphs made and changed by hand, and the code that is generated of them."""

import copy
import operator

import pytest
from fx_models import MODELS, model

from library import T

fx = T.fx


def code(function):
    return fx.symbolic_trace(function).code.strip()


@pytest.mark.parametrize(
    "function, lines",
    [
        (lambda x: (x + 1) @ x, ["add = x + 1", "matmul = add @ x;  add = x = None", "return matmul"]),
        (lambda x: 2 - x**2, ["pow_1 = x ** 2;  x = None", "sub = 2 - pow_1;  pow_1 = None", "return sub"]),
        (
            lambda x: x.shape[0],
            ["getattr_1 = x.shape;  x = None", "getitem = getattr_1[0];  getattr_1 = None", "return getitem"],
        ),
        (lambda x: x[..., 1:], ["getitem = x[(Ellipsis, slice(1, None, None))];  x = None", "return getitem"]),
        (
            lambda x: {"a": T.sum(x, dim=0), "b": [x]},
            ["sum_1 = torch.sum(x, dim = 0)", "return {'a': sum_1, 'b': [x]}"],
        ),
        (lambda x: ~(x == 1), ["eq = x == 1;  x = None", "invert = ~eq;  eq = None", "return invert"]),
    ],
)
def test_code(function, lines):
    assert code(function) == "\n    ".join(["def forward(self, x):", *lines])


def test_code_of_modules():
    traced = fx.symbolic_trace(T.nn.Sequential(T.nn.Linear(1, 1)))
    assert traced.code.strip().split("\n    ")[2:] == [
        '_0 = getattr(self, "0")(input_1);  input_1 = None',
        "return _0",
    ]


@pytest.mark.parametrize("name", MODELS)
def test_copies_of_graphs_are_the_same(name):
    traced = fx.symbolic_trace(model(name)[0])
    made = copy.deepcopy(traced.graph)
    assert str(made) == str(traced.graph) and made is not traced.graph
    assert fx.GraphModule(traced, made).code == traced.code


def test_names_are_unique_and_never_pythons():
    graph = fx.Graph()
    names = [graph.create_node("placeholder", name).name for name in ("x", "x", "x_1", "for", "print", "3d", "a.b", "inf")]
    assert names == ["x", "x_1", "x_2", "for_1", "print_1", "_3d", "a_b", "inf_1"]
    assert graph.call_function(operator.add, (1, 2)).name == "add"
    assert graph.call_method("__len__", ("a",)).name == "len_1" and graph.call_module("MyLayer").name == "my_layer"


def test_users_and_inputs_follow_the_arguments():
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    both = graph.call_function(max, ([x, (y, 1)],), {"key": {"k": x}})
    assert both.all_input_nodes == [x, y] and list(x.users) == [both]
    both.args = (y,)
    both.kwargs = {}
    assert both.all_input_nodes == [y] and not x.users
    both.insert_arg(0, x)
    both.update_arg(1, 3)
    both.update_kwarg("key", x)
    assert both.args == (x, 3) and dict(both.kwargs) == {"key": x} and not y.users
    both.replace_input_with(x, y)
    assert both.args == (y, 3) and list(y.users) == [both] and not x.users
    assert y.replace_all_uses_with(x) == [both] and both.args == (x, 3)


def test_places():
    graph = fx.Graph()
    a, b, c = (graph.placeholder(name) for name in "abc")
    a.prepend(c)
    assert [node.name for node in graph.nodes] == ["c", "a", "b"] and [node.name for node in reversed(graph.nodes)] == [
        "b",
        "a",
        "c",
    ]
    assert c < a < b and sorted([b, c, a]) == [c, a, b] and c.next is a and b.prev is a
    with graph.inserting_after(c):
        d = graph.placeholder("d")
        with graph.inserting_before(b):
            e = graph.placeholder("e")
    with graph.inserting_before():
        first = graph.placeholder("first")
    assert list(graph.nodes) == [first, c, d, a, e, b] and len(graph.nodes) == 6
    graph.erase_node(d)
    assert list(graph.nodes) == [first, c, a, e, b]


def test_nodes_may_go_while_one_walks():
    traced = fx.symbolic_trace(lambda x: T.relu(T.relu(T.relu(x))))
    for node in traced.graph.nodes:
        if node.target is T.relu:
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    traced.recompile()
    assert len(traced.graph.nodes) == 2 and T.equal(traced(-T.ones(1)), -T.ones(1))


def test_found_nodes():
    graph = fx.symbolic_trace(lambda x, y: T.relu(x).add(T.relu(y)) + x.sum()).graph
    assert [node.name for node in graph.find_nodes(op="call_function", target=T.relu)] == ["relu", "relu_1"]
    assert [node.name for node in graph.find_nodes(op="call_method", target="sum")] == ["sum_1"]
    assert graph.output_node().op == "output"


def test_dead_code():
    @fx.has_side_effect
    def note(x):
        return x

    graph = fx.symbolic_trace(lambda x: (x + 1, T.relu(x))[1]).graph
    with graph.inserting_before(graph.output_node()):
        graph.call_function(note, (next(iter(graph.nodes)),))
    assert graph.eliminate_dead_code() and [node.name for node in graph.nodes] == ["x", "relu", "note", "output"]
    assert not graph.eliminate_dead_code()


def test_proxies_write_further():
    traced = fx.symbolic_trace(lambda x: x + 1)
    output = traced.graph.output_node()
    with traced.graph.inserting_before(output):
        value = fx.Proxy(output.args[0])
        output.args = (T.clamp(value * value.mean(), min=0).node,)
    traced.recompile()
    assert T.equal(traced(T.ones(2)), T.full((2,), 4.0))


def test_code_of_another_form():
    class List(fx.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            lines = f"def forward(self, args_list){maybe_return_annotation}:"
            return lines + f"\n    {', '.join(free_vars)} = args_list"

        def additional_globals(self):
            return [("LIST", list)]

        def process_inputs(self, *inputs):
            assert len(inputs) == 1
            return inputs[0]

    traced = fx.symbolic_trace(lambda x, y: x - y)
    traced.graph.set_codegen(List())
    traced.recompile()
    assert traced([T.ones(1), T.zeros(1)]).item() == 1
    assert fx.Interpreter(traced).run([T.ones(1), T.zeros(1)]).item() == 1


def test_lines_of_code_can_be_changed():
    traced = fx.symbolic_trace(lambda x: x + 1)

    def doubled(before):
        return lambda lines: [line.replace("x + 1", "x + 2") for line in (before(lines) if before else lines)]

    with traced.graph.on_generate_code(doubled):
        traced.recompile()
        assert traced(1) == 3
    traced.recompile()
    assert traced(1) == 2


@pytest.mark.gradiron  # PyTorch needs `tabulate`
def test_listings(capsys):
    traced = fx.symbolic_trace(T.nn.Sequential(T.nn.ReLU()))
    assert (
        str(traced.graph).split("\n")[2].strip()
        == "%_0 : [num_users=1] = call_module[target=0](args = (%input_1,), kwargs = {})"
    )
    traced.graph.print_tabular()
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].split() == ["opcode", "name", "target", "args", "kwargs"] and rows[-1].split()[:3] == ["output"] * 3
    T.fx.passes.shape_prop.ShapeProp(traced).propagate(T.ones(2, 3))
    assert "f32[2, 3]" in traced.print_readable(print_output=False)
    assert "def forward" in str(traced)


def test_submodules_come_and_go():
    traced = fx.symbolic_trace(T.nn.Sequential(T.nn.ReLU()))
    assert traced.add_submodule("new.inner", T.nn.Tanh()) and isinstance(traced.new.inner, T.nn.Tanh)
    assert traced.delete_submodule("new.inner") and not traced.delete_submodule("new.inner")
    traced.delete_all_unused_submodules()
    assert not hasattr(traced, "new") and isinstance(traced.get_submodule("0"), T.nn.ReLU)


def test_hooks():
    traced = fx.symbolic_trace(lambda x: T.relu(x))
    seen = []
    traced._register_create_node_hook(lambda node: seen.append(("made", node.name)))
    traced._register_erase_node_hook(lambda node: seen.append(("gone", node.name)))
    with traced._set_replace_hook(lambda old, new, user: seen.append((old.name, new, user.name))):
        x, relu, output = traced.graph.nodes
        with traced.graph.inserting_before(output):
            neg = traced.graph.call_function(T.neg, (x,))
        relu.replace_all_uses_with(neg)
        traced.graph.erase_node(relu)
    assert seen == [("made", "neg"), ("relu", "neg", "output"), ("gone", "relu")]


def test_aggregates():
    graph = fx.Graph()
    x = graph.placeholder("x")
    nested = (x, [1, {"a": x}], slice(x, None, 2))
    assert fx.map_arg(nested, lambda node: 7) == (7, [1, {"a": 7}], slice(7, None, 2))
    made = fx.node.map_aggregate([1, {"a": 2}], lambda leaf: leaf + 1)
    assert type(made) is fx.immutable_collections.immutable_list and made == [2, {"a": 3}]


def test_calls_by_hand_are_those_of_torch():
    graph = fx.Graph()
    tracer = fx.proxy.GraphAppendingTracer(graph)
    x, y = (fx.Proxy(graph.placeholder(name), tracer) for name in "xy")
    T._assert(x.shape[0] == 2, "wrong")
    made = T.tensordot(T.einsum("ij,jk->ik", x, y), y, dims=([1], [0]))
    graph.output(T.nn.functional.linear(made, y).node)
    targets = [node.target for node in graph.nodes if node.op == "call_function"]
    assert T._assert in targets and T.einsum in targets and T.tensordot in targets and T.nn.functional.linear in targets
    module = fx.GraphModule(T.nn.Module(), graph)
    one = T.rand(2, 2)
    assert T.allclose(module(one, one), one @ one @ one @ one.T)
    with pytest.raises(AssertionError, match="wrong"):
        module(T.rand(3, 2), one)


def test_operators_of_aten():
    def f(a):
        return T.ops.aten.add.Tensor(T.ops.aten.sigmoid(a), a), T.ops.aten.cat([a, a])

    traced = fx.symbolic_trace(f)
    add = next(node for node in traced.graph.nodes if "add" in node.name)
    assert isinstance(add.target, T._ops.OpOverload) and add.target.__name__ == "add.Tensor" and add.name == "add_tensor"
    x = T.rand(3)
    assert T.equal(traced(x)[0], x.sigmoid() + x) and T.equal(traced(x)[1], f(x)[1])
