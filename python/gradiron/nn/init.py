"""First values of parameters: written in place, unrecorded, the same as PyTorch's after the same seed."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import no_grad

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid")


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By what to multiply the deviation of weights so that their layer's output varies as much as its input."""
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"negative_slope {param} not a valid number")
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform numbers from `a` to `b`."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Normal numbers."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """One everywhere."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zero everywhere."""
    return constant_(tensor, 0.0)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Normal numbers, those outside `[a, b]` drawn again."""
    mean, std, a, b = float(mean), float(std), float(a), float(b)
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
            stacklevel=2,
        )
    inside = (math.erf((b - mean) / (std * math.sqrt(2.0))) - math.erf((a - mean) / (std * math.sqrt(2.0)))) / 2.0
    with no_grad():
        # Which way is quicker hangs on how much of the distribution lies inside.
        fill = _fill_by_redrawing if inside > 0.3 else _fill_by_rejection
        return fill(tensor, mean, std, a, b, generator)


def _fill_by_redrawing(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> Tensor:
    low, high = (_core.scalar_tensor(bound, dtype=tensor.dtype).item() for bound in (a, b))
    tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (tensor < low) | (tensor > high)
        if not outside.any():
            return tensor
        again = _core.empty_like(tensor).normal_(mean, std, generator=generator)
        tensor.copy_(_core.where(outside, again, tensor))


def _fill_by_rejection(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> Tensor:
    """Uniform numbers, each kept with the chance that its density has beside the highest one in `[a, b]`."""
    peak = -0.5 * ((min(max(mean, a), b) - mean) / std) ** 2
    pending: Any = None
    while pending is None or pending.any():
        drawn = _core.empty_like(tensor).uniform_(a, b, generator=generator)
        tensor.copy_(drawn if pending is None else _core.where(pending, drawn, tensor))
        density = ((drawn - mean) / std).square() * -0.5 - peak
        refused = _core.empty_like(tensor).uniform_(generator=generator).log() > density
        pending = refused if pending is None else pending & refused
    return tensor


def eye_(tensor: Tensor) -> Tensor:
    """The identity matrix."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.zero_().diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Weights of a convolution that hands its input channels through, as many as there are."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups:
        raise ValueError("dim 0 must be divisible by groups")
    height = tensor.size(0) // groups
    centre = [n // 2 for n in tensor.shape[2:]]
    channels = range(min(height, tensor.size(1)))
    places = [(group * height + channel, channel, *centre) for group in range(groups) for channel in channels]
    with no_grad():
        tensor.zero_()
        for place in places:
            tensor[place] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """How many inputs each output has, and how many outputs each input."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode.lower()} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


def _xavier_std(tensor: Tensor, gain: float) -> float:
    return gain * math.sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform numbers that keep the variance between both directions (Glorot)."""
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Normal numbers that keep the variance between both directions (Glorot)."""
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Uniform numbers that keep the variance in one direction (He)."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    bound = math.sqrt(3.0) * (calculate_gain(nonlinearity, a) / math.sqrt(fan))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Normal numbers that keep the variance in one direction (He)."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(fan), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """A matrix whose rows, or columns if there are fewer, are orthogonal and of length `gain`."""
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    with no_grad():
        drawn = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
        made = _orthonormal_rows(drawn) if rows < cols else _orthonormal_rows(drawn.t()).t()
        # A gain that is none is refused before anything is written.
        tensor.copy_(made.reshape(tensor.shape).mul_(gain))
    return tensor


def _orthonormal_rows(matrix: Tensor) -> Tensor:
    """Each row less its part along those before it, made one long: the factor Q, and R's diagonal is positive.

    Twice is enough to be orthogonal to rounding.
    """
    made = _core.empty_like(matrix)
    for at in range(matrix.size(-2)):
        row, before = matrix[..., at : at + 1, :], made[..., :at, :]
        for _ in range(2 if at else 0):
            row = row - row @ before.mH @ before
        made[..., at : at + 1, :] = row / row.abs().square().sum(-1, keepdim=True).sqrt()
    return made


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Normal numbers, a part of each column set to zero."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            tensor[_core.randperm(rows)[:zeros].to(tensor.device), col] = 0
    return tensor


def _deprecated(now: Callable[..., Tensor]) -> Callable[..., Tensor]:
    old = now.__name__[:-1]

    def call(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{now.__name__}`.", FutureWarning, stacklevel=2)
        return now(*args, **kwargs)

    call.__name__ = old
    call.__doc__ = f"The old name of `{now.__name__}`."
    return call


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
