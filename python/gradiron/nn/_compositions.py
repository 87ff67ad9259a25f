"""Functions of `nn.functional` that are compositions of other operators."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import no_grad
from . import _pooling, _reduction
from ._resizing import interpolate

# Dropout.


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _idle(input: Tensor, p: float, training: bool) -> bool:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    return p == 0 or not training or input.numel() == 0


def _noise(input: Tensor, p: float, features: bool) -> Tensor:
    """Draw ones with probability `1 - p`, else zeros: for each element, or for each channel."""
    shape = tuple(input.shape)
    if features:
        if input.dim() < 2:
            raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
        shape = (*shape[:2], *(1 for _ in shape[2:]))
    return input.new_empty(shape, dtype=input.dtype.to_real()).bernoulli_(1 - p)


def _feature_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    if _idle(input, p, training):
        return input
    if p == 1:
        return input.mul_(0) if inplace else input.mul(0)
    noise = _noise(input, p, True).div_(1 - p)
    return input.mul_(noise) if inplace else input * noise


def _alpha_dropout(input: Tensor, p: float, training: bool, inplace: bool, features: bool) -> Tensor:
    if _idle(input, p, training):
        return input
    if p == 1:
        return input.mul_(0) if inplace else input.mul(0)
    noise = _noise(input, p, features)
    # Dropped elements become the limit of SELU; scale and shift keep mean and variance.
    limit = 1.7580993408473766
    scale = 1.0 / math.sqrt((limit * limit * p + 1) * (1 - p))
    shift = (noise - 1) * (limit * scale) + limit * scale * p
    noise = noise * scale
    return input.mul_(noise).add_(shift) if inplace else input * noise + shift


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Apply dropout for networks with SELU, which keeps zero mean and unit variance.

    Dropped elements become the negative limit of SELU, and the result is scaled and shifted.

    Args:
        input: tensor of any shape.
        p: probability of an element to be dropped. Default: `0.5`
        training: whether to apply dropout; otherwise the input is returned. Default: `False`
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> F.alpha_dropout(torch.randn(3, 4), 0.2, training=True).shape
        torch.Size([3, 4])
    """
    _check_probability(p)
    return _alpha_dropout(input, p, training, inplace, False)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Apply alpha dropout to whole channels, for networks with SELU.

    Dropped channels become the negative limit of SELU, and the result is scaled and shifted.

    Args:
        input: tensor `(N, C, *)`.
        p: probability of a channel to be dropped. Default: `0.5`
        training: whether to apply dropout; otherwise the input is returned. Default: `False`
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> F.feature_alpha_dropout(torch.randn(3, 4, 5), 0.2, training=True).shape
        torch.Size([3, 4, 5])
    """
    _check_probability(p)
    return _alpha_dropout(input, p, training, inplace, True)


_ADVICE = (
    "Note that {name} exists to provide channel-wise dropout on inputs with {n} spatial dimension{s}, a channel dimension, and "
    "an optional batch dimension (i.e. {low}D or {high}D inputs)."
)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of sequences at random, and scale the others by `1 / (1 - p)`.

    Args:
        input: tensor `(N, C, L)` or `(C, L)`.
        p: probability of a channel to be zeroed. Default: `0.5`
        training: whether to apply dropout; otherwise the input is returned. Default: `True`
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> F.dropout1d(torch.randn(2, 4, 10), 0.2).shape
        torch.Size([2, 4, 10])
    """
    _check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. "
            + _ADVICE.format(name="dropout1d", n=1, s="", low=2, high=3)
        )
    return _single_or_batch(input, 3, p, training, inplace)


def _single_or_batch(input: Tensor, dims: int, p: float, training: bool, inplace: bool) -> Tensor:
    if input.dim() == dims:
        return _feature_dropout(input, p, training, inplace)
    if inplace:
        try:
            return _feature_dropout(input.unsqueeze_(0), p, training, True).squeeze_(0)
        except BaseException:
            # An error leaves the input unchanged.
            input.squeeze_(0)
            raise
    return _feature_dropout(input.unsqueeze(0), p, training, False).squeeze(0)


