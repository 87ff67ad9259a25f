"""Normalization as functions: of batches, of samples, of groups of channels, of the last dimensions."""

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
    """Channels less their mean over the batch, by their spread."""
    if training:
        _need_several(input.shape, input.shape)
        if eps <= 0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    return _core.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def _need_several(sizes: Any, shown: Any) -> None:
    """One value has no spread."""
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
    """Each channel of each sample less its mean, by its spread."""
    if use_input_stats and prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    return _core.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Groups of channels of each sample less their mean, by their spread."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    if input.size(1) == 0:
        raise RuntimeError("Expected number of channels to be greater than 0, got 0")
    sizes = [input.size(0) * input.size(1) // num_groups, num_groups, *input.shape[2:]]
    _need_several(sizes, sizes)
    return _core.group_norm(input, num_groups, weight, bias, eps, False)


def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """The last dimensions by the root of their mean square."""
    return _core.rms_norm(input, normalized_shape, weight, eps)
