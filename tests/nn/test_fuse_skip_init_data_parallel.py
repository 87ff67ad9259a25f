"""The rest of nn: fusion, skipped first values, wrappers for several devices, kernels of attention, old names."""

import importlib

import pytest

from library import IS_GRADIRON, NAME, T, assert_values

nn = T.nn


def test_fuse_linear():
    linear, bn = nn.Linear(3, 2), nn.BatchNorm1d(2)
    with T.no_grad():
        bn.running_mean.copy_(T.tensor([0.5, -0.5]))
        bn.running_var.copy_(T.tensor([2.0, 0.5]))
        bn.weight.copy_(T.tensor([1.5, 2.0]))
    with pytest.raises(AssertionError, match="^Fusion only for eval!"):
        nn.utils.fuse_linear_bn_eval(linear, bn)
    fused = nn.utils.fuse_linear_bn_eval(linear.eval(), bn.eval())
    x = T.randn(4, 3)
    expected = (linear(x) - bn.running_mean) / (bn.running_var + bn.eps).sqrt() * bn.weight + bn.bias
    assert_values(fused(x), expected, rtol=1e-4, atol=1e-5)
    assert isinstance(fused.weight, nn.Parameter) and fused is not linear


def test_fuse_conv_weights():
    w, b = nn.utils.fuse_conv_bn_weights(
        nn.Parameter(T.ones(2, 3, 1)), None, T.tensor([1.0, 2.0]), T.tensor([3.0, 0.0]), 1.0, None, T.tensor([0.0, 1.0])
    )
    assert_values(w, [[[0.5]] * 3, [[1.0]] * 3])
    assert_values(b, [-0.5, -1.0])
    assert isinstance(w, nn.Parameter)


def test_skip_init():
    T.manual_seed(0)
    m = nn.utils.skip_init(nn.Linear, 3, 2, dtype=T.float64)
    assert m.weight.shape == (2, 3) and m.weight.dtype == T.float64 and isinstance(m.weight, nn.Parameter)
    after = T.rand(1)
    T.manual_seed(0)
    assert T.rand(1) == after
    assert nn.utils.skip_init(nn.Linear, 3, 2, device="meta").weight.is_meta

    class Filled(nn.Module):
        def __init__(self, device):
            super().__init__()
            self.weight = nn.Parameter(T.zeros(2, device=device))
            seen.append(self.weight.device.type)

    seen = []
    assert nn.utils.skip_init(Filled).weight.device.type == "cpu" and seen == ["meta"]
    with pytest.raises(RuntimeError, match="^Module must support a 'device' arg to skip initialization"):
        nn.utils.skip_init(nn.ReLU)
    with pytest.raises(RuntimeError, match="^Expected a Module; got <class 'int'>"):
        nn.utils.skip_init(int)


def test_stateless():
    m = nn.Linear(2, 1, bias=False)
    with pytest.warns(FutureWarning, match="^`torch.nn.utils.stateless.functional_call` is deprecated"):
        out = nn.utils.stateless.functional_call(m, {"weight": T.full((1, 2), 3.0)}, T.ones(2))
    assert_values(out, [6.0])
    out = T.func.functional_call(m, {"weight": T.full((1, 2), 2.0)}, (T.ones(2),))
    assert_values(out, [4.0])
    with pytest.raises(RuntimeError, match="Unexpected key"):
        T.func.functional_call(m, {"weight": T.ones(1, 2), "no": T.ones(1)}, T.ones(2), strict=True)
    with pytest.raises(RuntimeError) as error:
        T.func.functional_call(m, {"no": T.ones(1)}, T.ones(2), strict=True)
    assert str(error.value) == (
        "Error(s) in reparametrizing for Linear:\n\tUnexpected key(s): 'no'.\n\tMissing key(s): 'weight'."
    )


def test_buffers_that_a_call_replaces():
    class Count(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", T.zeros(()))

        def forward(self):
            self.count = self.count + 1
            return self.count

    m, given = Count(), {"count": T.full((), 4.0)}
    assert T.func.functional_call(m, given, ()).item() == 5 == given["count"].item()
    assert m.count.item() == 0


def test_memory_format():
    m = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Linear(2, 2))
    nn.utils.convert_conv2d_weight_memory_format(m, T.channels_last)
    assert m[0].weight.is_contiguous(memory_format=T.channels_last) and isinstance(m[0].weight, nn.Parameter)


def test_one_device():
    m = nn.Linear(2, 1)
    wrapped = nn.DataParallel(m)
    assert wrapped.module is m and list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    assert_values(wrapped(T.ones(3, 2)), m.cpu()(T.ones(3, 2)) if not wrapped.device_ids else wrapped(T.ones(3, 2)).tolist())
    state = wrapped.state_dict()
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["weight", "bias"]
    m.load_state_dict(state)


def test_attention_kernels():
    attention = importlib.import_module(f"{NAME}.nn.attention")
    with attention.sdpa_kernel(attention.SDPBackend.MATH):
        pass
    with attention.sdpa_kernel([attention.SDPBackend.MATH, attention.SDPBackend.FLASH_ATTENTION]):
        pass
    with pytest.raises(AssertionError, match="^Backend must be an instance of SDPBackend or a list of SDPBackend instances"):
        with attention.sdpa_kernel("math"):
            pass


