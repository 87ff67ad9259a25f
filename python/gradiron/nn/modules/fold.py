"""Layers that extract patches of images (im2col) and put them together again (col2im)."""

from __future__ import annotations

from typing import Any

from ..._core import Tensor
from .. import functional as F
from .module import Module

__all__ = ["Fold", "Unfold"]


class Fold(Module):
    """Combine patches into images, summing where they overlap (col2im).

    Args:
        output_size: height and width of the images.
        kernel_size: size of the patches.
        dilation: spacing between the elements of a patch. Default: `1`
        padding: number of zeros added on both sides of the image. Default: `0`
        stride: step between patches. Default: `1`

    Shape:
        - Input: `(N, C * prod(kernel_size), L)` or without `N`, for `L` patches.
        - Output: `(N, C, H, W)` or `(C, H, W)`.

    Examples:
        >>> nn.Fold((4, 4), 2, stride=2)(torch.randn(1, 3 * 4, 4)).shape
        torch.Size([1, 3, 4, 4])
    """

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )


class Unfold(Module):
    """Extract sliding patches of images as columns (im2col).

    Args:
        kernel_size: size of the patches.
        dilation: spacing between the elements of a patch. Default: `1`
        padding: number of zeros added on both sides of the image. Default: `0`
        stride: step between patches. Default: `1`

    Shape:
        - Input: `(N, C, H, W)` or `(C, H, W)`.
        - Output: `(N, C * prod(kernel_size), L)` or without `N`, for `L` patches.

    Examples:
        >>> nn.Unfold(2, stride=2)(torch.randn(1, 3, 4, 4)).shape
        torch.Size([1, 12, 4])
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
