"""Gradients of convolutions as functions."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd import grad
from ..autograd.grad_mode import enable_grad
from . import functional as F

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _of_zeros(like: Tensor, size: Any) -> Tensor:
    """Return a leaf of zeros that shares one element of memory: the gradient depends only on its shape."""
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
    """Compute the gradient of `conv1d` with respect to its input.

    Args:
        input_size: shape of the input.
        weight: filters of the convolution.
        grad_output: gradient with respect to the output.
        stride: stride of the convolution. Default: `1`
        padding: padding of the convolution. Default: `0`
        dilation: spacing between filter elements. Default: `1`
        groups: number of groups of channels. Default: `1`

    Examples:
        >>> torch.nn.grad.conv1d_input((2, 4, 8), torch.randn(3, 4, 3), torch.randn(2, 3, 6)).shape
        torch.Size([2, 4, 8])
    """
    return _of_input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Compute the gradient of `conv1d` with respect to its weight.

    Args:
        input: input of the convolution.
        weight_size: shape of the filters.
        grad_output: gradient with respect to the output.
        stride: stride of the convolution. Default: `1`
        padding: padding of the convolution. Default: `0`
        dilation: spacing between filter elements. Default: `1`
        groups: number of groups of channels. Default: `1`

    Examples:
        >>> torch.nn.grad.conv1d_weight(torch.randn(2, 4, 8), (3, 4, 3), torch.randn(2, 3, 6)).shape
        torch.Size([3, 4, 3])
    """
    return _of_weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Compute the gradient of `conv2d` with respect to its input.

    Args:
        input_size: shape of the input.
        weight: filters of the convolution.
        grad_output: gradient with respect to the output.
        stride: stride of the convolution. Default: `1`
        padding: padding of the convolution. Default: `0`
        dilation: spacing between filter elements. Default: `1`
        groups: number of groups of channels. Default: `1`

    Examples:
        >>> torch.nn.grad.conv2d_input((2, 4, 8, 8), torch.randn(3, 4, 3, 3), torch.randn(2, 3, 6, 6)).shape
        torch.Size([2, 4, 8, 8])
    """
    return _of_input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Compute the gradient of `conv2d` with respect to its weight.

    Args:
        input: input of the convolution.
        weight_size: shape of the filters.
        grad_output: gradient with respect to the output.
        stride: stride of the convolution. Default: `1`
        padding: padding of the convolution. Default: `0`
        dilation: spacing between filter elements. Default: `1`
        groups: number of groups of channels. Default: `1`

    Examples:
        >>> torch.nn.grad.conv2d_weight(torch.randn(2, 4, 8, 8), (3, 4, 3, 3), torch.randn(2, 3, 6, 6)).shape
        torch.Size([3, 4, 3, 3])
    """
    return _of_weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Compute the gradient of `conv3d` with respect to its input.

    Args:
        input_size: shape of the input.
        weight: filters of the convolution.
        grad_output: gradient with respect to the output.
        stride: stride of the convolution. Default: `1`
        padding: padding of the convolution. Default: `0`
        dilation: spacing between filter elements. Default: `1`
        groups: number of groups of channels. Default: `1`

    Examples:
        >>> torch.nn.grad.conv3d_input((1, 2, 4, 4, 4), torch.randn(3, 2, 3, 3, 3), torch.randn(1, 3, 2, 2, 2)).shape
        torch.Size([1, 2, 4, 4, 4])
    """
    return _of_input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Tensor:
    """Compute the gradient of `conv3d` with respect to its weight.

    Args:
        input: input of the convolution.
        weight_size: shape of the filters.
        grad_output: gradient with respect to the output.
        stride: stride of the convolution. Default: `1`
        padding: padding of the convolution. Default: `0`
        dilation: spacing between filter elements. Default: `1`
        groups: number of groups of channels. Default: `1`

    Examples:
        >>> torch.nn.grad.conv3d_weight(torch.randn(1, 2, 4, 4, 4), (3, 2, 3, 3, 3), torch.randn(1, 3, 2, 2, 2)).shape
        torch.Size([3, 2, 3, 3, 3])
    """
    return _of_weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)