def test_gradients_of_convolutions():
    if not hasattr(nn.functional, "conv2d"):
        pytest.skip("conv2d is missing")
    x, w = T.randn(1, 2, 4, 4, requires_grad=True), T.randn(3, 2, 2, 2, requires_grad=True)
    g = T.randn(1, 3, 3, 3)
    gx, gw = T.autograd.grad(nn.functional.conv2d(x, w), (x, w), g)
    grad = importlib.import_module(f"{NAME}.nn.grad")
    assert_values(grad.conv2d_input(x.shape, w, g), gx)
    assert_values(grad.conv2d_weight(x, w.shape, g), gw)
    assert nn.functional.grad is grad


def test_old_names_of_init():
    for (
        name
    ) in "uniform normal constant eye dirac xavier_uniform xavier_normal kaiming_uniform kaiming_normal orthogonal".split():
        with pytest.warns(FutureWarning, match=f"^`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`."):
            getattr(nn.init, name)(
                T.empty(3, 3, 3) if name == "dirac" else T.empty(3, 3), *([0.1] if name == "constant" else [])
            )
    with pytest.warns(FutureWarning):
        nn.init.sparse(T.empty(3, 3), 0.1)


@pytest.mark.gradiron  # PyTorch has written it by then.
def test_orthogonal_writes_nothing_before_it_refuses_a_gain():
    matrix = T.ones(3, 3)
    with pytest.raises(TypeError):
        nn.init.orthogonal_(matrix, [2.0])
    assert matrix.tolist() == [[1.0] * 3] * 3


def test_init_refuses():
    init = nn.init
    for call, kind, text in [
        (lambda: init.eye_(T.empty(3)), ValueError, "Only tensors with 2 dimensions are supported"),
        (lambda: init.dirac_(T.empty(3, 3)), ValueError, "Only tensors with 3, 4, or 5 dimensions are supported"),
        (lambda: init.dirac_(T.empty(3, 3, 3), 2), ValueError, "dim 0 must be divisible by groups"),
        (lambda: init.orthogonal_(T.empty(3)), ValueError, "Only tensors with 2 or more dimensions are supported"),
        (lambda: init.sparse_(T.empty(3), 0.1), ValueError, "Only tensors with 2 dimensions are supported"),
        (
            lambda: init.xavier_uniform_(T.empty(3)),
            ValueError,
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions",
        ),
        (
            lambda: init.kaiming_normal_(T.empty(3, 3), mode="no"),
            ValueError,
            "Mode no not supported, please use one of ['fan_in', 'fan_out']",
        ),
        (lambda: init.calculate_gain("no"), ValueError, "Unsupported nonlinearity no"),
        (lambda: init.calculate_gain("leaky_relu", "a"), ValueError, "negative_slope a not a valid number"),
    ]:
        with pytest.raises(kind) as error:
            call()
        assert str(error.value) == text
    with pytest.warns(UserWarning, match="^Initializing zero-element tensors is a no-op"):
        init.kaiming_uniform_(T.empty(0, 3))
    with pytest.warns(UserWarning, match="^mean is more than 2 std from"):
        init.trunc_normal_(T.empty(3), mean=5.0)
    assert not nn.init.ones_(nn.Parameter(T.empty(2))).grad_fn and init.calculate_gain("tanh") == 5 / 3
    assert IS_GRADIRON or T is not None


def test_init_draws_from_a_generator():
    draws = []
    for _ in range(2):
        g = T.Generator().manual_seed(3)
        draws.append(nn.init.kaiming_uniform_(T.empty(3, 3), generator=g))
    assert_values(draws[0], draws[1])


def test_adaptive_softmax_is_a_softmax_of_clusters():
    T.manual_seed(0)
    layer = nn.AdaptiveLogSoftmaxWithLoss(6, 10, [3, 6], div_value=2.0)
    x, target = T.randn(4, 6), T.tensor([0, 3, 5, 9])
    every = layer.log_prob(x)
    assert_values(every.exp().sum(1), [1.0] * 4, 1e-5)
    output, loss = layer(x, target)
    assert_values(output, every[T.arange(4), target].tolist(), 1e-5)
    assert_values(loss, -output.mean().item(), 1e-6)
    assert T.equal(layer.predict(x), every.argmax(1))
    one, alone = layer(x[1], target[1])
    assert_values(one, output[1].item(), 1e-5)
    assert_values(alone, -one.item(), 1e-6)
    for given, labels, message in (
        (x, target[:3], "Input and target should have the same size in the batch dimension"),
        (x, T.tensor([0, 3, 5, 10]), "Target values should be in .0, 9., but values in range .0, 10. were found"),
        (x[0], target, "0D target tensor|Input and target should have the same size|1D input"),
    ):
        with pytest.raises(RuntimeError, match=message):
            layer(given, labels)


@pytest.mark.parametrize("cutoffs", [[], [3, 3], [6, 3], [0, 3], [3, 11]])
def test_cutoffs_rise(cutoffs):
    with pytest.raises(ValueError, match="cutoffs should be a sequence of unique, positive integers|cutoffs should be"):
        nn.AdaptiveLogSoftmaxWithLoss(6, 10, cutoffs)


@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss, nn.MSELoss, nn.BCELoss, nn.NLLLoss, nn.SmoothL1Loss])
def test_a_loss_that_is_given_tensors_instead_of_called(loss):
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        loss(T.rand(3, 4), T.tensor([0, 1, 2]))
