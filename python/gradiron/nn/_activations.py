"""Activations as Python functions: programs set attributes on them, which builtins refuse."""

from __future__ import annotations

from .. import _core
from .._core import Tensor

__all__ = ["leaky_relu", "relu", "relu6", "sigmoid", "tanh"]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Apply the rectified linear unit: `max(input, 0)`.

    Args:
        input: any tensor.
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> F.relu(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """
    return _core._nn.relu(input, inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Clamp the input between 0 and 6.

    Args:
        input: any tensor.
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> F.relu6(torch.tensor([-1.0, 3.0, 8.0]))
        tensor([0., 3., 6.])
    """
    return _core._nn.relu6(input, inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Apply the leaky ReLU: `input` where it is not negative, else `negative_slope * input`.

    Args:
        input: any tensor.
        negative_slope: slope for negative elements. Default: `0.01`
        inplace: overwrite the input with the result. Default: `False`

    Examples:
        >>> F.leaky_relu(torch.tensor([-2.0, 0.0, 2.0]), 0.1)
        tensor([-0.2000,  0.0000,  2.0000])
    """
    return _core._nn.leaky_relu(input, negative_slope, inplace)


def sigmoid(input: Tensor) -> Tensor:
    """Apply the logistic sigmoid: `1 / (1 + exp(-input))`.

    Args:
        input: any tensor.

    Examples:
        >>> F.sigmoid(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([0.1192, 0.5000, 0.8808])
    """
    return _core.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """Apply the hyperbolic tangent.

    Args:
        input: any tensor.

    Examples:
        >>> F.tanh(torch.tensor([-2.0, 0.0, 2.0]))
        tensor([-0.9640,  0.0000,  0.9640])
    """
    return _core.tanh(input)
