"""Layers: the functions of networks in the sizes of a LeNet, a ResNet on 32x32 and a small transformer, with gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import Names, Setup, group

job = group("layers")


def layer(
    name: str,
    function: Callable[[Any, Names], Callable[..., Any]],
    *shapes: Sequence[int],
    forward: bool = True,
    **others: Callable[[Any], Any],
) -> None:
    """Two jobs: `function(T, others)` called with tensors of these shapes, alone and with all gradients."""

    def setup(recorded: bool) -> Setup:
        def names(T: Any) -> Names:
            T.manual_seed(0)
            inputs = [T.randn(*shape).mul_(0.5).requires_grad_(recorded) for shape in shapes]
            run = function(T, {key: make(T) for key, make in others.items()})
            g = T.ones_like(run(*inputs).detach())
            return {"grad": T.autograd.grad, "inputs": inputs, "run": run, "g": g}

        return names

    if forward:
        job(f"{name}, forward", "run(*inputs)", setup(False))
    job(f"{name}, forward and backward", "grad(run(*inputs), inputs, g)", setup(True))


def of(name: str, **options: Any) -> Callable[[Any, Names], Callable[..., Any]]:
    """A function of `nn.functional` with options."""

    def make(T: Any, others: Names) -> Callable[..., Any]:
        function = getattr(T.nn.functional, name)
        return lambda *inputs: function(*inputs, **others, **options)

    return make


def last(name: str, **options: Any) -> Callable[[Any, Names], Callable[..., Any]]:
    """As `of`; a tensor that is no input (`target`, `index`) follows the inputs."""

    def make(T: Any, others: Names) -> Callable[..., Any]:
        function = getattr(T.nn.functional, name)
        return lambda *inputs: function(*inputs, *others.values(), **options)

    return make


def whole(high: int, *shape: int) -> Callable[[Any], Any]:
    return lambda T: T.randint(0, high, shape)


# Convolutions: (image, weight).
layer("conv2d 1->6, 5x5, 64 of 28x28", of("conv2d", padding=2), (64, 1, 28, 28), (6, 1, 5, 5))
layer("conv2d 6->16, 5x5, 64 of 14x14", of("conv2d"), (64, 6, 14, 14), (16, 6, 5, 5))
layer("conv2d 3->64, 3x3, 16 of 32x32", of("conv2d", padding=1), (16, 3, 32, 32), (64, 3, 3, 3))
layer("conv2d 64->64, 3x3, 16 of 32x32", of("conv2d", padding=1), (16, 64, 32, 32), (64, 64, 3, 3))
layer("conv2d 64->128, 3x3, stride 2", of("conv2d", padding=1, stride=2), (16, 64, 32, 32), (128, 64, 3, 3))
layer("conv2d 256->256, 3x3, 16 of 8x8", of("conv2d", padding=1), (16, 256, 8, 8), (256, 256, 3, 3))
layer("conv2d 512->512, 3x3, 16 of 4x4", of("conv2d", padding=1), (16, 512, 4, 4), (512, 512, 3, 3))
layer("conv2d 64->128, 1x1, stride 2", of("conv2d", stride=2), (16, 64, 32, 32), (128, 64, 1, 1))
layer("conv2d 256->64, 1x1, 16 of 8x8", of("conv2d"), (16, 256, 8, 8), (64, 256, 1, 1))
layer("conv2d depthwise 64, 3x3", of("conv2d", padding=1, groups=64), (16, 64, 32, 32), (64, 1, 3, 3))
layer("conv2d 3->64, 7x7, stride 2", of("conv2d", padding=3, stride=2), (4, 3, 64, 64), (64, 3, 7, 7))
layer("conv1d 64->64, 3", of("conv1d", padding=1), (16, 64, 256), (64, 64, 3))
layer("conv3d 8->16, 3x3x3", of("conv3d", padding=1), (2, 8, 16, 16, 16), (16, 8, 3, 3, 3))
layer("conv_transpose2d 128->64, 4x4", of("conv_transpose2d", stride=2, padding=1), (8, 128, 8, 8), (128, 64, 4, 4))

# Pools.
layer("max_pool2d 2, 64x6 of 28x28", of("max_pool2d", kernel_size=2), (64, 6, 28, 28))
layer("max_pool2d 3, stride 2", of("max_pool2d", kernel_size=3, stride=2, padding=1), (16, 64, 32, 32))
layer("max_pool1d 2", of("max_pool1d", kernel_size=2), (16, 64, 256))
layer("avg_pool2d 2", of("avg_pool2d", kernel_size=2), (16, 64, 32, 32))
layer("adaptive_avg_pool2d 1, 4x4", of("adaptive_avg_pool2d", output_size=1), (16, 512, 4, 4))
layer("adaptive_avg_pool2d 1, 8x8", of("adaptive_avg_pool2d", output_size=1), (32, 256, 8, 8))

# Normalizations.
CHANNELS = {"running_mean": lambda T: T.zeros(64), "running_var": lambda T: T.ones(64)}


def batch_norm(training: bool) -> Callable[[Any, Names], Callable[..., Any]]:
    def make(T: Any, others: Names) -> Callable[..., Any]:
        function = T.nn.functional.batch_norm
        return lambda x, w, b: function(x, weight=w, bias=b, training=training, **others)

    return make


layer("batch_norm, training", batch_norm(True), (16, 64, 32, 32), (64,), (64,), **CHANNELS)
layer("batch_norm, settled", batch_norm(False), (16, 64, 32, 32), (64,), (64,), **CHANNELS)
for shape in ((1024, 128), (1024, 1024)):
    width = shape[-1]

    def layer_norm(T: Any, others: Names, width: int = width) -> Callable[..., Any]:
        return lambda x, w, b: T.nn.functional.layer_norm(x, (width,), w, b)

    def rms_norm(T: Any, others: Names, width: int = width) -> Callable[..., Any]:
        return lambda x, w: T.nn.functional.rms_norm(x, (width,), w)

    layer(f"layer_norm {shape[0]}x{width}", layer_norm, shape, (width,), (width,))
    layer(f"rms_norm {shape[0]}x{width}", rms_norm, shape, (width,))


def group_norm(T: Any, others: Names) -> Callable[..., Any]:
    return lambda x, w, b: T.nn.functional.group_norm(x, 8, w, b)


layer("group_norm 8", group_norm, (16, 64, 32, 32), (64,), (64,))
layer("instance_norm", of("instance_norm"), (16, 64, 32, 32))
layer("local_response_norm", of("local_response_norm", size=5), (16, 64, 32, 32))
layer("normalize", of("normalize"), (1024, 128))

# Attention.
for name, shape, options in (
    ("8x4x128x32", (8, 4, 128, 32), {}),
    ("8x4x128x32, causal", (8, 4, 128, 32), {"is_causal": True}),
    ("2x8x512x64, causal", (2, 8, 512, 64), {"is_causal": True}),
):
    layer(f"attention {name}", of("scaled_dot_product_attention", **options), shape, shape, shape)


def masked(T: Any, others: Names) -> Callable[..., Any]:
    mask = T.ones(128, 128).tril() > 0
    return lambda q, k, v: T.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


layer("attention 8x4x128x32, mask", masked, *[(8, 4, 128, 32)] * 3)

# Embeddings.


def embedding(T: Any, others: Names) -> Callable[..., Any]:
    return lambda w: T.nn.functional.embedding(others["index"], w)


def embedding_bag(mode: str) -> Callable[[Any, Names], Callable[..., Any]]:
    def make(T: Any, others: Names) -> Callable[..., Any]:
        return lambda w: T.nn.functional.embedding_bag(others["index"], w, mode=mode)

    return make


layer("embedding, 1024 of 1000x128", embedding, (1000, 128), index=whole(1000, 8, 128))
layer("embedding, 1024 of 10000x128", embedding, (10000, 128), index=whole(10000, 8, 128))
for mode in ("sum", "mean", "max"):
    layer(f"embedding_bag {mode}, 256x8 of 1000x64", embedding_bag(mode), (1000, 64), index=whole(1000, 256, 8))

# Losses.
layer("cross_entropy 64x10", last("cross_entropy"), (64, 10), target=whole(10, 64))
layer("cross_entropy 1024x65", last("cross_entropy"), (1024, 65), target=whole(65, 1024))
layer("cross_entropy 1024x10000", last("cross_entropy"), (1024, 10000), target=whole(10000, 1024))
layer("nll_loss 1024x1000", last("nll_loss"), (1024, 1000), target=whole(1000, 1024))
layer("mse_loss 1e5", last("mse_loss"), (100_000,), target=lambda T: T.randn(100_000))
layer("l1_loss 1e5", last("l1_loss"), (100_000,), target=lambda T: T.randn(100_000))
layer("smooth_l1_loss 1e5", last("smooth_l1_loss"), (100_000,), target=lambda T: T.randn(100_000))
layer("huber_loss 1e5", last("huber_loss"), (100_000,), target=lambda T: T.randn(100_000))
layer("bce_with_logits 1e5", last("binary_cross_entropy_with_logits"), (100_000,), target=lambda T: T.rand(100_000))
layer("kl_div 1e5", last("kl_div", reduction="batchmean"), (1000, 100), target=lambda T: T.rand(1000, 100))


def ctc(T: Any, others: Names) -> Callable[..., Any]:
    lengths, sizes = T.full((16,), 50), T.full((16,), 20)
    return lambda x: T.nn.functional.ctc_loss(x.log_softmax(2), others["target"], lengths, sizes)


layer("ctc_loss 50x16x20", ctc, (50, 16, 20), target=lambda T: T.randint(1, 20, (16, 20)))

# Recurrent layers.


def recurrent(kind: str, *sizes: int, **options: Any) -> Callable[[Any, Names], Callable[..., Any]]:
    def make(T: Any, others: Names) -> Callable[..., Any]:
        T.manual_seed(0)
        module = getattr(T.nn, kind)(*sizes, **options)

        def run(x: Any) -> Any:
            result = module(x)
            return result[0] if isinstance(result, tuple) else result

        return run

    return make


layer("LSTM 128->128, 32x16", recurrent("LSTM", 128, 128), (32, 16, 128))
layer("GRU 128->128, 32x16", recurrent("GRU", 128, 128), (32, 16, 128))
layer("RNN 128->128, 32x16", recurrent("RNN", 128, 128), (32, 16, 128))
layer("LSTMCell 128->128, 16", recurrent("LSTMCell", 128, 128), (16, 128))
