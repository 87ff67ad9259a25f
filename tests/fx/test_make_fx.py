"""Graphs of what a function executes, and of the derivatives that it asks for."""

import pytest
from test_traces import same

from library import T

fx = T.fx
F = T.nn.functional
make_fx = T.fx.experimental.proxy_tensor.make_fx
get_proxy_mode = T.fx.experimental.proxy_tensor.get_proxy_mode

model = T.nn.Sequential(T.nn.Linear(3, 4), T.nn.Tanh(), T.nn.Linear(4, 1))


def loss(parameters, x):
    return (T.func.functional_call(model, parameters, (x,)) ** 2).mean()


def parameters():
    return {name: T.rand_like(value) for name, value in model.named_parameters()}


def twice(x):
    y = (x * x).tanh().sum()
    (first,) = T.autograd.grad(y, x, create_graph=True)
    (second,) = T.autograd.grad((first * first).sum(), x)
    return first.detach(), second


FUNCTIONS = {
    "pointwise": (lambda x: T.tanh(x) * 2 - x**3 / (1 + abs(x)), lambda: (T.rand(3, 3),)),
    "views": (lambda x: x[0].t()[None] + x.mT.reshape(3, 3)[:, 1:2] + T.zeros(1), lambda: (T.rand(3, 3),)),
    "several": (lambda x, y: (x.max(0)[0], *x.split(1), T.topk(y, 2)[1]), lambda: (T.rand(3, 3), T.rand(4))),
    "containers": (lambda d: {"out": d["a"] + d["b"][0], "n": 3}, lambda: ({"a": T.rand(2), "b": [T.rand(2)]},)),
    "python": (lambda x: F.interpolate(F.gelu(x)[None], scale_factor=2.0), lambda: (T.rand(3, 3),)),
    "module": (model, lambda: (T.rand(2, 3),)),
    "constants": (lambda x: x + T.tensor([1.0, 2.0, 3.0]).add_(1), lambda: (T.rand(3, 3),)),
    "transformer": (T.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval(), lambda: (T.rand(2, 3, 4),)),
    "where": (lambda x: x.where(x > 0.5, x * 2), lambda: (T.rand(3, 3),)),
    "indices": (lambda x: T.ones(9)[(x * 8).long()] ** x, lambda: (T.rand(3, 3),)),
    "writes": (lambda x: (y := x.clone(), y.__setitem__(0, 5.0))[0], lambda: (T.rand(3, 3),)),
    "shapes": (lambda x: x.sum() * x.shape[0] if x.dim() == 2 else x, lambda: (T.rand(3, 3),)),
    "grad": (T.func.grad(lambda x: (x**3).sum()), lambda: (T.rand(3),)),
    "grad of grad": (T.func.grad(lambda x: T.func.grad(lambda z: z.sin().prod())(x).sum()), lambda: (T.rand(3),)),
    "functional": (T.func.grad(loss), lambda: (parameters(), T.rand(2, 3))),
    "value": (T.func.grad_and_value(loss), lambda: (parameters(), T.rand(2, 3))),
    "vjp": (lambda x, v: T.func.vjp(lambda z: (z.sin(), z * 2), x)[1]((v, v)), lambda: (T.rand(3), T.rand(3))),
    "autograd": (twice, lambda: (T.rand(3).requires_grad_(),)),
    "several outputs": (
        lambda x: T.func.grad(lambda z: z.sort()[0].cumsum(0).var())(x),
        lambda: (T.rand(4),),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_graph_computes_what_the_function_computes(name):
    function, inputs = FUNCTIONS[name]
    T.manual_seed(0)
    traced = make_fx(function)(*inputs())
    traced.graph.lint()
    fresh = inputs()
    got, expected = (T.utils._pytree.tree_leaves(each(*fresh)) for each in (traced, function))
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert T.allclose(T.as_tensor(one), T.as_tensor(other), atol=1e-6), name


@pytest.mark.gradiron
def test_the_calls_are_gradirons_functions():
    graph = make_fx(lambda x: T.relu(x) * 2 + x.sum())(T.ones(2)).graph
    assert [node.target for node in graph.nodes if node.op == "call_function"] == [T.relu, T.mul, T.sum, T.add]


@pytest.mark.gradiron
def test_derivatives_of_derivatives_can_be_differentiated_again():
    traced = make_fx(T.func.grad(lambda x: (x**3).sum()))(T.ones(2))
    assert T.allclose(T.func.grad(lambda x: traced(x).sum())(T.tensor([1.0, 2.0])), T.tensor([6.0, 12.0]))


def test_the_callers_tensors_stay():
    x = T.rand(3).requires_grad_()
    make_fx(lambda x: x * 2)(x)
    assert type(x) is T.Tensor and x.is_leaf and x.requires_grad
    modes = []
    make_fx(lambda x: modes.append(get_proxy_mode()) or x + 1)(x)
    assert modes[0] is not None and get_proxy_mode() is None


def test_random_draws_are_drawn_anew():
    traced = make_fx(lambda x: x + T.rand(3))(T.zeros(3))
    assert not T.equal(traced(T.zeros(3)), traced(T.zeros(3)))


def test_writes_are_in_the_graph():
    traced = make_fx(lambda x: x.add_(1))(T.zeros(3))
    x = T.zeros(3)
    same(traced(x), x)
    assert x.sum() == 3


def test_values_are_refused():
    for function in (lambda x: x.sum().item(), lambda x: x if x.sum() > 0 else -x, lambda x: float(x.sum())):
        with pytest.raises(RuntimeError, match="you're trying to get value out of a tracing tensor"):
            make_fx(function)(T.ones(2))


@pytest.mark.gradiron
def test_what_is_not_traced_is_refused_by_name():
    dropped = T.func.grad(lambda x: F.dropout(x, 0.5).sum())
    for function, text in [
        (T.func.vmap(lambda x: x * 2), "vmap"),
        (dropped, "the derivative of torch.nn.functional.dropout, which draws random numbers"),
        (T.func.grad(lambda x: (x * 2).mul_(3).sum()), "the derivative of torch.Tensor.mul_"),
        (lambda x: x.requires_grad_().sum().backward(), "Tensor.backward"),
        (lambda x: T.func.jvp(T.sin, (x,), (x,)), "forward-mode"),
    ]:
        with pytest.raises(NotImplementedError, match=text):
            make_fx(function)(T.ones(2, 2))
    for options, text in [({"tracing_mode": "symbolic"}, "fake tensors"), ({"decomposition_table": {1: 2}}, "decomposed")]:
        with pytest.raises(NotImplementedError, match=text):
            make_fx(T.sin, **options)
    assert T.func.grad(lambda x: (x * 2).sum())(T.ones(2)).sum() == 4  # what the trace replaced is back
