"""The gradients of convolutions as functions."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd import grad
from ..autograd.grad_mode import enable_grad
from . import functional as F

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _of_zeros(like: Tensor, size: Any) -> Tensor:
    """A leaf of zeros in the memory of one: the gradient asks only for its shape."""
    return like.detach().new_zeros(()).expand(tuple(size)).requires_grad_()


def _of_input(n: int, size: Any, weight: Tensor, grad_output: Tensor, *geometry: Any) -> Tensor:
    recorded = _core.is_grad_enabled()
    with enable_grad():
        input = _of_zeros(weight, size)
        out = getattr(F, f"conv{n}d")(input, weight, None, *geometry)
        return grad(out, input, grad_output, create_graph=recorded)[0]


def _of_weight(n: int, input: Tensor, size: Any, grad_output: Tensor, *geometry: Any) -> Tensor:
    recorded = _core.is_grad_enabled()
    with enable_grad():
        weight = _of_zeros(input, size)
        out = getattr(F, f"conv{n}d")(input, weight, None, *geometry)
        return grad(out, weight, grad_output, create_graph=recorded)[0]


def conv1d_input(
    input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of `conv1d` for its input."""
    return _of_input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of `conv1d` for its weight."""
    return _of_weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of `conv2d` for its input."""
    return _of_input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of `conv2d` for its weight."""
    return _of_weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of `conv3d` for its input."""
    return _of_input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """The gradient of `conv3d` for its weight."""
    return _of_weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)
