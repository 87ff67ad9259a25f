"""A traced module computes what the module computes, under every way of running, copying and saving it."""

import copy
import io
import math
import operator
import pickle

import pytest
from fx_models import MODELS, Attention, model

from library import T

fx = T.fx
F = T.nn.functional
tree = T.utils._pytree


def same(a, b):
    left, right = tree.tree_leaves(a), tree.tree_leaves(b)
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        assert T.equal(one, other) if isinstance(one, T.Tensor) else one == other


@pytest.mark.parametrize("name", MODELS)
def test_a_graph_computes_what_its_module_computes(name):
    module, args = model(name)
    traced = fx.symbolic_trace(module)
    traced.graph.lint()
    expected = module(*args)
    same(traced(*args), expected)
    same(fx.Interpreter(traced).run(*args), expected)
    same(copy.deepcopy(traced)(*args), expected)
    same(fx.Transformer(traced).transform()(*args), expected)
    same(fx.symbolic_trace(traced)(*args), expected)
    assert fx.symbolic_trace(traced).code == traced.code


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("residual", "tables")])
def test_gradients_go_through(name):
    module, args = model(name)
    traced = copy.deepcopy(fx.symbolic_trace(module))

    def gradients(of):
        loss = [leaf.sum() for leaf in tree.tree_leaves(of(*args)) if isinstance(leaf, T.Tensor) and leaf.requires_grad]
        names, values = zip(*sorted(of.named_parameters()), strict=True) if loss else ((), ())
        return dict(zip(names, T.autograd.grad(sum(loss), values), strict=True)) if loss else {}

    same(gradients(traced), gradients(module))


def test_the_parameters_are_the_modules_own():
    module, args = model("residual")
    traced = fx.symbolic_trace(module)
    assert traced.scale is module.scale and traced.inner is not module.inner
    with T.no_grad():
        module.scale.mul_(2)
    same(traced(*args), module(*args))
    assert set(traced.state_dict()) <= set(module.state_dict())


@pytest.mark.parametrize("name", MODELS)
def test_pickles(name):
    module, args = model(name)
    traced = fx.symbolic_trace(module)
    loaded = pickle.loads(pickle.dumps(traced))
    same(loaded(*args), traced(*args))
    assert loaded.code == traced.code
    file = io.BytesIO()
    T.save(traced, file)
    file.seek(0)
    same(T.load(file, weights_only=False)(*args), traced(*args))


def test_folders(tmp_path, monkeypatch):
    module, args = model("mlp")
    traced = fx.symbolic_trace(module)
    with pytest.warns(UserWarning, match="saved as pickled files"):
        traced.to_folder(tmp_path / "written_model", "Written")
    monkeypatch.syspath_prepend(tmp_path)
    from written_model import Written

    same(Written()(*args), module(*args))


