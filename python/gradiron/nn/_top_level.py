"""Functions of `nn.functional` in the top-level namespace, with other signatures.

Here `reduction` is a number (none by default), and `training` is called `train`.
"""

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
    """Compute the Poisson negative log likelihood; see `nn.functional.poisson_nll_loss`.

    Args:
        input: predicted rates, or their logarithms.
        target: observed counts.
        log_input: whether the input is the logarithm of the rates.
        full: whether to add Stirling's approximation of `log(target!)`.
        eps: term that keeps the logarithm finite if `log_input` is off.
        reduction: 0 for none, 1 for the mean, 2 for the sum.

    Examples:
        >>> torch.poisson_nll_loss(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 3.0]), True, False, 1e-8, 1)
        tensor(0.3591)
    """
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_named(poisson_nll_loss, reduction))


def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """Compute the Kullback-Leibler divergence; see `nn.functional.kl_div`.

    Args:
        input: log-probabilities.
        target: probabilities, or log-probabilities with `log_target`.
        reduction: 0 for none, 1 for the mean, 2 for the sum. Default: `0`
        log_target: whether the target holds log-probabilities. Default: `False`

    Examples:
        >>> torch.kl_div(torch.tensor([0.9, 0.1]).log(), torch.tensor([0.5, 0.5]), 2)
        tensor(0.5108)
    """
    named = _named(kl_div, reduction)
    loss = F.kl_div(input, target, reduction="none" if named == "mean" else named, log_target=log_target)
    return loss.mean() if named == "mean" else loss


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """Compute the hinge loss of distances; see `nn.functional.hinge_embedding_loss`.

    Args:
        input: distances of pairs.
        target: 1 for similar pairs, -1 for others.
        margin: distance beyond which dissimilar pairs cost nothing. Default: `1.0`
        reduction: 0 for none, 1 for the mean, 2 for the sum. Default: `0`

    Examples:
        >>> torch.hinge_embedding_loss(torch.tensor([0.3, 0.4]), torch.tensor([1, -1]))
        tensor([0.3000, 0.6000])
    """
    return F.hinge_embedding_loss(input, target, margin, reduction=_named(hinge_embedding_loss, reduction))


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0) -> Tensor:
    """Compute the loss of cosine similarity; see `nn.functional.cosine_embedding_loss`.

    Args:
        input1, input2: vectors `(N, D)` or `(D,)`.
        target: 1 for similar pairs, -1 for others.
        margin: similarity below which dissimilar pairs cost nothing. Default: `0.0`
        reduction: 0 for none, 1 for the mean, 2 for the sum. Default: `0`

    Examples:
        >>> torch.cosine_embedding_loss(torch.ones(1, 2), torch.tensor([[1.0, 0.0]]), torch.tensor([1]))
        tensor([0.2929])
    """
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_named(cosine_embedding_loss, reduction))


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0) -> Tensor:
    """Compute the ranking loss of two scores; see `nn.functional.margin_ranking_loss`.

    Args:
        input1, input2: scores.
        target: 1 if the first score shall be higher, -1 if the second.
        margin: difference of the scores beyond which the loss is zero. Default: `0.0`
        reduction: 0 for none, 1 for the mean, 2 for the sum. Default: `0`

    Examples:
        >>> torch.margin_ranking_loss(torch.tensor([0.25, 1.0]), torch.tensor([0.5, 0.0]), torch.tensor([1, 1]))
        tensor([0.2500, 0.0000])
    """
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
    """Compute the triplet loss; see `nn.functional.triplet_margin_loss`.

    Args:
        anchor, positive, negative: tensors `(N, D)` or `(D,)`; the anchor shall be closer to the positive.
        margin: difference of the distances beyond which the loss is zero. Default: `1.0`
        p: exponent of the norm. Default: `2`
        eps: small number added to every element of the differences. Default: `1e-6`
        swap: use the distance of positive and negative if it is smaller. Default: `False`
        reduction: 0 for none, 1 for the mean, 2 for the sum. Default: `0`

    Examples:
        >>> torch.triplet_margin_loss(torch.zeros(1, 2), torch.ones(1, 2), torch.ones(1, 2))
        tensor([1.0000])
    """
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
    """Compute the connectionist temporal classification loss; see `nn.functional.ctc_loss`.

    Args:
        log_probs: log-probabilities `(T, N, C)` or `(T, C)`.
        targets: class indices `(N, S)`, or all sequences concatenated.
        input_lengths, target_lengths: lengths of inputs and targets.
        blank: class index of the blank. Default: `0`
        reduction: 0 for none, 1 for the mean, 2 for the sum. Default: `0`
        zero_infinity: whether to replace infinite losses by zero. Default: `False`

    Examples:
        >>> log_probs = torch.randn(12, 3, 6).log_softmax(2)
        >>> targets = torch.randint(1, 6, (3, 4))
        >>> torch.ctc_loss(log_probs, targets, torch.full((3,), 12), torch.full((3,), 4)).shape
        torch.Size([3])
    """
    return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _named(ctc_loss, reduction), zero_infinity)


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero elements at random and scale the others by `1 / (1 - p)`, in place.

    Args:
        input: tensor.
        p: probability to be zeroed.
        train: whether to apply dropout; otherwise the input is returned.

    Examples:
        >>> torch.dropout_(torch.ones(4), 0.0, True)
        tensor([1., 1., 1., 1.])
    """
    return F.dropout(input, p, train, True)


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply dropout for networks with SELU, which keeps zero mean and unit variance.

    Args:
        input: tensor.
        p: probability to be dropped.
        train: whether to apply dropout; otherwise the input is returned.

    Examples:
        >>> torch.alpha_dropout(torch.randn(3, 4), 0.2, True).shape
        torch.Size([3, 4])
    """
    return _alpha_dropout(input, p, train, False, False)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply `alpha_dropout` in place.

    Args:
        input: tensor.
        p: probability to be dropped.
        train: whether to apply dropout; otherwise the input is returned.

    Examples:
        >>> torch.alpha_dropout_(torch.randn(3, 4), 0.2, True).shape
        torch.Size([3, 4])
    """
    return _alpha_dropout(input, p, train, True, False)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply alpha dropout to whole channels, for networks with SELU.

    Args:
        input: tensor `(N, C, *)`.
        p: probability to be dropped.
        train: whether to apply dropout; otherwise the input is returned.

    Examples:
        >>> torch.feature_alpha_dropout(torch.randn(3, 4, 5), 0.2, True).shape
        torch.Size([3, 4, 5])
    """
    return _alpha_dropout(input, p, train, False, True)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply `feature_alpha_dropout` in place.

    Args:
        input: tensor `(N, C, *)`.
        p: probability to be dropped.
        train: whether to apply dropout; otherwise the input is returned.

    Examples:
        >>> torch.feature_alpha_dropout_(torch.randn(3, 4, 5), 0.2, True).shape
        torch.Size([3, 4, 5])
    """
    return _alpha_dropout(input, p, train, True, True)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero whole channels at random and scale the others by `1 / (1 - p)`.

    Args:
        input: tensor `(N, C, *)`.
        p: probability to be zeroed.
        train: whether to apply dropout; otherwise the input is returned.

    Examples:
        >>> torch.feature_dropout(torch.randn(3, 4, 5), 0.2, True).shape
        torch.Size([3, 4, 5])
    """
    return _feature_dropout(input, p, train, False)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply `feature_dropout` in place.

    Args:
        input: tensor `(N, C, *)`.
        p: probability to be zeroed.
        train: whether to apply dropout; otherwise the input is returned.

    Examples:
        >>> torch.feature_dropout_(torch.randn(3, 4, 5), 0.2, True).shape
        torch.Size([3, 4, 5])
    """
    return _feature_dropout(input, p, train, True)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 0
) -> Tensor:
    """Compute the binary cross entropy of logits; see `nn.functional.binary_cross_entropy_with_logits`.

    Args:
        input: logits.
        target: targets from 0 to 1, of the same shape.
        weight: weight of each loss; broadcasts against the input.
        pos_weight: weight of the positive targets, for each class.
        reduction: 0 for none, 1 for the mean, 2 for the sum. Default: `0`

    Examples:
        >>> torch.binary_cross_entropy_with_logits(torch.tensor([2.0, -1.0]), torch.tensor([1.0, 0.0]))
        tensor([0.1269, 0.3133])
    """
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
    """Sample images at the positions of a grid; see `nn.functional.grid_sample`.

    Args:
        input: tensor `(N, C, H, W)`.
        grid: positions `(N, H_out, W_out, 2)`, from -1 to 1.
        interpolation_mode: 0 for bilinear, 1 for nearest, 2 for bicubic.
        padding_mode: 0 for zeros, 1 for the border, 2 for reflection.
        align_corners: whether -1 and 1 are the centres of the corner pixels instead of their outer edges.

    Examples:
        >>> torch.grid_sampler_2d(torch.ones(1, 1, 4, 4), torch.zeros(1, 2, 2, 2), 0, 0, False).shape
        torch.Size([1, 1, 2, 2])
    """
    return _sampled(2, input, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """Sample volumes at the positions of a grid; see `nn.functional.grid_sample`.

    Args:
        input: tensor `(N, C, D, H, W)`.
        grid: positions `(N, D_out, H_out, W_out, 3)`, from -1 to 1.
        interpolation_mode: 0 for bilinear, 1 for nearest, 2 for bicubic.
        padding_mode: 0 for zeros, 1 for the border, 2 for reflection.
        align_corners: whether -1 and 1 are the centres of the corner pixels instead of their outer edges.

    Examples:
        >>> torch.grid_sampler_3d(torch.ones(1, 1, 4, 4, 4), torch.zeros(1, 2, 2, 2, 3), 0, 0, False).shape
        torch.Size([1, 1, 2, 2, 2])
    """
    return _sampled(3, input, grid, interpolation_mode, padding_mode, align_corners)


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Zero elements at random and scale the others by `1 / (1 - p)`; return the mask of those kept, too.

    Args:
        input: any tensor.
        p: probability to be zeroed.
        train: whether to apply dropout; `False` keeps everything.

    Examples:
        >>> output, mask = torch.native_dropout(torch.ones(2, 3), 0.5, True)
        >>> mask.dtype
        torch.bool
    """
    if input.numel() == 0:
        return input, input.new_empty(input.shape, dtype=_core.bool)
    if train is False:
        return input.clone(), input.new_ones(input.shape, dtype=_core.bool)
    kept = input.new_empty(input.shape, dtype=input.dtype.to_real()).bernoulli_(1 - p)
    return input * kept * (0.0 if p == 1 else 1 / (1 - p)), kept.bool()