def _warn_of_dims(name: str, input: Tensor, n: int) -> None:
    warnings.warn(
        f"{name}: Received a {input.dim()}-D input to {name}, which is deprecated and will result in an error in a future "
        "release. To retain the behavior and silence this warning, please use dropout instead. "
        + _ADVICE.format(name=name, n=n, s="s", low=n + 1, high=n + 2),
        stacklevel=3,
    )


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of images at random, and scale the others by `1 / (1 - p)`.

    Args:
        input: tensor `(N, C, H, W)`.
        p: probability of a channel to be zeroed. Default: `0.5`
        training: whether to apply dropout; otherwise the input is returned. Default: `True`
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> F.dropout2d(torch.randn(2, 4, 8, 6), 0.2).shape
        torch.Size([2, 4, 8, 6])
    """
    _check_probability(p)
    if input.dim() not in (3, 4):
        _warn_of_dims("dropout2d", input, 2)
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input "
            "is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to "
            "interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
            "dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _feature_dropout(input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero whole channels of volumes at random, and scale the others by `1 / (1 - p)`.

    Args:
        input: tensor `(N, C, D, H, W)` or `(C, D, H, W)`.
        p: probability of a channel to be zeroed. Default: `0.5`
        training: whether to apply dropout; otherwise the input is returned. Default: `True`
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> F.dropout3d(torch.randn(2, 4, 6, 8, 6), 0.2).shape
        torch.Size([2, 4, 6, 8, 6])
    """
    _check_probability(p)
    if input.dim() not in (4, 5):
        _warn_of_dims("dropout3d", input, 3)
    return _single_or_batch(input, 5, p, training, inplace)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Draw differentiable samples of categorical distributions from their logits (Gumbel-softmax).

    It is `softmax((logits + noise) / tau)` with Gumbel noise. With `hard` the result is one-hot, and gradients flow
    as if it were not.

    Args:
        logits: unnormalized log-probabilities.
        tau: temperature, not negative; the smaller, the closer to one-hot. Default: `1`
        hard: whether to return one-hot samples. Default: `False`
        eps: deprecated, without effect. Default: `1e-10`
        dim: dimension of the classes. Default: `-1`

    Examples:
        >>> F.gumbel_softmax(torch.randn(4, 3), hard=True).sum(-1)
        tensor([1., 1., 1., 1.])
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -_core.empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    return _core.zeros_like(logits).scatter_(dim, index, 1.0) - soft.detach() + soft


def softsign(input: Tensor) -> Tensor:
    """Apply `input / (1 + |input|)`, which lies between -1 and 1.

    Args:
        input: any tensor.

    Examples:
        >>> F.softsign(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.6667,  0.0000,  0.6667])
    """
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """Compute `input - tanh(input)`.

    Args:
        input: any tensor.

    Examples:
        >>> F.tanhshrink(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-1.0360,  0.0000,  1.0360])
    """
    return input - input.tanh()


# Distances.


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Compute the p-norm of the difference of each pair of vectors: `norm(x1 - x2 + eps, p)`.

    Args:
        x1, x2: vectors `(N, D)` or `(D,)`, whose shapes broadcast.
        p: exponent of the norm. Default: `2.0`
        eps: small number added to every element of the difference. Default: `1e-6`
        keepdim: whether to keep the last dimension, with size 1. Default: `False`

    Examples:
        >>> F.pairwise_distance(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2))
        tensor([5.0000])
    """
    return _core.norm(x1 - x2 + eps, p, -1, keepdim)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Compute the cosine of the angle between vectors along `dim`: `x1 @ x2 / (|x1| * |x2|)`.

    Args:
        x1, x2: tensors of vectors, whose shapes broadcast.
        dim: dimension of the vectors. Default: `1`
        eps: lower bound of each norm, which prevents a division by zero. Default: `1e-8`

    Examples:
        >>> F.cosine_similarity(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]), dim=0)
        tensor(0.7071)
    """
    kind = _core.result_type(x1, x2)
    if not kind.is_floating_point:
        name = _core.empty(0, dtype=kind).type().removeprefix("torch.").removesuffix("Tensor")
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {name}")
    x1, x2 = _core.broadcast_tensors((x1.to(kind), x2.to(kind)))
    return (_shortened(x1, dim, eps) * _shortened(x2, dim, eps)).sum(dim)


