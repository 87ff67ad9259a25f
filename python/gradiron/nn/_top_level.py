"""Functions of `torch` that resemble those of `nn.functional`.

They take the reduction as a number, none by default, and call `train` what is `training` there.
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
    """Compute the Poisson negative log likelihood loss.

    The function of the same name in `nn.functional` takes the reduction by name.

    Args:
        input: mean of the distribution, or its logarithm.
        target: counts.
        log_input: whether `input` is the logarithm.
        full: add the Stirling approximation of the constant term.
        eps: term inside of the logarithm, if `log_input` is false.
        reduction: 0 for none, 1 for the mean, 2 for the sum.

    Examples:
        >>> torch.poisson_nll_loss(torch.zeros(2), torch.ones(2), True, False, 1e-8, 1)
        tensor(1.)
    """
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_named(poisson_nll_loss, reduction))


def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """Compute the Kullback-Leibler divergence loss, `target * (log(target) - input)`.

    The function of the same name in `nn.functional` takes the reduction by name. Here the mean is over all elements.

    Args:
        input: log-probabilities.
        target: probabilities.
        reduction: 0 for none, 1 for the mean, 2 for the sum. Default: `0`
        log_target: whether `target` holds log-probabilities. Default: `False`

    Examples:
        >>> torch.kl_div(torch.tensor([0.5, 0.5]).log(), torch.tensor([0.5, 0.5]), 2)
        tensor(0.)
    """
    named = _named(kl_div, reduction)
    loss = F.kl_div(input, target, reduction="none" if named == "mean" else named, log_target=log_target)
    return loss.mean() if named == "mean" else loss


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """Compute the hinge embedding loss of distances and labels 1 or -1.

    The function of the same name in `nn.functional` takes the reduction by name.

    Args:
        input: distances.
        target: labels 1 or -1.
        margin: margin of the negative pairs. Default: `1.0`
        reduction: 0 for none, 1 for the mean, 2 for the sum. Default: `0`

    Examples:
        >>> torch.hinge_embedding_loss(torch.tensor([0.5, 0.5]), torch.tensor([1, -1]))
        tensor([0.5000, 0.5000])
    """
    return F.hinge_embedding_loss(input, target, margin, reduction=_named(hinge_embedding_loss, reduction))


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0) -> Tensor:
    """Compute the cosine embedding loss of pairs of vectors and labels 1 or -1.

    The function of the same name in `nn.functional` takes the reduction by name.

    Args:
        input1, input2: vectors.
        target: labels 1 or -1.
        margin: margin of the negative pairs. Default: `0.0`
        reduction: 0 for none, 1 for the mean, 2 for the sum. Default: `0`

    Examples:
        >>> torch.cosine_embedding_loss(torch.ones(1, 2), torch.ones(1, 2), torch.tensor([-1]))
        tensor([1.])
    """
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_named(cosine_embedding_loss, reduction))


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0) -> Tensor:
    """Compute the margin ranking loss, `max(0, -target * (input1 - input2) + margin)`.

    The function of the same name in `nn.functional` takes the reduction by name.

    Args:
        input1, input2: scores.
        target: 1 where the first score should be higher, -1 where the second.
        margin: margin. Default: `0.0`
        reduction: 0 for none, 1 for the mean, 2 for the sum. Default: `0`

    Examples:
        >>> torch.margin_ranking_loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0]))
        tensor([2.])
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
    """Compute the triplet margin loss, `max(0, d(anchor, positive) - d(anchor, negative) + margin)`.

    The function of the same name in `nn.functional` takes the reduction by name.

    Args:
        anchor, positive, negative: vectors.
        margin: margin. Default: `1.0`
        p: order of the norm of the distance `d`. Default: `2`
        eps: term added to the differences for numerical stability. Default: `1e-6`
        swap: use the distance of `positive` and `negative` where it is smaller. Default: `False`
        reduction: 0 for none, 1 for the mean, 2 for the sum. Default: `0`

    Examples:
        >>> torch.triplet_margin_loss(torch.zeros(1, 2), torch.zeros(1, 2), torch.ones(1, 2), margin=2.0)
        tensor([0.5858])
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
    """Compute the connectionist temporal classification (CTC) loss.

    The function of the same name in `nn.functional` takes the reduction by name.

    Args:
        log_probs: log-probabilities of shape `(T, N, C)`.
        targets: labels, padded to shape `(N, S)` or concatenated.
        input_lengths: length of each input.
        target_lengths: length of each target.
        blank: index of the blank label. Default: `0`
        reduction: 0 for none, 1 for the mean, 2 for the sum. Default: `0`
        zero_infinity: replace infinite losses by 0. Default: `False`

    Examples:
        >>> log_probs = torch.zeros(4, 1, 3).log_softmax(2)
        >>> torch.ctc_loss(log_probs, torch.tensor([[1, 2]]), torch.tensor([4]), torch.tensor([2]))
        tensor([1.6864])
    """
    return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _named(ctc_loss, reduction), zero_infinity)


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place version of `torch.dropout`.

    Args:
        input: tensor to change.
        p: probability of zeroing an element.
        train: whether to apply dropout.

    Examples:
        >>> torch.dropout_(torch.ones(2), 0.5, False)
        tensor([1., 1.])
    """
    return F.dropout(input, p, train, True)


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply alpha dropout, which keeps the mean and the variance of inputs of SELU networks.

    Args:
        input: tensor.
        p: probability of masking an element.
        train: whether to apply dropout.

    Examples:
        >>> torch.alpha_dropout(torch.ones(2), 0.5, False)
        tensor([1., 1.])
    """
    return _alpha_dropout(input, p, train, False, False)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place version of `alpha_dropout`.

    Args:
        input: tensor to change.
        p: probability of masking an element.
        train: whether to apply dropout.

    Examples:
        >>> torch.alpha_dropout_(torch.ones(2), 0.5, False)
        tensor([1., 1.])
    """
    return _alpha_dropout(input, p, train, True, False)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply alpha dropout to whole channels.

    Args:
        input: tensor of shape `(N, C, ...)`.
        p: probability of masking a channel.
        train: whether to apply dropout.

    Examples:
        >>> torch.feature_alpha_dropout(torch.ones(1, 2), 0.5, False)
        tensor([[1., 1.]])
    """
    return _alpha_dropout(input, p, train, False, True)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place version of `feature_alpha_dropout`.

    Args:
        input: tensor of shape `(N, C, ...)` to change.
        p: probability of masking a channel.
        train: whether to apply dropout.

    Examples:
        >>> torch.feature_alpha_dropout_(torch.ones(1, 2), 0.5, False)
        tensor([[1., 1.]])
    """
    return _alpha_dropout(input, p, train, True, True)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply dropout to whole channels, and scale the others by `1 / (1 - p)`.

    Args:
        input: tensor of shape `(N, C, ...)`.
        p: probability of zeroing a channel.
        train: whether to apply dropout.

    Examples:
        >>> torch.feature_dropout(torch.ones(1, 2), 0.5, False)
        tensor([[1., 1.]])
    """
    return _feature_dropout(input, p, train, False)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place version of `feature_dropout`.

    Args:
        input: tensor of shape `(N, C, ...)` to change.
        p: probability of zeroing a channel.
        train: whether to apply dropout.

    Examples:
        >>> torch.feature_dropout_(torch.ones(1, 2), 0.5, False)
        tensor([[1., 1.]])
    """
    return _feature_dropout(input, p, train, True)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 0
) -> Tensor:
    """Compute the binary cross entropy of logits.

    The function of the same name in `nn.functional` takes the reduction by name.

    Args:
        input: logits.
        target: probabilities between 0 and 1.
        weight: weight of each element.
        pos_weight: weight of the positive class.
        reduction: 0 for none, 1 for the mean, 2 for the sum. Default: `0`

    Examples:
        >>> torch.binary_cross_entropy_with_logits(torch.zeros(2), torch.ones(2))
        tensor([0.6931, 0.6931])
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
    """Sample images at the points of a grid, see `nn.functional.grid_sample`.

    Args:
        input: images of shape `(N, C, H, W)`.
        grid: points of shape `(N, H_out, W_out, 2)`, with coordinates between -1 and 1.
        interpolation_mode: 0 for bilinear, 1 for nearest, 2 for bicubic.
        padding_mode: 0 for zeros, 1 for the border, 2 for reflection.
        align_corners: whether -1 and 1 mean the centers of the corner pixels.

    Examples:
        >>> torch.grid_sampler_2d(torch.ones(1, 1, 3, 3), torch.zeros(1, 1, 1, 2), 0, 0, False)
        tensor([[[[1.]]]])
    """
    return _sampled(2, input, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """Sample volumes at the points of a grid, see `nn.functional.grid_sample`.

    Args:
        input: volumes of shape `(N, C, D, H, W)`.
        grid: points of shape `(N, D_out, H_out, W_out, 3)`, with coordinates between -1 and 1.
        interpolation_mode: 0 for trilinear, 1 for nearest.
        padding_mode: 0 for zeros, 1 for the border, 2 for reflection.
        align_corners: whether -1 and 1 mean the centers of the corner voxels.

    Examples:
        >>> torch.grid_sampler_3d(torch.ones(1, 1, 3, 3, 3), torch.zeros(1, 1, 1, 1, 3), 0, 0, False).shape
        torch.Size([1, 1, 1, 1, 1])
    """
    return _sampled(3, input, grid, interpolation_mode, padding_mode, align_corners)


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Apply dropout and return the mask of the elements that were kept as well.

    Args:
        input: tensor.
        p: probability of zeroing an element.
        train: whether to apply dropout; true if `None`.

    Examples:
        >>> torch.native_dropout(torch.ones(2), 0.5, False)
        (tensor([1., 1.]), tensor([True, True]))
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
    """Apply group normalization, and return the mean and the reciprocal standard deviation of each group too.

    Args:
        input: tensor of `N * C * HxW` elements.
        weight: factor of each channel.
        bias: shift of each channel.
        N: batch size.
        C: number of channels.
        HxW: number of elements per channel.
        group: number of groups.
        eps: term added to the variance for numerical stability.

    Examples:
        >>> y, mean, rstd = torch.native_group_norm(torch.randn(2, 4, 3), None, None, 2, 4, 3, 2, 1e-5)
        >>> y.shape, mean.shape
        (torch.Size([2, 4, 3]), torch.Size([2, 2]))
    """
    found = F.group_norm(input.reshape(N, C, HxW), group, weight, bias, eps).reshape(input.shape)
    variance, mean = _core.var_mean(input.reshape(N, group, C * HxW // group), -1, correction=0)
    return found, mean, (variance + eps).rsqrt()


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Compute the norm over all dimensions except one.

    Args:
        v: tensor.
        pow: order of the norm. Default: `2`
        dim: dimension that is kept, or -1 for the norm over all. Default: `0`

    Examples:
        >>> torch.norm_except_dim(torch.ones(2, 4))
        tensor([[2.],
                [2.]])
    """
    if dim == -1:
        return v.norm(pow)
    if dim not in (0, v.dim() - 1):
        return norm_except_dim(v.transpose(0, dim), pow, 0).transpose(0, dim)
    others = [d for d in range(v.dim()) if d != dim]
    return v.norm(pow, others, keepdim=True) if others else v.norm(pow, 0, keepdim=True) if v.dim() == 0 else v.abs()
