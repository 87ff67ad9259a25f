"""Losses of `nn.functional` that are compositions of other operators."""

from __future__ import annotations

import math
import warnings

from .. import _core
from .._core import Tensor
from ._compositions import pairwise_distance
from ._reduction import get_enum, legacy_get_enum, legacy_get_string


def _number(reduction: str, size_average: bool | None, reduce: bool | None) -> int:
    if size_average is not None or reduce is not None:
        return legacy_get_enum(size_average, reduce)
    return get_enum(reduction)


def _reduced(loss: Tensor, reduction: int) -> Tensor:
    if reduction == 0:
        return loss
    return loss.mean() if reduction == 1 else loss.sum()


def _from(number: float, x: Tensor) -> Tensor:
    """Return `number - x`, where the number is a tensor of the same dtype, as in the graph of PyTorch."""
    return _core.sub(_core.full((), number, dtype=x.dtype, device=x.device), x)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the negative log likelihood of counts under Poisson distributions with predicted rates.

    `exp(input) - target * input` with `log_input`, else `input - target * log(input + eps)`.

    Args:
        input: predicted rates, or their logarithms.
        target: observed counts.
        log_input: whether the input is the logarithm of the rates. Default: `True`
        full: whether to add Stirling's approximation of `log(target!)`, where the target is above 1. Default: `False`
        size_average, reduce: deprecated forms of `reduction`.
        eps: term that keeps the logarithm finite if `log_input` is off. Default: `1e-8`
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Examples:
        >>> F.poisson_nll_loss(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 3.0]))
        tensor(0.3591)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    number = get_enum(reduction)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        # Stirling's approximation of the factorial, for counts above 1.
        factorial = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + factorial.masked_fill(target <= 1, 0)
    return _reduced(loss, number)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Compute the Kullback-Leibler divergence of the target distribution from the input distribution.

    `target * (log(target) - input)`, or `exp(target) * (target - input)` with `log_target`.

    Args:
        input: log-probabilities.
        target: probabilities, or log-probabilities with `log_target`, of the same shape.
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"batchmean"` for the sum divided by the batch size, which is the divergence as it is defined;
            `"mean"` over all elements, `"sum"` or `"none"`. Default: `"mean"`
        log_target: whether the target holds log-probabilities. Default: `False`

    Examples:
        >>> F.kl_div(torch.tensor([[0.9, 0.1]]).log(), torch.tensor([[0.5, 0.5]]), reduction="batchmean")
        tensor(0.5108)
    """
    if size_average is not None or reduce is not None:
        number = legacy_get_enum(size_average, reduce)
    else:
        if reduction == "mean":
            warnings.warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only "
                "by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the same as "
                "'batchmean' in the next major release.",
                stacklevel=2,
            )
        number = get_enum("sum" if reduction == "batchmean" else reduction)
    for kind, fails in (("Complex", Tensor.is_complex), ("Integral", _is_integral)):
        if fails(input) or fails(target):
            raise RuntimeError(f"kl_div: {kind} inputs not supported.")
    loss = target.exp() * (target - input) if log_target else _core.xlogy(target, target) - target * input
    loss = _reduced(loss, number)
    if reduction == "batchmean" and input.dim() != 0:
        loss = loss / input.size(0)
    return loss


def _is_integral(x: Tensor) -> bool:
    return not x.is_floating_point() and not x.is_complex()


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the hinge loss of distances: `x` for targets 1, and `max(0, margin - x)` for targets -1.

    Args:
        input: distances of pairs.
        target: 1 for similar pairs, -1 for others.
        margin: distance beyond which dissimilar pairs cost nothing. Default: `1.0`
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Examples:
        >>> F.hinge_embedding_loss(torch.tensor([0.3, 0.4]), torch.tensor([1, -1]))
        tensor(0.4500)
    """
    number = _number(reduction, size_average, reduce)
    zero = _core.zeros_like(input)
    far = _core.where(target != 1, _from(margin, input).clamp_min(0), zero)
    near = _core.where(target != -1, input, zero)
    return _reduced(far + near, number)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute `1 - cos(x1, x2)` for targets 1, and `max(0, cos(x1, x2) - margin)` for targets -1.

    Args:
        input1, input2: vectors `(N, D)` or `(D,)`.
        target: 1 for similar pairs, -1 for others: `(N,)` or `()`.
        margin: similarity below which dissimilar pairs cost nothing, from -1 to 1. Default: `0`
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Examples:
        >>> a, b = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]])
        >>> F.cosine_embedding_loss(a, b, torch.tensor([1]))
        tensor(0.2929)
    """
    number = _number(reduction, size_average, reduce)
    dims = target.dim()
    if dims not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input1.dim() != dims + 1 or input2.dim() != dims + 1:
        sizes = f"{list(input1.shape)} and {list(input2.shape)}"
        raise RuntimeError(f"{dims}D target tensor expects {dims + 1}D input tensors, but found inputs with sizes {sizes}.")
    product = (input1 * input2).sum(dims)
    first, second = ((x * x).sum(dims) + 1e-12 for x in (input1, input2))
    cosine = product / (first * second).sqrt()
    zero = _core.zeros_like(cosine)
    near = _core.where(target == 1, _from(1.0, cosine), zero)
    far = _core.where(target == -1, (cosine - margin).clamp_min(0), zero)
    return _reduced(near + far, number)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the ranking loss of two scores: `max(0, -target * (input1 - input2) + margin)`.

    Args:
        input1, input2: scores.
        target: 1 if the first score shall be higher, -1 if the second.
        margin: difference of the scores beyond which the loss is zero. Default: `0`
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Examples:
        >>> F.margin_ranking_loss(torch.tensor([0.25, 1.0]), torch.tensor([0.5, 0.0]), torch.tensor([1, 1]))
        tensor(0.1250)
    """
    number = _number(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _reduced((-target * (input1 - input2) + margin).clamp_min(0), number)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute the triplet loss `max(0, d(anchor, positive) - d(anchor, negative) + margin)`.

    `d` is the p-norm of the difference.

    Args:
        anchor, positive, negative: tensors `(N, D)` or `(D,)`; the anchor shall be closer to the positive.
        margin: difference of the distances beyond which the loss is zero. Default: `1.0`
        p: exponent of the norm. Default: `2`
        eps: small number added to every element of the differences. Default: `1e-6`
        swap: use the distance of positive and negative if it is smaller than that of anchor and negative.
            Default: `False`
        size_average, reduce: deprecated forms of `reduction`.
        reduction: `"mean"` or `"sum"` of all losses, or `"none"` to keep them apart. Default: `"mean"`

    Examples:
        >>> anchor, positive, negative = torch.randn(3, 10, 8)
        >>> F.triplet_margin_loss(anchor, positive, negative).shape
        torch.Size([])
    """
    number = _number(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = _core.minimum(far, pairwise_distance(positive, negative, p, eps))
    return _reduced((margin + near - far).clamp_min(0), number)
