"""Rewriting, shapes, splits and the passes that packages use."""

import importlib

import pytest
from fx_models import MODELS, asserting, model
from test_traces import same

from library import T

fx = T.fx
F = T.nn.functional


def room(name):
    """A module below `fx`, which PyTorch does not import by itself."""
    return importlib.import_module(f"{T.__name__}.fx.{name}")


def targets(graph):
    return [node.target for node in graph.nodes if node.op not in ("placeholder", "output")]


def test_patterns_are_replaced_everywhere():
    class Model(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = T.nn.Parameter(T.rand(2, 2))

        def forward(self, x, y):
            return T.relu(x @ self.w + 1) + T.relu(y @ self.w + 1)

    module = Model()
    traced = fx.symbolic_trace(module)
    matches = fx.replace_pattern(traced, lambda a, b: T.relu(a @ b + 1), lambda a, b: T.clamp(T.mm(a, b).add(1), min=0))
    traced.graph.lint()
    assert len(matches) == 2 and T.relu not in targets(traced.graph) and matches[0].anchor.name == "relu"
    x, y = T.rand(3, 2), T.rand(3, 2)
    assert T.allclose(traced(x, y), module(x, y))


def test_a_chain_of_matches():
    traced = fx.symbolic_trace(lambda x: T.neg(T.neg(T.neg(T.neg(x)))))
    assert len(fx.replace_pattern(traced, lambda x: T.neg(T.neg(x)), lambda x: T.abs(x))) == 2
    assert targets(traced.graph) == [T.abs, T.abs]


def test_what_others_use_is_not_replaced():
    def f(x):
        y = T.neg(x)
        return T.relu(y) + y

    assert fx.replace_pattern(fx.symbolic_trace(f), lambda x: T.relu(T.neg(x)), lambda x: x) == []


def test_literals_distinguish():
    pattern = lambda x: x + 1  # noqa: E731
    matcher = fx.passes.utils.matcher_utils.SubgraphMatcher
    graph = fx.symbolic_trace(lambda x: x + 2).graph
    assert len(matcher(fx.symbolic_trace(pattern).graph).match(graph)) == 0
    assert len(matcher(fx.symbolic_trace(pattern).graph, ignore_literals=True).match(graph)) == 1


def test_a_module_brings_its_parameters():
    class Bias(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = T.nn.Linear(2, 2)

        def forward(self, x):
            return self.inner(x)

    traced = fx.symbolic_trace(lambda x: T.relu(x))
    bias = Bias()
    fx.replace_pattern(traced, lambda x: T.relu(x), fx.symbolic_trace(bias))
    assert T.equal(traced(T.ones(1, 2)), bias(T.ones(1, 2))) and traced.inner is not bias.inner


@pytest.mark.parametrize("name", MODELS)
def test_shapes(name):
    module, args = model(name)
    traced = fx.symbolic_trace(module)
    result = fx.passes.shape_prop.ShapeProp(traced).propagate(*args)
    same(result, module(*args))

    class Compare(fx.Interpreter):
        def run_node(self, n):
            value = super().run_node(n)
            if isinstance(value, T.Tensor):
                noted = n.meta["tensor_meta"]
                assert (noted.shape, noted.dtype, noted.stride) == (value.shape, value.dtype, value.stride())
                assert noted.requires_grad == value.requires_grad and n.meta["type"] is type(value)
            return value

    Compare(traced).run(*args)


def test_memory_formats():
    traced = fx.symbolic_trace(lambda x: T.relu(x))
    fx.passes.shape_prop.ShapeProp(traced).propagate(T.rand(2, 3, 4, 5).to(memory_format=T.channels_last))
    assert traced.graph.output_node().meta["tensor_meta"].memory_format is T.channels_last


@pytest.mark.parametrize("name", [name for name in MODELS if name != "nested"])
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_splits(name, parts):
    module, args = model(name)
    traced = fx.symbolic_trace(module)
    count = len(traced.graph.nodes)
    number = {node: i * parts // count for i, node in enumerate(traced.graph.nodes)}
    split = fx.passes.split_module.split_module(traced, module, number.__getitem__)
    same(split(*args), module(*args))
    assert all(child.startswith("submod_") for child, part in split.named_children() if isinstance(part, fx.GraphModule))


def test_splits_in_a_circle():
    traced = fx.symbolic_trace(lambda x: T.neg(T.relu(T.neg(x))))
    with pytest.raises(RuntimeError, match="cycle exists between partitions!"):
        fx.passes.split_module.split_module(traced, traced, lambda node: int(node.target is T.relu))


def test_common_subexpressions():
    def f(x):
        return T.sum(x, dim=1) + T.sum(x, dim=1) * T.sum(x, dim=1, keepdim=False) + T.sum(x, dim=0)

    cse = room("passes.dialect.common.cse_pass")
    traced = fx.symbolic_trace(f)
    result = cse.CSEPass()(traced)
    x = T.rand(3, 3)
    assert result.modified and T.equal(result.graph_module(x), f(x))
    assert targets(result.graph_module.graph).count(T.sum) == (2 if T.__name__ == "gradiron" else 3)


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr")
def test_constants_are_folded():
    class Model(T.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = T.nn.Parameter(T.rand(3))

        def forward(self, x):
            return x * T.exp(self.w) + (self.w + 1)

    module = Model()
    folded = room("experimental.const_fold").split_const_subgraphs(module)
    assert T.exp not in targets(folded.graph)
    assert T.allclose(folded(T.ones(3)), module(T.ones(3)))
    assert not room("experimental.const_fold").split_const_subgraphs(T.nn.ReLU()).const_subgraph_module


def test_layers_are_fused():
    module, args = model("residual")
    with T.no_grad():
        module.inner[1].running_mean.add_(0.5)
        module.inner[1].running_var.mul_(2)
    fused = room("experimental.optimization").fuse(module)
    assert not any(
        isinstance(each, T.nn.BatchNorm2d)
        for node in fused.graph.nodes
        if node.op == "call_module"
        for each in [fused.get_submodule(node.target)]
    )
    assert T.allclose(fused(*args), module(*args), atol=1e-6)


def test_dropout_goes():
    module = T.nn.Sequential(T.nn.Linear(2, 2), T.nn.Dropout(0.5))
    assert T.equal(room("experimental.optimization").remove_dropout(module)(T.ones(1, 2)), module[0](T.ones(1, 2)))


def test_transformers_change_calls():
    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(T.neg if target is T.sigmoid else target, args, kwargs)

        def call_method(self, target, args, kwargs):
            return args[0].sigmoid() if target == "neg" else super().call_method(target, args, kwargs)

    made = Swap(fx.symbolic_trace(lambda x: T.sigmoid(x).neg())).transform()
    assert T.equal(made(T.ones(2)), (-T.ones(2)).sigmoid())


def test_interpreters_let_go_of_values():
    traced = fx.symbolic_trace(lambda x: T.relu(T.neg(x)))
    interpreter = fx.Interpreter(traced)
    interpreter.run(T.ones(1))
    assert [node.name for node in interpreter.env] == ["output"]
    kept = fx.Interpreter(traced, garbage_collect_values=False)
    kept.run(T.ones(1))
    assert len(kept.env) == 4
    inputs = [T.ones(1)]
    assert T.equal(fx.Interpreter(traced).boxed_run(inputs), T.zeros(1)) and inputs == []
    x = next(iter(traced.graph.nodes))
    assert T.equal(fx.Interpreter(traced).run(initial_env={x: -T.ones(1)}), T.ones(1))


def test_assertions_become_nodes():
    graph = room("experimental.rewriter").RewritingTracer().trace(asserting())
    traced = fx.GraphModule(T.nn.Module(), graph)
    assert T.equal(traced(T.ones(1)), T.ones(1))
    with pytest.raises(AssertionError, match="negative"):
        traced(-T.ones(1))

    class Asserting(fx.Tracer):
        trace_asserts = True

    traced = fx.GraphModule(T.nn.Module(), Asserting().trace(asserting()))
    with pytest.raises(AssertionError, match="Assertion failed"):
        traced(-T.ones(1))


def test_annotations():
    annotate = room("annotate").annotate

    def f(x):
        return annotate(x + 1, T.Tensor)

    traced = fx.symbolic_trace(f)
    assert "add : torch.Tensor = x + 1" in traced.code and traced(T.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="already had a type"):
        fx.symbolic_trace(lambda x: annotate(f(x), int))
