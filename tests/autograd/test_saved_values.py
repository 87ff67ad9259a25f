"""Looking at what a node saved: `_saved_…`, `_raw_saved_…` with hooks of their own, and writing over saved tensors."""

import pytest

from library import IS_GRADIRON, T, assert_values, leaf, tensor

graph = T.autograd.graph
FREED = "Trying to backward through the graph a second time"


@pytest.mark.parametrize(
    "function, names",
    [
        (lambda x: x * x.detach(), {"self": None, "other": [1.0, 2.0]}),
        (lambda x: x.detach() * x, {"self": [1.0, 2.0], "other": None}),
        (lambda x: x.sin(), {"self": [1.0, 2.0]}),
        (lambda x: x.tanh(), {"result": [0.76159416, 0.96402758]}),
        (lambda x: x / x.detach(), {"self": None, "other": [1.0, 2.0]}),
        (lambda x: x.unsqueeze(0).mm(T.ones(2, 1)), {"self": None, "mat2": [[1.0], [1.0]]}),
        (lambda x: x.dot(T.ones(2)), {"self": None, "tensor": [1.0, 1.0]}),
        (lambda x: x.softmax(0), {"result": [0.26894143, 0.73105857]}),
        (lambda x: x.max(0)[0], {"indices": 1}),
        (lambda x: x.prod(), {"self": [1.0, 2.0], "result": 2.0}),
        (lambda x: x.logsumexp(0), {"self": [1.0, 2.0], "result": 2.3132617}),
        (lambda x: T.where(T.tensor([True, False]), x, x), {"condition": [True, False]}),
        (lambda x: T.atan2(x, x.detach()), {"self": [1.0, 2.0], "other": [1.0, 2.0]}),
        (lambda x: x.std(), {"self": [1.0, 2.0], "result": 0.70710677}),
    ],
)
def test_saved_by_name(function, names):
    node = function(leaf([1.0, 2.0])).grad_fn
    for name, value in names.items():
        if value is None and IS_GRADIRON and name == "self":
            assert getattr(node, "_saved_self", None) is None
            continue
        assert f"_saved_{name}" in dir(node) and f"_raw_saved_{name}" in dir(node)
        found = getattr(node, f"_saved_{name}")
        assert found is None if value is None else True
        if value is not None:
            assert_values(found, value)


def test_saved_tensors_have_their_place():
    x = leaf([1.0, 2.0])
    y = x * 2
    z = y.exp() * y
    assert z.grad_fn._saved_other.grad_fn is y.grad_fn
    assert y.sin().grad_fn._saved_self.grad_fn is y.grad_fn
    assert x.sin().grad_fn._saved_self is x
    e = y.exp()
    assert e.grad_fn._saved_result.grad_fn is e.grad_fn


def test_no_such_saved_value():
    node = leaf([1.0]).sin().grad_fn
    for name in ("_saved_nothing", "_raw_saved_nothing", "_saved_", "saved"):
        if name != "saved" or not IS_GRADIRON:
            with pytest.raises(AttributeError):
                getattr(node, name)


def test_saved_values_after_backward():
    y = leaf([1.0]).sin()
    node, raw = y.grad_fn, y.grad_fn._raw_saved_self
    y.backward()
    with pytest.raises(RuntimeError, match=FREED):
        node._saved_self
    with pytest.raises(RuntimeError, match="Calling register_hooks on a saved tensor after it has been freed."):
        raw.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="after it has been freed"):
        node._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


def test_saved_value_written_over():
    x = leaf([1.0])
    y = x * 2
    z = y.sin()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.grad_fn._saved_self


def test_register_hooks_on_one_value():
    x = leaf([1.0, 2.0])
    y = x * x
    seen = []
    y.grad_fn._raw_saved_self.register_hooks(lambda t: (seen.append(t.requires_grad), t.clone())[1], lambda t: t * 10)
    assert seen == [False]
    assert y.grad_fn._saved_self.tolist() == [10.0, 20.0]
    assert y.grad_fn._saved_other is x
    y.sum().backward()
    assert_values(x.grad, [11.0, 22.0])


def test_register_hooks_on_an_output():
    x = leaf([0.0, 1.0])
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t * 2)
    y.sum().backward()
    assert_values(x.grad, [2.0, 5.4365637])


@pytest.mark.parametrize("hooks", [(lambda t: t,), (1, 2), ()])
def test_register_hooks_wants_two_functions(hooks):
    with pytest.raises(TypeError):
        leaf([1.0]).sin().grad_fn._raw_saved_self.register_hooks(*hooks)