def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize groups of channels; return means and reciprocal standard deviations of the groups, too.

    Args:
        input: tensor `(N, C, *)`.
        weight, bias: scale and shift of each channel, or `None`.
        N, C, HxW: batch size, number of channels, and number of positions.
        group: number of groups.
        eps: term added to the variance for numerical stability.

    Examples:
        >>> output, mean, rstd = torch.native_group_norm(torch.randn(2, 4, 5), None, None, 2, 4, 5, 2, 1e-5)
        >>> mean.shape
        torch.Size([2, 2])
    """
    found = F.group_norm(input.reshape(N, C, HxW), group, weight, bias, eps).reshape(input.shape)
    variance, mean = _core.var_mean(input.reshape(N, group, C * HxW // group), -1, correction=0)
    return found, mean, (variance + eps).rsqrt()


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Compute the norm over all dimensions but one.

    Args:
        v: any tensor.
        pow: exponent of the norm. Default: `2`
        dim: dimension to keep; -1 for the norm over all dimensions. Default: `0`

    Examples:
        >>> torch.norm_except_dim(torch.tensor([[3.0, 4.0], [6.0, 8.0]]))
        tensor([[ 5.],
                [10.]])
    """
    if dim == -1:
        return v.norm(pow)
    if dim not in (0, v.dim() - 1):
        return norm_except_dim(v.transpose(0, dim), pow, 0).transpose(0, dim)
    others = [d for d in range(v.dim()) if d != dim]
    return v.norm(pow, others, keepdim=True) if others else v.norm(pow, 0, keepdim=True) if v.dim() == 0 else v.abs()
