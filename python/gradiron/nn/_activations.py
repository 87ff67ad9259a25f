"""Activations that are functions of Python, as in PyTorch: programs hang attributes on them, which the core's do not take."""

from __future__ import annotations

from .. import _core
from .._core import Tensor

__all__ = ["leaky_relu", "relu", "relu6", "sigmoid", "tanh"]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """`input` where positive, else 0."""
    return _core._nn.relu(input, inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """`input`, but no less than 0 and no more than 6."""
    return _core._nn.relu6(input, inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """`input` where positive, else `negative_slope * input`."""
    return _core._nn.leaky_relu(input, negative_slope, inplace)


def sigmoid(input: Tensor) -> Tensor:
    """`1 / (1 + exp(-input))`."""
    return _core.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return _core.tanh(input)
