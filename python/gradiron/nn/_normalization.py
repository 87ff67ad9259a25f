"""Batch, instance, group and root mean square normalization as functions."""

from __future__ import annotations

from math import prod
from typing import Any

from .. import _core
from .._core import Tensor


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel over the batch (batch normalization).

    `y = (x - mean) / sqrt(var + eps) * weight + bias`, with the statistics of the batch in training, else the running
    ones.

    Args:
        input: tensor `(N, C, *)`.
        running_mean, running_var: running estimates, of shape `(C,)`; training updates them in place.
        weight, bias: scale and shift of each channel, of shape `(C,)`.
        training: whether to use the statistics of the batch. Default: `False`
        momentum: weight of the new batch in the running estimates. Default: `0.1`
        eps: term added to the variance for numerical stability. Default: `1e-5`

    Raises:
        ValueError: in training, if there is only one value for each channel.

    Examples:
        >>> F.batch_norm(torch.randn(8, 4), torch.zeros(4), torch.ones(4)).shape
        torch.Size([8, 4])
    """
    if training:
        _need_several(input.shape, input.shape)
        if eps <= 0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    return _core.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def _need_several(sizes: Any, shown: Any) -> None:
    """Raise an error if there is only one value to normalize."""
    if sizes[0] * prod(sizes[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {shown}")


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel of each sample (instance normalization).

    Args:
        input: tensor `(N, C, *)`.
        running_mean, running_var: running estimates, of shape `(C,)`; updated in place, or used instead of
            statistics.
        weight, bias: scale and shift of each channel, of shape `(C,)`.
        use_input_stats: whether to use the statistics of the input instead of the running ones. Default: `True`
        momentum: weight of the new statistics in the running estimates. Default: `0.1`
        eps: term added to the variance for numerical stability. Default: `1e-5`

    Raises:
        ValueError: if there is only one value for each channel.

    Examples:
        >>> F.instance_norm(torch.randn(2, 4, 8)).shape
        torch.Size([2, 4, 8])
    """
    if use_input_stats and prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    return _core.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalize groups of channels of each sample (group normalization).

    Args:
        input: tensor `(N, C, *)`.
        num_groups: number of groups; must divide `C`.
        weight, bias: scale and shift of each channel, of shape `(C,)`.
        eps: term added to the variance for numerical stability. Default: `1e-5`

    Examples:
        >>> F.group_norm(torch.randn(2, 4, 8), num_groups=2).shape
        torch.Size([2, 4, 8])
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    if input.size(1) == 0:
        raise RuntimeError("Expected number of channels to be greater than 0, got 0")
    sizes = [input.size(0) * input.size(1) // num_groups, num_groups, *input.shape[2:]]
    _need_several(sizes, sizes)
    return _core.group_norm(input, num_groups, weight, bias, eps, False)


def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Divide by the root mean square over the last dimensions (RMS normalization).

    `y = x / sqrt(mean(x**2) + eps) * weight`.

    Args:
        input: any tensor.
        normalized_shape: sizes of the last dimensions, over which to normalize.
        weight: scale of each element, of shape `normalized_shape`.
        eps: term added to the mean square for numerical stability; the machine epsilon of the dtype if `None`.

    Examples:
        >>> F.rms_norm(torch.tensor([[3.0, 4.0]]), (2,))
        tensor([[0.8485, 1.1314]])
    """
    return _core.rms_norm(input, normalized_shape, weight, eps)