def test_leaves_are_what_the_tracer_says():
    module, args = model("mlp")

    class Flat(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return isinstance(m, T.nn.Linear) and module_qualified_name == "3"

    graph = Flat().trace(module)
    assert [node.target for node in graph.nodes if node.op == "call_module"] == ["3"]
    assert {node.target for node in graph.nodes if node.op == "get_attr"} == {"0.weight", "0.bias"}
    same(fx.GraphModule(module, graph)(*args), module(*args))


def test_functions_that_are_written_in_python_are_one_node():
    def f(x):
        return F.max_pool2d(F.relu(x), 2), F.interpolate(x, scale_factor=2.0), F.group_norm(x, 1), T.stft

    with pytest.raises(NotImplementedError, match="argument of type"):
        fx.symbolic_trace(f)

    def g(x):
        return F.relu(x), F.interpolate(x, scale_factor=2.0), F.group_norm(x, 1), F.one_hot(x, 3)

    targets = [node.target for node in fx.symbolic_trace(g).graph.nodes if node.op == "call_function"]
    assert targets == [F.relu, F.interpolate, F.group_norm, F.one_hot]


def test_everything_is_back_after_a_trace():
    call, read, item, pool = T.nn.Module.__call__, T.nn.Module.__getattr__, T.Tensor.__getitem__, F.max_pool2d

    def f(x):
        assert T.nn.Module.__call__ is not call
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        fx.symbolic_trace(f)
    assert (T.nn.Module.__call__, T.nn.Module.__getattr__, F.max_pool2d) == (call, read, pool)
    assert T.Tensor.__getitem__ == item and T.equal(T.arange(3)[1:], T.tensor([1, 2]))


def test_concrete_arguments():
    def f(x, flag, scale=2, rest=None):
        return T.relu(x) * scale if flag and rest is None else x

    traced = fx.symbolic_trace(f, concrete_args={"flag": True, "rest": None})
    same(traced(T.ones(2), True), T.full((2,), 2.0))
    with pytest.raises(AssertionError, match="flag has been specialized to have value True but got another value"):
        traced(T.ones(2), False)
    with pytest.raises(AssertionError, match="rest has been specialized to have value None"):
        traced(T.ones(2), True, 2, 3)

    def g(d):
        return d["a"] + d["b"][0]

    nested = fx.symbolic_trace(g, concrete_args={"d": {"a": fx.PH, "b": [fx.PH]}})
    same(nested({"a": T.ones(1), "b": [T.ones(1)]}), T.full((1,), 2.0))
    assert "tree_flatten_spec" in nested.code


def test_the_signature_stays():
    module = Attention()
    graph = fx.symbolic_trace(module).graph
    inputs = [(node.target, node.args, node.type) for node in graph.nodes if node.op == "placeholder"]
    assert inputs == [("x", (), None), ("mask", (None,), None), ("scale", (0.5,), float)]
    same(fx.symbolic_trace(module)(T.ones(1, 2, 8)), module(T.ones(1, 2, 8)))

    def f(first, *rest, **others):
        return first + rest[0] + others["more"]

    one = T.ones(1)
    assert fx.symbolic_trace(f)(one, one, more=one).item() == 3


@fx.wrap
def doubled(x):
    return x + x if x.sum() > 0 else x


def test_marked_functions_are_one_node():
    traced = fx.symbolic_trace(lambda x: doubled(x) + 1)
    assert 'wrap("' in traced.code and [node.target for node in traced.graph.nodes][1] is doubled
    same(traced(T.ones(1)), T.full((1,), 3.0))
    same(pickle.loads(pickle.dumps(traced))(T.ones(1)), T.full((1,), 3.0))
    assert not hasattr(doubled, "__fx_already_patched")


def test_functions_of_math_are_recorded():
    traced = fx.symbolic_trace(lambda x: math.sqrt(x))
    assert traced(9) == 3 and list(traced.graph.nodes)[1].target is math.sqrt


def test_a_module_that_is_called_twice():
    layer = T.nn.Linear(2, 2)
    traced = fx.symbolic_trace(T.nn.Sequential(layer, layer))
    same(traced(T.ones(1, 2)), layer(layer(T.ones(1, 2))))


def test_dtypes_devices_and_numbers_are_written():
    def f(x):
        y = x.to(T.float64).to(device=T.device("cpu"))
        return T.where(y > float("-inf"), y * (1 + 2j).real, float("nan")), T.zeros((2, 1), dtype=T.int32), y[..., None, ::2]

    traced = fx.symbolic_trace(f)
    same(traced(T.arange(4.0)), f(T.arange(4.0)))
    assert "torch.float64" in traced.code and "device(type='cpu')" in traced.code and "-inf" in traced.code


def test_notes_of_where_a_node_comes_from():
    module, _ = model("residual")
    stack = {
        node.name: list(node.meta["nn_module_stack"].values()) for node in fx.symbolic_trace(module).graph.nodes if node.meta
    }
    assert stack["inner_0"] == [("inner", T.nn.Sequential), ("inner.0", T.nn.Conv2d)]
    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    node = next(node for node in tracer.trace(module).nodes if node.target is operator.add)
    assert "return x + self.scale" in node.stack_trace


def test_custom_operators_are_one_node():
    @T.library.custom_op("fxtests::twice", mutates_args=())
    def twice(x: T.Tensor) -> T.Tensor:
        return x * 2

    traced = fx.symbolic_trace(lambda x: twice(x) + T.ops.fxtests.twice(x))
    assert [node.name for node in traced.graph.nodes] == ["x", "twice_default", "twice", "add", "output"]
    assert "torch.ops.fxtests.twice.default(x)" in traced.code
    same(traced(T.ones(2)), T.full((2,), 4.0))
    same(pickle.loads(pickle.dumps(traced))(T.ones(2)), T.full((2,), 4.0))


def test_gradients_are_one_node():
    traced = fx.symbolic_trace(lambda x: T.autograd.grad((x**2).sum(), x)[0])
    assert T.autograd.grad in [node.target for node in traced.graph.nodes]
    same(traced(T.ones(2, requires_grad=True)), T.full((2,), 2.0))