def test_register_hooks_only_once():
    y = leaf([1.0]).sin()
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="hooks have already been set. Hint: only one pair of hooks is allowed at a time."):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        z = leaf([1.0]).sin()
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        z.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


def test_register_hooks_must_not_write():
    y = leaf([1.0]).clone().sin()
    with pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t.mul_(2), lambda t: t)


def test_none_takes_no_hooks():
    node = (leaf([1.0]) * 1.5 * tensor([2.0])).grad_fn
    with pytest.raises(RuntimeError, match="Calling register_hooks on a saved tensor with value None is forbidden"):
        node._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


# allow_mutation_on_saved_tensors.


def test_mutation_allowed():
    with graph.allow_mutation_on_saved_tensors() as context:
        a = leaf([1.0, 2.0])
        b = a.clone()
        out = (b**2).sum()
        assert (len(context.original), len(context.cloned)) == (1, 0)
        b.sin_()
        assert len(context.cloned) == 1
        out.backward()
        assert_values(a.grad, [2.0, 4.0])
    assert not context.original and not context.cloned


@pytest.mark.parametrize(
    "write",
    [
        lambda b: b.mul_(3),
        lambda b: b.exp_(),
        lambda b: b.zero_(),
        lambda b: b.fill_(2),
        lambda b: b.copy_(T.zeros(2)),
        lambda b: b.add_(1).mul_(2),
        lambda b: b.detach().zero_(),
        lambda b: b.__setitem__(slice(None), 7),
    ],
)
def test_mutation_of_many_kinds(write):
    with graph.allow_mutation_on_saved_tensors():
        a = leaf([1.0, 2.0])
        b = a * 2
        out = b.sin() + b.cos()
        write(b)
        out.sum().backward()
    assert_values(a.grad, 2 * ((2 * a).cos() - (2 * a).sin()).detach())


def test_mutation_of_outputs_and_twice():
    with graph.allow_mutation_on_saved_tensors():
        a = leaf([0.5, 1.0])
        b = a.exp()
        c = b * b
        b.mul_(2)
        d = b.sin()
        b.mul_(3)
        (c + d).sum().backward()
    x = T.tensor([0.5, 1.0]).exp()
    assert_values(a.grad, (2 * x * x + 2 * x * (2 * x).cos()))


def test_mutation_then_backward_outside():
    with graph.allow_mutation_on_saved_tensors():
        a = leaf([1.0])
        out = (a.clone() ** 2).sum()
    with pytest.raises(AssertionError, match="Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"):
        out.backward()


def test_mutation_contexts_do_not_nest():
    with graph.allow_mutation_on_saved_tensors():
        with pytest.raises(RuntimeError, match="allow_mutation_on_saved_tensors contexts cannot be nested"):
            with graph.allow_mutation_on_saved_tensors():
                pass


def test_mutation_of_nothing_saved():
    with graph.allow_mutation_on_saved_tensors() as context:
        a = leaf([1.0]).clone()
        a.sin_()
        b = a + 1
        b.mul_(2)
    assert not context.cloned


# Arguments that are no tensors.


@pytest.mark.parametrize(
    "function, arguments",
    [
        (lambda x: x.sum(0), {"dim": (0,), "keepdim": False}),
        (lambda x: x.sum((0, 1), keepdim=True), {"dim": (0, 1), "keepdim": True}),
        (lambda x: x.softmax(1), {"dim": 1}),
        (lambda x: x.max(1)[0], {"dim": 1, "keepdim": False}),
        (lambda x: x.kthvalue(1, dim=1, keepdim=True)[0], {"dim": 1, "keepdim": True}),
        (lambda x: x.sort(1)[0], {"dim": 1}),
        (lambda x: x.topk(1, 1)[0], {"dim": 1}),
        (lambda x: x.cumsum(1), {"dim": 1}),
        (lambda x: x.transpose(0, 1), {"dim0": 0, "dim1": 1}),
        (lambda x: x.permute(1, 0), {"dims": (1, 0)}),
        (lambda x: x.tril(1), {"diagonal": 1}),
        (lambda x: x.select(1, 0), {"dim": 1, "index": 0}),
        (lambda x: x**3, {"exponent": 3}),
        (lambda x: x**0.5, {"exponent": 0.5}),
        (lambda x: x.clamp(-0.5, 0.5), {"min": -0.5, "max": 0.5}),
        (lambda x: T.lerp(x, x.detach(), 0.25), {"weight": 0.25}),
        (lambda x: x.index_select(0, T.tensor([1])), {"dim": 0}),
        (lambda x: x.roll(1, 0), {"shifts": (1,), "dims": (0,)}),
    ],
)
def test_saved_arguments(function, arguments):
    y = function(leaf([[1.0, 2.0], [3.0, 4.0]]))
    node = y.grad_fn
    for name, value in arguments.items():
        found = getattr(node, f"_saved_{name}")
        assert found == value and type(found) is type(value), name
        assert f"_saved_{name}" in dir(node)
    y.sum().backward()
    assert all(getattr(node, f"_saved_{name}") == value for name, value in arguments.items())


