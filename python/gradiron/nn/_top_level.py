"""Functions that stand at the top as well, where they take a number for the reduction (none by default) and say `train` for
`training`."""

from __future__ import annotations

from collections.abc import Callable

from .. import _core
from .._core import Tensor
from . import functional as F
from ._compositions import _alpha_dropout, _feature_dropout

_REDUCTIONS = ("none", "mean", "sum")


def _named(function: Callable[..., Tensor], reduction: int) -> str:
    if isinstance(reduction, bool) or not isinstance(reduction, (int, Tensor)):
        raise TypeError(f"{function.__name__}(): argument 'reduction' must be int, not {type(reduction).__name__}")
    if reduction not in (0, 1, 2):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _REDUCTIONS[int(reduction)]


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """`nn.functional.poisson_nll_loss`."""
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_named(poisson_nll_loss, reduction))


def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """`nn.functional.kl_div`."""
    named = _named(kl_div, reduction)
    loss = F.kl_div(input, target, reduction="none" if named == "mean" else named, log_target=log_target)
    return loss.mean() if named == "mean" else loss


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """`nn.functional.hinge_embedding_loss`."""
    return F.hinge_embedding_loss(input, target, margin, reduction=_named(hinge_embedding_loss, reduction))


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0) -> Tensor:
    """`nn.functional.cosine_embedding_loss`."""
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_named(cosine_embedding_loss, reduction))


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0) -> Tensor:
    """`nn.functional.margin_ranking_loss`."""
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_named(margin_ranking_loss, reduction))


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 0,
) -> Tensor:
    """`nn.functional.triplet_margin_loss`."""
    return F.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_named(triplet_margin_loss, reduction)
    )


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:
    """`nn.functional.ctc_loss`."""
    return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _named(ctc_loss, reduction), zero_infinity)


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`dropout` in place."""
    return F.dropout(input, p, train, True)


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.alpha_dropout`."""
    return _alpha_dropout(input, p, train, False, False)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`alpha_dropout` in place."""
    return _alpha_dropout(input, p, train, True, False)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.feature_alpha_dropout`."""
    return _alpha_dropout(input, p, train, False, True)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`feature_alpha_dropout` in place."""
    return _alpha_dropout(input, p, train, True, True)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Whole channels zeroed with probability `p`, the others scaled to keep the mean."""
    return _feature_dropout(input, p, train, False)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """`feature_dropout` in place."""
    return _feature_dropout(input, p, train, True)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 0
) -> Tensor:
    """`nn.functional.binary_cross_entropy_with_logits`, here without a reduction unless one is named, as in PyTorch."""
    how = _REDUCTIONS[reduction] if reduction in (1, 2) else "none"
    return F.binary_cross_entropy_with_logits(input, target, weight, None, None, how, pos_weight)


def _sampled(dims: int, input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    if input.dim() != dims + 2 and grid.shape[-1] == input.dim() - 2:
        raise RuntimeError(
            f"grid_sampler(): expected {dims + 2}D input and grid with same number of dimensions, but got input with sizes "
            f"{list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    return _core.grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """`grid_sampler` of images."""
    return _sampled(2, input, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """`grid_sampler` of volumes."""
    return _sampled(3, input, grid, interpolation_mode, padding_mode, align_corners)


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """`dropout`, and which elements it kept."""
    if input.numel() == 0:
        return input, input.new_empty(input.shape, dtype=_core.bool)
    if train is False:
        return input.clone(), input.new_ones(input.shape, dtype=_core.bool)
    kept = input.new_empty(input.shape, dtype=input.dtype.to_real()).bernoulli_(1 - p)
    return input * kept * (0.0 if p == 1 else 1 / (1 - p)), kept.bool()


def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """`nn.functional.group_norm`, and the mean and the factor of each group."""
    found = F.group_norm(input.reshape(N, C, HxW), group, weight, bias, eps).reshape(input.shape)
    variance, mean = _core.var_mean(input.reshape(N, group, C * HxW // group), -1, correction=0)
    return found, mean, (variance + eps).rsqrt()


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norms over all dimensions but one; over all of them where `dim` is -1."""
    if dim == -1:
        return v.norm(pow)
    if dim not in (0, v.dim() - 1):
        return norm_except_dim(v.transpose(0, dim), pow, 0).transpose(0, dim)
    others = [d for d in range(v.dim()) if d != dim]
    return v.norm(pow, others, keepdim=True) if others else v.norm(pow, 0, keepdim=True) if v.dim() == 0 else v.abs()
