"""Private names of PyTorch's that packages import. Numbers are those that PyTorch 2.15 gave."""

import importlib
import math

import pytest

from library import NAME, T

nn = T.nn


def load(name):
    return importlib.import_module(f"{T.__name__}.{name}")


def test_factor_of_a_precision():
    make = load("distributions.multivariate_normal")._precision_to_scale_tril
    precision = T.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=T.float64)
    tril = make(precision)
    assert T.allclose(tril @ tril.mT, T.linalg.inv(precision)) and tril[0, 1] == 0


def test_parts_of_functional():
    f = load("autograd.functional")
    a, b = f._construct_standard_basis_for((T.zeros(2, 2), T.zeros(1, dtype=T.float64)), (4, 1))
    assert a.shape == (5, 4) and b.shape == (5, 1) and b.dtype is T.float64
    assert T.cat([a.double(), b], 1).tolist() == T.eye(5).tolist()
    assert f._as_tuple(a) == (a,) and f._as_tuple([a]) == (a,)
    assert f._as_tuple(a, "inputs", "jacobian") == (False, (a,)) and f._as_tuple((a,), "inputs", "jacobian") == (True, (a,))
    with pytest.raises(TypeError, match="The inputs given to jacobian must be either a Tensor or a tuple of Tensors"):
        f._as_tuple([a], "inputs", "jacobian")
    x = T.ones(1, requires_grad=True) * 2
    assert not f._grad_postprocess(((x,),), False)[0][0].requires_grad and f._grad_postprocess((x,), True)[0] is x
    rows = ((1,), (2,))
    assert f._tuple_postprocess(rows, (False, True)) == (1,) and f._tuple_postprocess(rows, (True, False)) == (1, 2)
    assert f._tuple_postprocess(rows, (True, True)) == rows and f._tuple_postprocess((1,), False) == 1


@pytest.mark.parametrize(
    "t, wanted", [(1.0, (0.15595024824142456, 0.5902, 0.0790, 4)), (1e-4, (22.13054847717285, -24.2679, 0.0055045, 3))]
)
def test_line_search(t, wanted):
    def evaluate(x, t, d):
        y = x + t * d
        return float(((y - 2) ** 4).sum()), 4 * (y - 2) ** 3

    x = T.zeros(2)
    loss, grad = float(((x - 2) ** 4).sum()), 4 * (x - 2) ** 3
    found = load("optim.lbfgs")._strong_wolfe(evaluate, x, t, -grad, loss, grad, grad.dot(-grad))
    assert math.isclose(found[0], wanted[0], rel_tol=1e-4) and math.isclose(found[1][0], wanted[1], abs_tol=1e-3)
    assert math.isclose(found[2], wanted[2], rel_tol=1e-3) and found[3] == wanted[3]


def test_other_tensors_for_a_while():
    layer, state = nn.Linear(2, 1), {"weight": T.ones(1, 2), "bias": T.zeros(1)}
    own = layer.weight
    with load("nn.utils.stateless")._reparametrize_module(layer, state):
        assert layer(T.ones(2)).item() == 2
    assert layer.weight is own
    with pytest.raises(RuntimeError, match="Missing key"):
        with load("nn.utils.stateless")._reparametrize_module(layer, {"weight": T.ones(1, 2)}, strict=True):
            pass


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_gradients_of_each_sample(reduction):
    call = load("nn.utils._per_sample_grad").call_for_per_sample_grads
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    x = T.randn(4, 2, dtype=T.float64)
    getattr(call(model, loss_reduction=reduction)(x) ** 2, reduction)().backward()
    for i in range(4):
        wanted = T.autograd.grad((model(x[i : i + 1]) ** 2).sum(), list(model.parameters()))
        for parameter, grad in zip(model.parameters(), wanted):
            assert T.allclose(parameter.grad_sample[i], grad) and parameter.grad is None
    with pytest.raises(RuntimeError, match="Please clear out the grad_sample"):
        call(model)
    for arguments, text in (({"batch_size": 0}, "must be positive, got 0"), ({"loss_reduction": "x"}, "sum or mean, got x")):
        with pytest.raises(RuntimeError, match=text):
            call(nn.ReLU(), **arguments)


def test_questions_of_vmap():
    c, seen = load("_C._functorch"), []

    def f(x):
        seen.append((c.is_batchedtensor(x), c.maybe_get_bdim(x), tuple(c.get_unwrapped(x).shape)))
        return x.sum()

    x = T.ones(2, 3)
    T.vmap(f)(x)
    T.vmap(T.vmap(f))(x)
    assert seen == [(True, 0, (2, 3)), (True, 0, (3,))]
    assert not c.is_batchedtensor(x) and c.maybe_get_level(x) == c.maybe_get_bdim(x) == -1
    with pytest.raises(RuntimeError, match="No wrappers present!"):
        c.get_unwrapped(x)