def test_an_index_is_saved():
    index = T.tensor([1, 0])
    assert leaf([1.0, 2.0]).index_select(0, index).grad_fn._saved_index.tolist() == [1, 0]
    assert leaf([1.0, 2.0]).gather(0, index).grad_fn._saved_index.tolist() == [1, 0]


@pytest.mark.parametrize("loss", ["mse_loss", "smooth_l1_loss", "huber_loss"])
def test_a_loss_gradient_that_is_written_over(loss):
    x, y = leaf([1.0, 2.0]), leaf([0.5, 0.0])
    value = getattr(T.nn.functional, loss)(x, y)
    mine, deep = T.autograd.grad(value, [value, x], T.tensor(1.0), create_graph=True)
    mine.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        deep.sum().backward()


def test_layer_norm_keeps_what_it_took_out():
    x = tensor([[1.0, 2.0, 3.0], [2.0, 2.0, 5.0]], "float64", grad=True)
    weight, bias = tensor([1.0, 2.0, 3.0], "float64", grad=True), tensor([0.0, 1.0, 0.0], "float64", grad=True)
    y = T.nn.functional.layer_norm(x, (3,), weight, bias)
    node = y.grad_fn
    assert_values(node._saved_result1, [[2.0], [3.0]])
    assert_values(node._saved_result2, [[1.2247357], [0.70710501]], rtol=1e-6)
    assert node._saved_bias is bias and node._saved_weight is weight and node._saved_input is x
    with T.no_grad():
        bias.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_layer_norm_of_hooks():
    seen = []
    x, weight, bias = tensor([[1.0, 2.0, 4.0]], grad=True), leaf([5.0, 5.0, 5.0]), leaf([7.0, 7.0, 7.0])
    with graph.saved_tensors_hooks(lambda t: seen.append(t.detach().flatten().tolist()[0]) or t.detach(), lambda t: t):
        y = T.nn.functional.layer_norm(x, (3,), weight, bias)
    assert seen[:3] == [7.0, 1.0, 5.0] and len(seen) == 5
    y.square().sum().backward()
    assert_values(x.grad, [[-0.00104, 0.00116, -0.00012]], atol=2e-2)


def test_activations_in_place_keep_their_result():
    for name, slope in [("elu", 0.36787944), ("leaky_relu", 0.01)]:
        x = leaf([-1.0, 2.0])
        y = getattr(T.nn.functional, name)(x * 1, inplace=True)
        (g,) = T.autograd.grad(y.sum(), x, create_graph=True)
        assert_values(g, [slope, 1.0])
        y.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_a_raw_value_shows_what_is_kept():
    x = leaf([1.0, 2.0])
    raw = (x * x).grad_fn._raw_saved_self
    assert raw.data is x and raw.unpack_hook is None
    y = x.exp()
    shown = y.grad_fn._raw_saved_result.data
    assert shown.tolist() == y.tolist() and not shown.requires_grad
    assert (x * T.ones(2)).grad_fn._raw_saved_self.data is None

    def unpack(kept):
        return kept[1]

    with graph.saved_tensors_hooks(lambda t: ("kept", t), unpack):
        y = x * x
    raw = y.grad_fn._raw_saved_self
    assert raw.data[0] == "kept" and raw.unpack_hook is unpack and raw.unpack().tolist() == [1.0, 2.0]
    y.sum().backward()
    assert raw.data is None and raw.unpack_hook is None


def test_a_derivative_that_was_refused_keeps_its_values():
    x, refuse = leaf([1.0, 2.0]), [True]

    def unpack(t):
        assert not refuse[0], "not yet"
        return t

    with graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x.exp()
    loss = y.sum()
    for _ in range(2):
        with pytest.raises(AssertionError, match="not yet"):
            loss.backward()
    refuse[0] = False
    loss.backward()
    assert_values(x.grad, y.tolist())
    y = x.exp()
    with T.no_grad():
        y.mul_(2)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
