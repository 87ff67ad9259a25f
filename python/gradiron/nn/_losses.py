"""Losses of `nn.functional` that other operators already say."""

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
    """`number - x`; the number is a tensor of the same type, as in PyTorch's graph."""
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
    """Minus the log-probability of counts, given the rates that they are drawn with, or the rates' logarithms."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    number = get_enum(reduction)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        # Stirling's approximation of the factorial, which small counts do without.
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
    """How far the distribution with the logarithms `input` is from `target`, which may be logarithms, too."""
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
    """Distances themselves where the target is 1, and what they lack of `margin` where it is -1."""
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
    """What the cosine lacks of 1 where the target is 1, and how far it is above `margin` where it is -1."""
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
    """What the difference, with the target's sign, lacks of `margin`."""
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
    """What the anchor is too near to the negative example beside the positive one."""
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
