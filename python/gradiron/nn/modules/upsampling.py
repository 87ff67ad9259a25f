"""Upsampling layers."""

from __future__ import annotations

from typing import Any

from ..._core import Tensor
from .. import functional as F
from .module import Module

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """Resize sequences, images or volumes to a size or by a factor, by interpolation.

    Give either `size` or `scale_factor`. `nn.functional.interpolate` does the same as a function.

    Args:
        size: size of the output: one integer, or one for each spatial dimension.
        scale_factor: factor of the sizes: one number, or one for each spatial dimension.
        mode: `"nearest"`, `"linear"` (3D input), `"bilinear"`, `"bicubic"` (4D), `"trilinear"` (5D), or another mode
            of `interpolate`. Default: `"nearest"`
        align_corners: whether the corner elements of input and output coincide; only for the linear and cubic modes.
        recompute_scale_factor: whether to interpolate by the ratio of the rounded sizes instead of `scale_factor`.

    Shape:
        - Input: `(N, C, L)`, `(N, C, H, W)` or `(N, C, D, H, W)`.
        - Output: each spatial size as given, or `floor(size * scale_factor)`.

    Examples:
        >>> nn.Upsample(scale_factor=2)(torch.tensor([[[1.0, 2.0]]]))
        tensor([[[1., 1., 2., 2.]]])
        >>> nn.Upsample(size=(6, 8), mode="bilinear")(torch.randn(1, 3, 4, 4)).shape
        torch.Size([1, 3, 6, 8])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("recompute_scale_factor", True)
        super().__setstate__(state)

    def extra_repr(self) -> str:
        name = "size" if self.scale_factor is None else "scale_factor"
        return f"{name}={getattr(self, name)!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resize images by repeating the nearest pixel; deprecated in favour of `Upsample`.

    Args:
        size: size of the output: one integer, or height and width.
        scale_factor: factor of the sizes, instead of `size`.

    Shape:
        - Input: `(N, C, H, W)`.

    Examples:
        >>> nn.UpsamplingNearest2d(scale_factor=2)(torch.randn(1, 3, 4, 4)).shape
        torch.Size([1, 3, 8, 8])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Resize images by bilinear interpolation with aligned corners; deprecated in favour of `Upsample`.

    Args:
        size: size of the output: one integer, or height and width.
        scale_factor: factor of the sizes, instead of `size`.

    Shape:
        - Input: `(N, C, H, W)`.

    Examples:
        >>> nn.UpsamplingBilinear2d(scale_factor=2)(torch.tensor([[[[0.0, 3.0], [6.0, 9.0]]]]))
        tensor([[[[0., 1., 2., 3.],
                  [2., 3., 4., 5.],
                  [4., 5., 6., 7.],
                  [6., 7., 8., 9.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
