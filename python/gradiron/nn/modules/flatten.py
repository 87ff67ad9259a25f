"""Layers that flatten and unflatten dimensions."""

from __future__ import annotations

from typing import Any

from ..._core import Tensor
from .module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Flatten a range of dimensions into one; by default all but the batch dimension.

    Args:
        start_dim: first dimension to flatten. Default: `1`
        end_dim: last dimension to flatten. Default: `-1`

    Examples:
        >>> nn.Flatten()(torch.randn(2, 3, 4)).shape
        torch.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split one dimension into several.

    Args:
        dim: dimension to split.
        unflattened_size: sizes of the new dimensions; one of them may be -1.

    Examples:
        >>> nn.Unflatten(1, (2, 3))(torch.randn(4, 6)).shape
        torch.Size([4, 2, 3])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self._need_sizes(unflattened_size)
        self.dim = dim
        self.unflattened_size = unflattened_size

    def _need_sizes(self, sizes: Any) -> None:
        if not isinstance(sizes, (tuple, list)):
            raise TypeError(f"unflattened_size must be a tuple of ints, but found type {type(sizes).__name__}")
        for at, size in enumerate(sizes):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} at pos {at}"
                )

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
