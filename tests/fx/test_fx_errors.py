"""What a trace and a graph say when they cannot go on: PyTorch's words."""

import pytest

from library import T

fx = T.fx
TraceError = T.fx.proxy.TraceError


@pytest.mark.parametrize(
    "function, text",
    [
        (lambda x: x if x.sum() > 0 else -x, "symbolically traced variables cannot be used as inputs to control flow"),
        (lambda x: x and x, "symbolically traced variables cannot be used as inputs to control flow"),
        (lambda x: [y for y in x], "Proxy object cannot be iterated"),
        (lambda x: T.cat(*x), "Proxy object cannot be iterated"),
        (lambda x: dict(**x), "Proxy object cannot be iterated"),
    ],
)
def test_control_flow(function, text):
    with pytest.raises(TraceError, match=text):
        fx.symbolic_trace(function)


def test_unpacking_is_no_iteration():
    def f(x):
        a, b = x
        return a - b

    assert fx.symbolic_trace(f)((5, 3)) == 2


def test_lengths():
    with pytest.raises(RuntimeError, match="'len' is not supported in symbolic tracing by default"):
        fx.symbolic_trace(lambda x: len(x))


def test_modules_that_are_not_the_roots():
    layer = T.nn.Linear(1, 1)
    with pytest.raises(NameError, match="module is not installed as a submodule"):
        fx.symbolic_trace(lambda x: layer(x))
    with pytest.raises(NameError, match="parameter is not a member of this module"):
        fx.symbolic_trace(lambda x: x + layer.weight)


def test_two_traces_do_not_mix():
    one, other = (fx.Proxy(fx.Graph().placeholder("x")) for _ in range(2))
    with pytest.raises(RuntimeError, match="Found multiple different tracers"):
        T.add(one, other)


def test_graphs_that_are_not_well_formed():
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(T.relu, (x,))
    with pytest.raises(RuntimeError, match="Tried to erase Node x but it still had 1 users in the graph"):
        graph.erase_node(x)
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        other = fx.Graph()
        other.call_function(T.relu, (x,))
        other.lint()
    y.append(x)
    with pytest.raises(RuntimeError, match="was used before it has been defined"):
        graph.lint()
    with pytest.raises(ValueError, match="but a Callable is expected"):
        graph.call_function("relu")
    with pytest.raises(AssertionError):
        graph.create_node("call", "relu")


def test_arguments_are_immutable():
    node = fx.Graph().create_node("call_function", max, ([1, 2],), {"key": {"a": 1}})
    with pytest.raises(TypeError, match="does not support mutation"):
        node.args[0][0] = 3
    with pytest.raises(TypeError, match="does not support mutation"):
        node.kwargs["key"] = None


def test_names_that_are_not_there():
    graph = fx.Graph()
    graph.output(graph.get_attr("nothing"))
    with pytest.raises(AttributeError, match="nothing"):
        fx.GraphModule(T.nn.Module(), graph)
    with pytest.raises(RuntimeError, match="that target was not provided in ``root``"):
        fx.GraphModule({}, graph)
    traced = fx.symbolic_trace(T.nn.ReLU())
    with pytest.warns(UserWarning, match="no underlying reference in the owning GraphModule"):
        traced.graph.get_attr("nothing")
    with pytest.raises(RuntimeError, match="references nonexistent attribute nothing"):
        traced.graph.lint()


def test_interpreters_name_the_node():
    traced = fx.symbolic_trace(lambda x, y: T.matmul(x, y))
    with pytest.raises(RuntimeError, match=r"While executing %matmul"):
        fx.Interpreter(traced).run(T.ones(2, 3), T.ones(2, 3))
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter y"):
        fx.Interpreter(traced).run(T.ones(2, 3))


@pytest.mark.gradiron  # PyTorch shows no lines of a lambda
def test_errors_in_generated_code_show_it(capsys):
    traced = fx.symbolic_trace(lambda x: T.matmul(x, x))
    with pytest.raises(RuntimeError):
        traced(T.ones(2, 3))
    shown = capsys.readouterr().err
    assert "Call using an FX-traced Module, line 5 of the traced Module's generated forward function" in shown
    assert "matmul = torch.matmul(x, x)" in shown and "<--- HERE" in shown


def test_writing_functions_are_refused_where_the_tracer_asks():
    class Strict(fx.Tracer):
        check_mutable_operations = True

    with pytest.raises(RuntimeError, match="Tried to trace mutable operation aten::sigmoid.out"):
        Strict().trace(lambda x: T.sigmoid(x, out=T.empty(1)))


def test_marks_stand_at_the_top_level():
    with pytest.raises(NotImplementedError, match="wrap must be called at the top level of a module"):
        fx.wrap("f")
    with pytest.raises(RuntimeError, match="Unsupported type for global function"):
        fx.wrap(3)
