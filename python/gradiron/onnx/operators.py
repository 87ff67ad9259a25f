"""Shapes as tensors."""

from __future__ import annotations

import gradiron

from .._core import Tensor

__all__ = ["reshape_from_tensor_shape", "shape_as_tensor"]


def shape_as_tensor(x: Tensor) -> Tensor:
    """Return the shape of a tensor as a tensor.

    Args:
        x: tensor.

    Examples:
        >>> from gradiron.onnx import operators
        >>> operators.shape_as_tensor(torch.ones(2, 3))
        tensor([2, 3])
    """
    return gradiron.tensor(list(x.shape))


def reshape_from_tensor_shape(x: Tensor, shape: Tensor) -> Tensor:
    """Return a tensor in the shape that another one holds.

    Args:
        x: tensor.
        shape: the sizes.

    Examples:
        >>> from gradiron.onnx import operators
        >>> operators.reshape_from_tensor_shape(torch.ones(4), torch.tensor([2, 2])).shape
        torch.Size([2, 2])
    """
    return x.reshape(tuple(shape.tolist()))
