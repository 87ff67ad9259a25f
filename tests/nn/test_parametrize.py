"""Tensors that are functions of others, and the weights by length or spectral norm that are made with them."""

import copy
import pickle

import pytest

from library import T, assert_values

nn = T.nn
P = nn.utils.parametrize


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)

    def right_inverse(self, a):
        return a.triu()


class Double(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, a):
        return a / 2


class Product(nn.Module):
    def forward(self, a, b):
        return a * b

    def right_inverse(self, w):
        return w, T.ones_like(w)


def linear():
    return nn.Linear(3, 3)


def test_one():
    m = linear()
    before = m.weight.detach().clone()
    assert P.register_parametrization(m, "weight", Symmetric()) is m
    assert P.is_parametrized(m) and P.is_parametrized(m, "weight") and not P.is_parametrized(m, "bias")
    assert T.equal(m.weight, m.weight.T) and T.equal(m.weight.triu(), before.triu())
    assert [n for n, _ in m.named_parameters()] == ["bias", "parametrizations.weight.original"]
    assert type(m).__name__ == "ParametrizedLinear" and isinstance(m, nn.Linear)
    assert P.type_before_parametrizations(m) is nn.Linear
    m(T.ones(1, 3)).sum().backward()
    assert m.parametrizations.weight.original.grad is not None
    m.weight = T.ones(3, 3)
    assert_values(m.parametrizations.weight.original, T.ones(3, 3).triu())
    assert list(m.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert P.remove_parametrizations(m, "weight") is m
    assert type(m) is nn.Linear and isinstance(m.weight, nn.Parameter) and not hasattr(m, "parametrizations")
    assert_values(m.weight, T.ones(3, 3))


def test_several():
    m = linear()
    before = m.weight.detach().clone()
    P.register_parametrization(m, "weight", Double())
    P.register_parametrization(m, "weight", Double())
    P.register_parametrization(m, "bias", Double())
    assert_values(m.weight, before * 2)
    m.weight = before
    assert_values(m.parametrizations.weight.original, before / 4)
    assert_values(m.weight, before)
    P.remove_parametrizations(m, "weight", leave_parametrized=False)
    assert_values(m.weight, before / 4)
    assert P.is_parametrized(m, "bias") and type(m) is not nn.Linear


def test_of_several_tensors():
    m = linear()
    before = m.weight.detach().clone()
    P.register_parametrization(m, "weight", Product())
    assert_values(m.weight, before)
    assert [n for n, _ in m.named_parameters()][1:] == [
        "parametrizations.weight.original0",
        "parametrizations.weight.original1",
    ]
    m.weight = T.full((3, 3), 7.0)
    assert_values(m.parametrizations.weight.original0, T.full((3, 3), 7.0))
    with pytest.raises(ValueError, match="^Cannot leave unparametrized"):
        P.remove_parametrizations(m, "weight", leave_parametrized=False)
    P.remove_parametrizations(m, "weight")
    assert isinstance(m.weight, nn.Parameter)


def test_buffers_and_modes():
    m = nn.BatchNorm1d(3)
    P.register_parametrization(m, "running_mean", Double())
    assert [n for n, _ in m.named_buffers()][-1] == "parametrizations.running_mean.original"
    m.eval()
    assert not m.parametrizations.running_mean[0].training
    double = Double()
    P.register_parametrization(m, "weight", double)
    assert not double.training


def test_cached():
    calls = []

    class Counting(nn.Module):
        def forward(self, x):
            calls.append(1)
            return x + 0

    m = linear()
    P.register_parametrization(m, "weight", Counting())
    calls.clear()
    m.weight, m.weight
    assert len(calls) == 2
    with P.cached():
        assert m.weight is m.weight
    assert len(calls) == 3 and m.weight is not m.weight


def test_copies_and_pickles():
    m = linear()
    P.register_parametrization(m, "weight", Double())
    other = copy.deepcopy(m)
    assert type(other) is type(m)
    assert_values(other.weight, m.weight)
    with T.no_grad():
        other.parametrizations.weight.original.zero_()
    assert m.weight.abs().sum() > 0
    with pytest.raises(RuntimeError, match=r"^Serialization of parametrized modules is only supported through state_dict\(\)"):
        pickle.dumps(m)
    other.load_state_dict(m.state_dict())
    assert_values(other.weight, m.weight)


def test_what_is_refused():
    class Shape(nn.Module):
        def forward(self, x):
            return x[0]

    class Dtype(nn.Module):
        def forward(self, x):
            return x.double()

    class Nothing(nn.Module):
        def forward(self, x):
            return None

    for make in (linear, lambda: P.register_parametrization(linear(), "weight", Double())):
        with pytest.raises(ValueError, match="^Registering a parametrization may not change the shape of the tensor, unless"):
            P.register_parametrization(make(), "weight", Shape())
        with pytest.raises(ValueError, match="^Registering a parametrization may not change the dtype of the tensor, unless"):
            P.register_parametrization(make(), "weight", Dtype())
        with pytest.raises(ValueError, match="^A parametrization must return a tensor. Got NoneType."):
            P.register_parametrization(make(), "weight", Nothing())
        assert P.register_parametrization(make(), "weight", Shape(), unsafe=True).weight.shape == (3,)
    m = linear()
    with pytest.raises(ValueError, match="does not have a parameter, a buffer, or a parametrized element with name 'no'"):
        P.register_parametrization(m, "no", Double())
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        P.remove_parametrizations(m, "weight")
    P.register_parametrization(m, "weight", nn.Identity())
    with pytest.raises(RuntimeError, match="^parametrization Identity does not implement right_inverse."):
        m.weight = T.ones(3, 3)


def test_transfer():
    m, other = linear(), linear()
    P.register_parametrization(m, "weight", Double())
    P.transfer_parametrizations_and_params(m, other)
    assert other.parametrizations.weight.original is m.parametrizations.weight.original
    assert_values(other.weight, m.weight)


def test_orthogonal():
    for size in ((4, 4), (3, 5), (5, 3)):
        m = nn.utils.parametrizations.orthogonal(nn.Linear(*size))
        w = m.weight
        small = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
        assert_values(small, T.eye(min(size)), atol=1e-5)
        m.weight = nn.init.orthogonal_(T.empty(size[1], size[0]))
        w.sum().backward()
    with pytest.raises(ValueError, match='^orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: no'):
        nn.utils.parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="no")
    with pytest.raises(ValueError, match="has no parameter or buffer with name 'no'"):
        nn.utils.parametrizations.orthogonal(nn.Linear(2, 2), "no")
    with pytest.raises(ValueError, match="^Expected a matrix or batch of matrices. Got a tensor of 1 dimensions."):
        nn.utils.parametrizations.orthogonal(nn.Linear(2, 2), "bias")


