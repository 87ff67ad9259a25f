"""Layers that exchange channels and pixels."""

from __future__ import annotations

from ..._core import Tensor
from .. import functional as F
from .module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Module):
    """Rearrange `(N, C * r**2, H, W)` into `(N, C, H * r, W * r)`, for subpixel convolution.

    Args:
        upscale_factor: the factor `r`.

    Examples:
        >>> nn.PixelShuffle(2)(torch.randn(1, 12, 4, 4)).shape
        torch.Size([1, 3, 8, 8])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Rearrange `(N, C, H * r, W * r)` into `(N, C * r**2, H, W)`, the inverse of `PixelShuffle`.

    Args:
        downscale_factor: the factor `r`.

    Examples:
        >>> nn.PixelUnshuffle(2)(torch.randn(1, 3, 8, 8)).shape
        torch.Size([1, 12, 4, 4])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