def test_old_vmap():
    made = load("_vmap_internals")._vmap(lambda x: (x, None, x * 2), 0, (0, 0, 1), True)(T.ones(2, 3))
    assert made[0].shape == (2, 3) and made[1] is None and made[2].shape == (3, 2)


def test_streams_and_events_of_the_cpu():
    s, e = T.Stream("cpu"), T.Event("cpu")
    assert repr(s) == "torch.Stream device_type=cpu, device_index=-1, stream_id=0" and s.query() and e.query()
    assert s == T.Stream("cpu") and s.device == T.device("cpu") and issubclass(T.cuda.Stream, T.Stream)
    with pytest.raises(RuntimeError, match="cpu backend doesn't support events"):
        s.record_event()
    with pytest.raises(ValueError, match="enable_timing=True"):
        e.elapsed_time(e)


def test_xpu():
    x = T.xpu
    assert x.memory_allocated() == 0 and x.get_rng_state_all() == [] and x.is_bf16_supported() is False
    assert x.manual_seed(0) is None and not x.is_available()
    for call in (x.current_device, x.synchronize, x.get_device_properties):
        with pytest.raises(AssertionError, match="Torch not compiled with XPU enabled"):
            call()
    with pytest.raises(RuntimeError, match="Tried to instantiate dummy base class Stream"):
        x.Stream()
    assert load("xpu.random").manual_seed is x.manual_seed and load("cuda.random").seed is T.cuda.seed


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_scripted_things_are_what_they_are_asked_for():
    model = T.jit.script(nn.Sequential(nn.Linear(2, 1)))
    assert isinstance(model, T.jit.ScriptModule) and not isinstance(nn.Linear(2, 1), T.jit.ScriptModule)
    assert model.original_name == "Sequential"
    assert issubclass(T.jit.Error, Exception) and not isinstance(len, T.jit.ScriptFunction)
    if NAME != "torch":
        assert isinstance(T.jit.script(lambda x: x), T.jit.ScriptFunction)


def test_custom_operator_of_a_private_namespace():
    @T.library.custom_op("_gradiron_test::twice", mutates_args=())
    def twice(x: T.Tensor) -> T.Tensor:
        return x * 2

    assert T.ops._gradiron_test.twice(T.ones(1)).item() == 2


def test_rules_of_vmap_get_nested_dims():
    seen = []

    class F(T.autograd.Function):
        @staticmethod
        def forward(parts, x, options):
            return parts[0] * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, parts, x, options):
            seen.append((in_dims, tuple(parts[0].shape)))
            return parts[0] * x, 0

    out = T.vmap(lambda x: F.apply((x, (T.ones(1), x)), x, {"k": (x, 3)}))(T.tensor([1.0, 2.0]))
    assert out.tolist() == [1, 4] and seen == [(((0, (None, 0)), 0, {"k": (0, None)}), (2,))]


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_empty_sparse_tensors():
    x = T.sparse_coo_tensor(size=(2, 3), dtype=T.float64)
    assert x.shape == (2, 3) and x._nnz() == 0 and x.dtype is T.float64
    for arguments in ({}, {"indices": [[0]], "size": (2,)}, {"values": T.ones(1), "size": (2,)}):
        with pytest.raises(TypeError, match="sparse_coo_tensor"):
            T.sparse_coo_tensor(**arguments)


@pytest.mark.skipif(NAME == "torch", reason="PyTorch's own package needs `expecttest`")
def test_cases():
    case = load("testing._internal.common_utils").TestCase()
    case.assertEqual([T.ones(1), {"a": 2.0}], [T.ones(1), {"a": 2.0}])
    case.assertEqual(T.ones(2).sum(), 2.0)
    case.assertNotEqual(T.ones(1), T.zeros(1))
    with pytest.raises(AssertionError):
        case.assertEqual(T.ones(1), T.ones(1) + 0.05)
    with pytest.raises(AssertionError):
        case.assertEqual(T.ones(1), T.ones(1, dtype=T.float64))
    case.precision = 0.1
    case.assertEqual(T.ones(1), T.ones(1) + 0.05)


@pytest.mark.skipif(NAME == "torch", reason="the launcher's second name")
def test_functorch_beside_torch():
    with T.as_torch():
        functorch = importlib.import_module("functorch")
    model = nn.BatchNorm1d(2)
    f, params, buffers = functorch.make_functional_with_buffers(model)
    x = T.randn(3, 2)
    assert T.equal(f(params, buffers, x), model(x))
    with pytest.raises(RuntimeError, match="`model` has buffers. Please use make_functional_with_buffers"):
        functorch.make_functional(model)
    linears = [nn.Linear(2, 1) for _ in range(3)]
    f, params, buffers = functorch.combine_state_for_ensemble(linears)
    out = functorch.vmap(f, in_dims=(0, 0, None))(params, buffers, x)
    assert T.allclose(out, T.stack([linear(x) for linear in linears]))
