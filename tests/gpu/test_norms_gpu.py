"""Normalization on the GPU: the CPU's values and gradients, in a few launches."""

import pytest

from library import NO_GPU, T, assert_values

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")]
F, nn = T.nn.functional, T.nn
LAYERS = {
    "layer": (lambda: nn.LayerNorm(7), (5, 7)),
    "layer of planes": (lambda: nn.LayerNorm((3, 300)), (2, 3, 300)),
    "layer without weights": (lambda: nn.LayerNorm(7, elementwise_affine=False), (2, 3, 7)),
    "layer without bias": (lambda: nn.LayerNorm(40, bias=False), (70, 40)),
    "root": (lambda: nn.RMSNorm(7), (5, 7)),
    "root without weights": (lambda: nn.RMSNorm(7, elementwise_affine=False), (5, 7)),
    "groups": (lambda: nn.GroupNorm(2, 4), (3, 4, 5)),
    "groups of planes": (lambda: nn.GroupNorm(3, 6), (2, 6, 8, 9)),
    "groups without weights": (lambda: nn.GroupNorm(2, 4, affine=False), (3, 4)),
    "batch": (lambda: nn.BatchNorm1d(4), (6, 4)),
    "batch of planes": (lambda: nn.BatchNorm2d(3), (4, 3, 9, 8)),
    "batch without weights": (lambda: nn.BatchNorm1d(40, affine=False), (70, 40, 2)),
    "batch without running numbers": (lambda: nn.BatchNorm2d(3, track_running_stats=False), (4, 3, 2, 2)),
    "instances": (lambda: nn.InstanceNorm1d(3, affine=True, track_running_stats=True), (2, 3, 50)),
}


def results(layer, x, device):
    """The value, the gradients of all that went in, and the buffers."""
    layer, x = layer.to(device), x.detach().to(device).requires_grad_()
    y = layer(x)
    weights = T.linspace(-1, 2, y.numel(), dtype=y.dtype).view(y.shape).to(device)
    return [y.detach(), *T.autograd.grad(y, [x, *layer.parameters()], weights), *map(T.clone, layer.buffers())]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_norms_are_those_of_the_cpu(name, training):
    make, shape = LAYERS[name]
    T.manual_seed(0)
    layer, x = make().train(training), T.randn(shape) * 3 + 1
    for p in layer.parameters():
        nn.init.uniform_(p, 0.5, 2)
    state = {key: value.clone() for key, value in layer.state_dict().items()}
    here = results(layer, x, "cpu")
    layer.load_state_dict(state)
    there = results(layer, x, "cuda")
    for a, b in zip(here, there, strict=True):
        assert b.is_cuda and b.dtype == a.dtype
        assert_values(b.cpu(), a, 1e-4)


def test_channels_last():
    T.manual_seed(0)
    x = T.randn(2, 5, 4, 3).contiguous(memory_format=T.channels_last)
    for layer in (nn.BatchNorm2d(5), nn.GroupNorm(5, 5)):
        y = layer(x)
        there = layer.to("cuda")(x.cuda())
        assert_values(there.cpu().detach(), y.detach(), 1e-5)
        assert there.is_contiguous(memory_format=T.channels_last)


def test_long_rows():
    """Rows that are longer than what some drivers let a kernel go through."""
    x = T.ones(1, 18_000_000, device="cuda")
    x[0, ::2] = 3
    y = F.layer_norm(x, (18_000_000,))
    assert_values(y[0, :2].cpu(), [1, -1], 1e-3)


LAUNCHES = {"layer": (1, 2), "root": (1, 2), "groups of planes": (1, 3), "batch of planes": (4, 1)}


@pytest.mark.parametrize("name", LAUNCHES)
def test_launches(name):
    make, shape = LAYERS[name]
    layer, x = make().cuda(), T.randn(shape).cuda().requires_grad_()
    inputs, ones = [x, *layer.parameters()], T.ones(shape, device="cuda")
    layer(x)
    counts = [T.cuda.dispatches()]
    y = layer(x)
    counts.append(T.cuda.dispatches())
    T.autograd.grad(y, inputs, ones)
    counts.append(T.cuda.dispatches())
    assert tuple(b - a for a, b in zip(counts, counts[1:], strict=False)) == LAUNCHES[name]