def _shortened(x: Tensor, dim: int, eps: float) -> Tensor:
    """Divide vectors by their norm, of which the lower bound `eps` is not seen by gradients."""
    length = _core.norm(x, 2, dim, True).clone()
    with no_grad():
        length.clamp_min_(eps)
    return x / length


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """Divide vectors along `dim` by their p-norm: `input / max(norm(input, p), eps)`.

    Args:
        input: tensor of vectors.
        p: exponent of the norm. Default: `2.0`
        dim: dimension of the vectors. Default: `1`
        eps: lower bound of the norm, which prevents a division by zero. Default: `1e-12`
        out: tensor to write the result to.

    Examples:
        >>> F.normalize(torch.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """
    length = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return _core.div(input, length, out=out)


# Channels and pixels.


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return one-hot vectors of class indices, along a new last dimension.

    Args:
        tensor: class indices, of dtype `int64`.
        num_classes: number of classes; -1 for one more than the largest index. Default: `-1`

    Raises:
        RuntimeError: if an index is negative or not below `num_classes`.

    Examples:
        >>> F.one_hot(torch.tensor([0, 2]), num_classes=3)
        tensor([[1, 0, 0],
                [0, 0, 1]])
    """
    if tensor.dtype != _core.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if tensor.numel() == 0 and num_classes <= 0:
        if num_classes == -1:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        raise RuntimeError("Can not have zero classes")
    # On the CPU the kernel checks the indices, so that nothing is read here and the call can be captured.
    if tensor.numel() and (num_classes < 0 or not tensor.is_cpu):
        num_classes = _check_classes(tensor, num_classes)
    made = _core.zeros((*tensor.shape, num_classes), dtype=_core.int64, device=tensor.device)
    scatter = made.scatter if _core.is_batched(tensor) else made.scatter_
    try:
        return scatter(-1, tensor.unsqueeze(-1), 1)
    except RuntimeError:
        _check_classes(tensor, num_classes)
        raise


def _check_classes(tensor: Tensor, num_classes: int) -> int:
    """Return the number of classes; -1 stands for one more than the largest."""
    if tensor.min().item() < 0:
        raise RuntimeError("Class values must be non-negative.")
    largest = int(tensor.max().item())
    if num_classes != -1 and largest >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return largest + 1 if num_classes == -1 else num_classes


# Pooling by other kinds of pooling.


def _lp_pool(n: int, input: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
    if norm_type == 0:
        raise ValueError(f"norm_type must be a non-zero value, but got {norm_type}")
    if math.isinf(norm_type):
        sign = 1 if norm_type > 0 else -1
        pool = getattr(_pooling, f"max_pool{n}d")
        return pool(input.abs() * sign, kernel_size, stride, 0, 1, ceil_mode) * sign
    pool = _core.avg_pool1d if n == 1 else getattr(_core._nn, f"avg_pool{n}d")
    mean = pool(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    sizes = (kernel_size,) * n if isinstance(kernel_size, int) else kernel_size
    return (mean.sign() * mean.abs().relu()).mul(math.prod(sizes)).pow(1.0 / norm_type)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Take the p-norm of each sliding window of a sequence (1D power-average pooling).

    `y = (sum of x**p over the window) ** (1/p)`.

    Args:
        input: tensor `(N, C, L)` or `(C, L)`.
        norm_type: the exponent `p`, not 0.
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` if `None`.
        ceil_mode: round output sizes up instead of down, so that no input is left out. Default: `False`

    Examples:
        >>> F.lp_pool1d(torch.randn(2, 4, 8), 2, 2).shape
        torch.Size([2, 4, 4])
    """
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Take the p-norm of each sliding window of an image (2D power-average pooling).

    `y = (sum of x**p over the window) ** (1/p)`.

    Args:
        input: tensor `(N, C, H, W)` or `(C, H, W)`.
        norm_type: the exponent `p`, not 0.
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` if `None`.
        ceil_mode: round output sizes up instead of down, so that no input is left out. Default: `False`

    Examples:
        >>> F.lp_pool2d(torch.randn(2, 4, 8, 8), 2, 2).shape
        torch.Size([2, 4, 4, 4])
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """Take the p-norm of each sliding window of a volume (3D power-average pooling).

    `y = (sum of x**p over the window) ** (1/p)`.

    Args:
        input: tensor `(N, C, D, H, W)` or `(C, D, H, W)`.
        norm_type: the exponent `p`, not 0.
        kernel_size: size of the windows.
        stride: step between windows; `kernel_size` if `None`.
        ceil_mode: round output sizes up instead of down, so that no input is left out. Default: `False`

    Examples:
        >>> F.lp_pool3d(torch.randn(2, 4, 8, 8, 8), 2, 2).shape
        torch.Size([2, 4, 4, 4, 4])
    """
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Divide each element by the activity of the neighbouring channels (local response normalization).

    `y[c] = x[c] / (k + alpha / size * sum(x**2 over size channels around c)) ** beta`.

    Args:
        input: tensor `(N, C, *)`.
        size: number of neighbouring channels that are summed over.
        alpha: weight of the sum of squares. Default: `1e-4`
        beta: exponent. Default: `0.75`
        k: constant added to the sum. Default: `1.0`

    Examples:
        >>> F.local_response_norm(torch.randn(2, 4, 8), 2).shape
        torch.Size([2, 4, 8])
    """
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    channels = input.size(1)
    squares = input * input
    before, after = (squares.new_zeros((input.size(0), n, *input.shape[2:])) for n in (size // 2, (size - 1) // 2))
    padded = _core.cat([before, squares, after], 1)
    total = padded.narrow(1, 0, channels)
    for at in range(1, size):
        total = total + padded.narrow(1, at, channels)
    return input / (total / size).mul(alpha).add(k).pow(beta)


# Losses.


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the multi-label loss: binary cross entropy of the logit of each class, averaged over classes.

    Args:
        input: logits `(N, C)`.
        target: 0 or 1 for each class, of the same shape.
        weight: weight of each class, of shape `(C,)`.
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Examples:
        >>> F.multilabel_soft_margin_loss(torch.tensor([[2.0, -1.0]]), torch.tensor([[1.0, 0.0]]))
        tensor(0.2201)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    loss = -(target * _core._nn.logsigmoid(input) + (1 - target) * _core._nn.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return _reduced(loss.sum(dim=input.dim() - 1) / input.size(-1), reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Compute the triplet loss with any distance `d`.

    `max(0, d(anchor, positive) - d(anchor, negative) + margin)`.

    Args:
        anchor, positive, negative: tensors `(N, D)`; the anchor shall be closer to the positive.
        distance_function: the distance `d` of two tensors; `pairwise_distance` if `None`.
        margin: difference of the distances beyond which the loss is zero. Default: `1.0`
        swap: use the distance of positive and negative if it is smaller than that of anchor and negative.
            Default: `False`
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Examples:
        >>> anchor, positive, negative = torch.randn(3, 10, 8)
        >>> F.triplet_margin_with_distance_loss(anchor, positive, negative).shape
        torch.Size([])
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor "
            f"{anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = _core.minimum(far, distance(positive, negative))
    return _reduced((margin + near - far).clamp_min(0), reduction)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Compute the negative log likelihood of targets under normal distributions.

    `(log(var) + (input - target)**2 / var) / 2`.

    Args:
        input: predicted means.
        target: observed values, of the same shape or one that broadcasts.
        var: predicted variances: the shape of the input, or with 1 as its last dimension, or without it; or a float.
        full: whether to add the constant `log(2 * pi) / 2`. Default: `False`
        eps: lower bound of the variances. Default: `1e-6`
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Raises:
        ValueError: if a variance is negative or the shape of `var` does not fit.

    Examples:
        >>> F.gaussian_nll_loss(torch.zeros(2), torch.tensor([1.0, 2.0]), torch.ones(2))
        tensor(1.2500)
    """
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * _core.ones_like(input)
    elif bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        differing = [v for x, v in zip(input.shape, var.shape, strict=False) if x != v]
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif input.dim() != var.dim() or sum(differing) != 1:
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    # The lower bound does not affect gradients.
    var = var.clone()
    with no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """Compute the cross entropy of the logits `input @ linear_weight.T + linear_bias`.

    Args:
        input: tensor `(N, in_features)` or `(in_features,)`.
        linear_weight: weight `(num_classes, in_features)`, or `(num_classes, *out_features, in_features)`.
        target: class indices, or probabilities of the shape of the logits.
        linear_bias: bias, of the shape of the weight without `in_features`.
        weight: weight of each class, of shape `(num_classes,)`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`
        ignore_index: target class that does not contribute to loss and gradient.
        label_smoothing: share of the target that is spread evenly over all classes, from 0 to 1. Default: `0.0`
        options: a `nn.LinearCrossEntropyOptions`, which has no effect here.

    Examples:
        >>> F.linear_cross_entropy(torch.randn(3, 8), torch.randn(5, 8), torch.tensor([0, 4, 2])).shape
        torch.Size([])
    """
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    features = input.size(-1)
    if features != linear_weight.size(-1):
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{features} and {linear_weight.size(-1)}, respectively"
        )
    shape = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != shape:
        raise RuntimeError(f"expected linear_bias shape {shape}, got {tuple(linear_bias.shape)}")
    if len(shape) > 1 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )
    logits_shape = (*input.shape[:-1], *shape)
    if tuple(target.shape) == logits_shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    rows = math.prod(shape)
    bias = None if linear_bias is None else linear_bias.reshape(rows)
    logits = _core._nn.linear(input, linear_weight.reshape((rows, features)), bias).reshape(logits_shape)
    return _core._nn.cross_entropy(
        logits,
        target,
        weight=weight,
        reduction=reduction,
        ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing,
    )


# Deprecated names.


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """Deprecated name of `interpolate`.

    Args:
        input: tensor `(N, C, L)`, `(N, C, H, W)` or `(N, C, D, H, W)`.
        size: size of the output: one integer, or one for each spatial dimension.
        scale_factor: factor of the sizes, instead of `size`.
        mode: algorithm, as in `interpolate`. Default: `"nearest"`
        align_corners: whether the corner elements of input and output coincide.

    Examples:
        >>> F.upsample(torch.randn(1, 3, 4, 4), scale_factor=2).shape
        torch.Size([1, 3, 8, 8])
    """
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resize images by repeating the nearest pixel; deprecated in favour of `interpolate`.

    Args:
        input: tensor `(N, C, H, W)`.
        size: size of the output: one integer, or one for each spatial dimension.
        scale_factor: factor of the sizes, instead of `size`.

    Examples:
        >>> F.upsample_nearest(torch.randn(1, 3, 4, 4), scale_factor=2).shape
        torch.Size([1, 3, 8, 8])
    """
    warnings.warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Resize images by bilinear interpolation with aligned corners; deprecated in favour of `interpolate`.

    Args:
        input: tensor `(N, C, H, W)`.
        size: size of the output: one integer, or height and width.
        scale_factor: factor of the sizes, instead of `size`.

    Examples:
        >>> F.upsample_bilinear(torch.randn(1, 3, 4, 4), scale_factor=2).shape
        torch.Size([1, 3, 8, 8])
    """
    warnings.warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Apply a 1D convolution to sequences with time as the first dimension.

    Args:
        input: tensor `(time, batch, in_channels)`.
        weight: filters `(kernel_size, in_channels, out_channels)`.
        bias: bias `(out_channels,)`.
        pad: number of zeros added on both sides of the time dimension. Default: `0`

    Examples:
        >>> F.conv_tbc(torch.randn(10, 2, 4), torch.randn(3, 4, 8), torch.zeros(8), pad=1).shape
        torch.Size([10, 2, 8])
    """
    if input.dim() != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.dim() != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias.dim() != 1:
        raise RuntimeError("Bias must be 1-D")
    if input.shape[2] != weight.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    return _core.conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1).contiguous()
