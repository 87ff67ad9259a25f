"""Initialization of parameters, in place and without recording; with a seed the values are those of PyTorch."""

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
    """Return the recommended gain of an activation: a factor that offsets its effect on the variance.

    Args:
        nonlinearity: name of the activation or layer, such as `"relu"`, `"leaky_relu"`, `"tanh"`, `"selu"` or
            `"linear"`.
        param: negative slope of `"leaky_relu"`; 0.01 if `None`.

    Raises:
        ValueError: if the name is unknown.

    Examples:
        >>> nn.init.calculate_gain("leaky_relu", 1.0)
        1.0
    """
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
    """Fill a tensor with numbers from the uniform distribution over `[a, b)`.

    Args:
        tensor: tensor to fill in place.
        a: lower bound. Default: `0.0`
        b: upper bound. Default: `1.0`
        generator: random number generator; the default one if `None`.

    Examples:
        >>> nn.init.uniform_(torch.empty(2, 3)).shape
        torch.Size([2, 3])
    """
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill a tensor with numbers from a normal distribution.

    Args:
        tensor: tensor to fill in place.
        mean: mean of the distribution. Default: `0.0`
        std: standard deviation of the distribution. Default: `1.0`
        generator: random number generator; the default one if `None`.

    Examples:
        >>> nn.init.normal_(torch.empty(2, 3)).shape
        torch.Size([2, 3])
    """
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill a tensor with a constant.

    Args:
        tensor: tensor to fill in place.
        val: the constant.

    Examples:
        >>> nn.init.constant_(torch.empty(3), 0.5)
        tensor([0.5000, 0.5000, 0.5000])
    """
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill a tensor with ones.

    Args:
        tensor: tensor to fill in place.

    Examples:
        >>> nn.init.ones_(torch.empty(3))
        tensor([1., 1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill a tensor with zeros.

    Args:
        tensor: tensor to fill in place.

    Examples:
        >>> nn.init.zeros_(torch.empty(3))
        tensor([0., 0., 0.])
    """
    return constant_(tensor, 0.0)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Fill a tensor with numbers from a normal distribution truncated to `[a, b]`.

    Numbers outside the bounds are drawn again.

    Args:
        tensor: tensor to fill in place.
        mean: mean of the normal distribution. Default: `0.0`
        std: standard deviation of the normal distribution. Default: `1.0`
        a: lower bound. Default: `-2.0`
        b: upper bound. Default: `2.0`
        generator: random number generator; the default one if `None`.

    Examples:
        >>> bool(nn.init.trunc_normal_(torch.empty(100)).abs().max() <= 2)
        True
    """
    mean, std, a, b = float(mean), float(std), float(a), float(b)
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
            stacklevel=2,
        )
    inside = (math.erf((b - mean) / (std * math.sqrt(2.0))) - math.erf((a - mean) / (std * math.sqrt(2.0)))) / 2.0
    with no_grad():
        # The faster way depends on how much of the distribution is inside.
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
    """Draw uniform numbers and keep each with probability density / largest density in `[a, b]`."""
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
    """Fill a matrix with the identity matrix.

    Args:
        tensor: tensor to fill in place; 2D.

    Examples:
        >>> nn.init.eye_(torch.empty(2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        tensor.zero_().diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the filters of a convolution such that it preserves its input channels (Dirac delta).

    The first output channels of each group copy as many input channels; the others are zero.

    Args:
        tensor: tensor to fill in place; 3D to 5D.
        groups: number of groups of the convolution. Default: `1`

    Examples:
        >>> nn.init.dirac_(torch.empty(1, 2, 3))
        tensor([[[0., 1., 0.],
                 [0., 0., 0.]]])
    """
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
    """Return the number of inputs of each output (fan in), and of outputs of each input (fan out)."""
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
    """Fill a tensor with numbers from the Xavier (Glorot) uniform distribution.

    It is uniform over `[-a, a]` with `a = gain * sqrt(6 / (fan_in + fan_out))`, which keeps the variance of
    activations and gradients about equal.

    Args:
        tensor: tensor to fill in place; at least 2D.
        gain: factor of the standard deviation, see `calculate_gain`. Default: `1.0`
        generator: random number generator; the default one if `None`.

    Examples:
        >>> nn.init.xavier_uniform_(torch.empty(2, 3)).shape
        torch.Size([2, 3])
    """
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill a tensor with numbers from the Xavier (Glorot) normal distribution.

    It has mean 0 and standard deviation `gain * sqrt(2 / (fan_in + fan_out))`.

    Args:
        tensor: tensor to fill in place; at least 2D.
        gain: factor of the standard deviation, see `calculate_gain`. Default: `1.0`
        generator: random number generator; the default one if `None`.

    Examples:
        >>> nn.init.xavier_normal_(torch.empty(2, 3)).shape
        torch.Size([2, 3])
    """
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill a tensor with numbers from the Kaiming (He) uniform distribution.

    It is uniform over `[-b, b]` with `b = gain * sqrt(3 / fan)`.

    Args:
        tensor: tensor to fill in place; at least 2D.
        a: negative slope of the activation, for `"leaky_relu"`. Default: `0`
        mode: `"fan_in"` to keep the variance in the forward pass, `"fan_out"` in the backward pass.
            Default: `"fan_in"`
        nonlinearity: name of the activation, see `calculate_gain`. Default: `"leaky_relu"`
        generator: random number generator; the default one if `None`.

    Examples:
        >>> nn.init.kaiming_uniform_(torch.empty(2, 3), nonlinearity="relu").shape
        torch.Size([2, 3])
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    bound = math.sqrt(3.0) * (calculate_gain(nonlinearity, a) / math.sqrt(fan))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill a tensor with numbers from the Kaiming (He) normal distribution.

    It has mean 0 and standard deviation `gain / sqrt(fan)`.

    Args:
        tensor: tensor to fill in place; at least 2D.
        a: negative slope of the activation, for `"leaky_relu"`. Default: `0`
        mode: `"fan_in"` to keep the variance in the forward pass, `"fan_out"` in the backward pass.
            Default: `"fan_in"`
        nonlinearity: name of the activation, see `calculate_gain`. Default: `"leaky_relu"`
        generator: random number generator; the default one if `None`.

    Examples:
        >>> nn.init.kaiming_normal_(torch.empty(2, 3), nonlinearity="relu").shape
        torch.Size([2, 3])
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    fan = _calculate_correct_fan(tensor, mode)
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(fan), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill a tensor with a random (semi-)orthogonal matrix.

    Dimensions after the first are flattened; if there are more rows than columns, the columns are orthonormal, else
    the rows.

    Args:
        tensor: tensor to fill in place; at least 2D.
        gain: factor of the result. Default: `1`
        generator: random number generator; the default one if `None`.

    Examples:
        >>> w = nn.init.orthogonal_(torch.empty(2, 3))
        >>> torch.allclose(w @ w.T, torch.eye(2), atol=1e-6)
        True
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    with no_grad():
        drawn = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
        made = _orthonormal_rows(drawn) if rows < cols else _orthonormal_rows(drawn.t()).t()
        # An invalid gain raises an error before anything is written.
        tensor.copy_(made.reshape(tensor.shape).mul_(gain))
    return tensor


def _orthonormal_rows(matrix: Tensor) -> Tensor:
    """Orthonormalize the rows by the Gram-Schmidt process, as the factor Q whose R has a positive diagonal.

    Each row is projected twice, which makes them orthogonal to rounding.
    """
    made = _core.empty_like(matrix)
    for at in range(matrix.size(-2)):
        row, before = matrix[..., at : at + 1, :], made[..., :at, :]
        for _ in range(2 if at else 0):
            row = row - row @ before.mH @ before
        made[..., at : at + 1, :] = row / row.abs().square().sum(-1, keepdim=True).sqrt()
    return made


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill a matrix with normal numbers, of which a fraction in each column is zero.

    Args:
        tensor: tensor to fill in place; 2D.
        sparsity: fraction of zeros in each column.
        std: standard deviation of the others. Default: `0.01`
        generator: random number generator; the default one if `None`.

    Examples:
        >>> (nn.init.sparse_(torch.empty(10, 3), 0.3) == 0).sum(0)
        tensor([3, 3, 3])
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            tensor[_core.randperm(rows)[:zeros].to(tensor.device), col] = 0
    return tensor


def _deprecated(now: Callable[..., Tensor], example: str = "torch.empty(2, 3)") -> Callable[..., Tensor]:
    old = now.__name__[:-1]

    def call(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{now.__name__}`.", FutureWarning, stacklevel=2)
        return now(*args, **kwargs)

    call.__name__ = old
    call.__doc__ = f"""Deprecated name of `{now.__name__}`, with the same arguments.

Examples:
    >>> tensor = nn.init.{old}({example})
"""
    return call


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_, "torch.empty(2, 3), 0.5")
eye = _deprecated(eye_)
dirac = _deprecated(dirac_, "torch.empty(2, 3, 3)")
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_, "torch.empty(2, 3), 0.5")