def test_weight_norm_by_hook():
    m = linear()
    before = m.weight.detach().clone()
    with pytest.warns(FutureWarning, match="^`torch.nn.utils.weight_norm` is deprecated in favor of"):
        assert nn.utils.weight_norm(m) is m
    assert [n for n, _ in m.named_parameters()] == ["bias", "weight_g", "weight_v"] and m.weight_g.shape == (3, 1)
    assert_values(m.weight, before)
    with T.no_grad():
        m.weight_g.mul_(2)
    m(T.ones(1, 3)).sum().backward()
    assert_values(m.weight, before * 2)
    assert m.weight_g.grad is not None
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="^Cannot register two weight_norm hooks on the same"):
        nn.utils.weight_norm(m)
    assert nn.utils.remove_weight_norm(m) is m
    assert isinstance(m.weight, nn.Parameter) and not m._forward_pre_hooks
    assert_values(m.weight, before * 2)
    with pytest.raises(ValueError, match="^weight_norm of 'weight' not found in Linear"):
        nn.utils.remove_weight_norm(m)


def test_weight_norm_takes_states_of_the_hook():
    m = linear()
    with pytest.warns(FutureWarning):
        nn.utils.weight_norm(m)
    other = nn.utils.parametrizations.weight_norm(linear())
    other.load_state_dict(m.state_dict())
    assert_values(other.weight, m.weight)


def test_spectral_norm_by_hook():
    m = nn.utils.spectral_norm(linear(), n_power_iterations=30)
    assert [n for n, _ in m.named_parameters()] == ["bias", "weight_orig"]
    assert [n for n, _ in m.named_buffers()] == ["weight_u", "weight_v"]
    m(T.ones(1, 3)).sum().backward()
    u, v = m.weight_u, m.weight_v
    assert abs(T.dot(u, m.weight.detach() @ v).item() - 1) < 1e-4 and m.weight_orig.grad is not None
    state = m.state_dict()
    assert state._metadata[""]["spectral_norm"] == {"weight.version": 1}
    other = nn.utils.spectral_norm(linear())
    other.load_state_dict(state)
    assert_values(other.weight_u, u)
    m.eval()
    out = m(T.ones(1, 3))
    assert_values(m(T.ones(1, 3)), out)
    with pytest.raises(RuntimeError, match="^Cannot register two spectral_norm hooks on the same parameter weight"):
        nn.utils.spectral_norm(m)
    with pytest.raises(ValueError, match="^Expected n_power_iterations to be positive"):
        nn.utils.spectral_norm(linear(), n_power_iterations=0)
    nn.utils.remove_spectral_norm(m)
    assert isinstance(m.weight, nn.Parameter) and not m._forward_pre_hooks and not m._state_dict_hooks
    assert_values(m(T.ones(1, 3)), out)
    with pytest.raises(ValueError, match="^spectral_norm of 'weight' not found in Linear"):
        nn.utils.remove_spectral_norm(m)


def test_two_calls_of_a_spectral_norm_before_backward():
    for make in (nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm):
        m = make(linear())
        (m(T.ones(1, 3)) + m(T.ones(1, 3))).sum().backward()


def test_the_exponential_of_an_endless_weight_ends():
    layer = T.nn.utils.parametrizations.orthogonal(T.nn.Linear(3, 3), orthogonal_map="matrix_exp")
    with T.no_grad():
        layer.parametrizations.weight.original.fill_(float("inf"))
    assert not layer.weight.isfinite().all()


@pytest.mark.parametrize("how", ["matrix_exp", "cayley"])
@pytest.mark.parametrize("size", [(3, 3), (4, 2), (2, 4)])
def test_orthogonal_complex_weights(how, size):
    layer = nn.Linear(size[1], size[0], bias=False, dtype=T.complex128)
    nn.utils.parametrizations.orthogonal(layer, orthogonal_map=how)
    for _ in "ab":
        w = layer.weight if size[0] >= size[1] else layer.weight.mH
        assert_values(w.mH @ w, T.eye(min(size), dtype=T.complex128).tolist(), 0, 1e-9)
        layer.weight = layer.weight.detach() * 1j  # is orthogonal, too
