"""Modules under function transforms: per-sample gradients, ensembles, tangents."""

import pytest

from library import T, assert_values

nn = T.nn
F = T.func


def net():
    T.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.LayerNorm(4), nn.Linear(4, 1))


def loss(params, model, x, y):
    return nn.functional.mse_loss(F.functional_call(model, params, (x,)), y)


def test_gradients_of_each_sample():
    model, x, y = net(), T.randn(5, 3), T.randn(5, 1)
    params = {name: p.detach() for name, p in model.named_parameters()}
    each = F.vmap(F.grad(loss), in_dims=(None, None, 0, 0))(params, model, x, y)
    for at in range(5):
        model.zero_grad()
        nn.functional.mse_loss(model(x[at]), y[at]).backward()
        for name, p in model.named_parameters():
            assert_values(each[name][at], p.grad, rtol=1e-4, atol=1e-6)


def test_ensembles():
    models = [nn.Linear(3, 2) for _ in range(3)]
    params, buffers = F.stack_module_state(models)
    assert params["weight"].shape == (3, 2, 3) and not buffers
    x = T.randn(4, 3)
    out = F.vmap(lambda p: F.functional_call(models[0], p, (x,)))(params)
    for at, model in enumerate(models):
        assert_values(out[at], model(x))
    out.sum().backward()
    assert params["weight"].grad is None or params["weight"].is_leaf


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # of PyTorch's own making
def test_tangents():
    model, x, v = net(), T.randn(2, 3), T.randn(2, 3)
    out, tangent = F.jvp(model, (x,), (v,))
    jacobian = F.jacrev(model)(x)
    assert_values(tangent, T.einsum("aibj,bj->ai", jacobian, v), rtol=1e-4, atol=1e-5)
    assert_values(out, model(x))


def test_tied_weights():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2, bias=False)
            self.b = nn.Linear(2, 2, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    m, new = Tied(), T.eye(2) * 3
    assert_values(F.functional_call(m, {"a.weight": new}, T.ones(2)), [9.0, 9.0])
    with pytest.raises(ValueError, match="which are tied"):
        F.functional_call(m, {"a.weight": new, "b.weight": T.eye(2)}, T.ones(2))
    out = F.functional_call(m, {"a.weight": new, "b.weight": T.eye(2)}, T.ones(2), tie_weights=False)
    assert_values(out, [3.0, 3.0])
    assert m.a.weight is m.b.weight and isinstance(m.a.weight, nn.Parameter)


def test_names_that_a_module_does_not_have():
    class Asks(nn.Module):
        def forward(self, x):
            return x + self.more if hasattr(self, "more") else x

    for more in (T.ones(2), nn.Parameter(T.ones(2))):
        m = Asks()
        assert_values(F.functional_call(m, {"more": more}, T.ones(2)), [2.0, 2.0])
        assert not hasattr(m, "more") and not list(m.parameters()) and m(T.zeros(2)).tolist() == [0.0, 0.0]
    with pytest.raises(TypeError, match="attribute `0`: Asks\\(\\) is not an instance"):
        F.functional_call(nn.Sequential(Asks()), {"0": T.ones(2)}, T.ones(2))
    with pytest.raises(TypeError, match="3 is not an instance of torch.Tensor"):
        F.functional_call(nn.Linear(2, 2), {"weight": 3}, T.ones(2))


def test_batch_norm_without_statistics():
    m = nn.Sequential(nn.BatchNorm1d(2), nn.BatchNorm1d(2, track_running_stats=False))
    F.replace_all_batch_norm_modules_(m)
    assert m[0].running_mean is None and m[0].num_batches_tracked is None and m[0].track_running_stats is False
    assert not list(m.buffers())


def test_checkpointed_modules():
    from importlib import import_module

    checkpoint = import_module(f"{T.__name__}.utils.checkpoint").checkpoint
    model, x = net(), T.randn(2, 3, requires_grad=True)
    model(x).sum().backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    checkpoint(model, x, use_reentrant=False).sum().backward()
    for p, grad in zip(model.parameters(), expected):
        assert_values(p.grad, grad)
