"""Interpolation of images, and sampling them at the positions of a grid."""

from __future__ import annotations

import warnings
from typing import Any

from .. import _core
from .._core import Tensor
from . import _pooling

_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
# The numbers of the interpolation rules in the core, without and with antialiasing.
_RULES = {"nearest": 0, "nearest-exact": 1, "linear": 2, "bilinear": 2, "trilinear": 2, "bicubic": 3}
_WIDE = {"bilinear": 4, "bicubic": 5, "lanczos": 6}
# The number of spatial dimensions of each mode.
_ALIGNED = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2, "lanczos": 2}


def _whole(n: Any) -> bool:
    return isinstance(n, int) or (isinstance(n, Tensor) and not n.is_floating_point())


def _per_dimension(input: Tensor, given: Any, what: str, called: str, letter: str) -> list[Any]:
    dims = input.dim() - 2
    if not isinstance(given, (list, tuple)):
        return [given] * dims
    if len(given) != dims:
        names = f"({letter}1, {letter}2, ...,{letter}K)"
        raise ValueError(
            f"Input and {what} must have the same number of spatial dimensions, but got input with spatial dimensions of "
            f"{list(input.shape[2:])} and {called} {given}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
            f"{'scale_factor' if letter == 's' else 'output size'} in {names} format."
        )
    return list(given)


def _sizes(
    input: Tensor, size: Any, scale_factor: Any, recomputed: bool | None, area: bool
) -> tuple[list[int] | None, list[float | None]]:
    """Return the requested sizes, or the factors."""
    dims = input.dim() - 2
    none: list[float | None] = [None] * max(dims, 0)
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is None:
        scales = [float(s) for s in _per_dimension(input, scale_factor, "scale_factor", "scale_factor of shape", "s")]
        if recomputed or area:
            return [int(n * s) for n, s in zip(input.shape[2:], scales, strict=True)], none
        return None, [*scales]
    size = _per_dimension(input, size, "output", "output size of", "o")
    if recomputed:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if not all(map(_whole, size)):
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size with "
            f"types {[type(n) for n in size]}"
        )
    return size, none


def _check_mode(input: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    rank, needed = input.dim(), _ALIGNED.get(mode, input.dim() - 2) + 2
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and rank == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    known = mode in _ALIGNED or mode in ("nearest", "nearest-exact", "area")
    if rank not in (3, 4, 5) or not known or (mode in ("bicubic", "lanczos") and rank != 4):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {rank}D) for the modes: {_MODES} (got {mode})"
        )
    if rank != needed:
        raise NotImplementedError(f"Got {rank}D input, but {mode} mode needs {needed}D input")
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize sequences, images or volumes to a size or by a factor, by interpolation.

    Give either `size` or `scale_factor`.

    Args:
        input: tensor `(N, C, L)`, `(N, C, H, W)` or `(N, C, D, H, W)`.
        size: size of the output: one integer, or one for each spatial dimension.
        scale_factor: factor of the sizes: one number, or one for each spatial dimension.
        mode: `"nearest"`, `"nearest-exact"`, `"area"`, `"linear"` (3D input), `"bilinear"`, `"bicubic"`, `"lanczos"`
            (4D) or `"trilinear"` (5D). Default: `"nearest"`
        align_corners: whether the corner elements of input and output coincide; only for the linear and cubic modes.
        recompute_scale_factor: whether to interpolate by the ratio of the rounded sizes instead of `scale_factor`.
        antialias: whether to smooth when the size shrinks; `"lanczos"` needs it. Default: `False`

    Raises:
        ValueError: if neither or both of `size` and `scale_factor` are given.
        NotImplementedError: if the mode does not fit the number of dimensions.

    Examples:
        >>> F.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
        >>> F.interpolate(torch.randn(1, 3, 4, 4), size=(6, 8), mode="bilinear").shape
        torch.Size([1, 3, 6, 8])
    """
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    size, scales = _sizes(input, size, scale_factor, recompute_scale_factor, mode == "area")
    _check_mode(input, mode, align_corners, antialias)
    dims = input.dim() - 2
    if mode == "area":
        return getattr(_pooling, f"adaptive_avg_pool{dims}d")(input, size)
    rule = (_WIDE if antialias else _RULES)[mode]
    return _core._nn._resample(input, rule, size, *[None] * (3 - dims), *scales, bool(align_corners))


_KERNELS = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


def _aligned(align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
            "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.",
            stacklevel=3,
        )
    return bool(align_corners)


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Sample images or volumes at the positions of a grid.

    Args:
        input: tensor `(N, C, H, W)` or `(N, C, D, H, W)`.
        grid: positions `(N, H_out, W_out, 2)` as `(x, y)`, or `(N, D_out, H_out, W_out, 3)` as `(x, y, z)`, from -1
            to 1.
        mode: interpolation: `"bilinear"`, `"nearest"` or `"bicubic"`. Default: `"bilinear"`
        padding_mode: values outside: `"zeros"`, `"border"` or `"reflection"`. Default: `"zeros"`
        align_corners: whether -1 and 1 are the centres of the corner pixels instead of their outer edges; the default
            is `False`, with a warning.

    Examples:
        >>> grid = torch.zeros(1, 2, 2, 2)
        >>> F.grid_sample(torch.ones(1, 1, 4, 4), grid, align_corners=False)
        tensor([[[[1., 1.],
                  [1., 1.]]]])
    """
    if mode not in _KERNELS:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    return _core.grid_sampler(input, grid, _KERNELS[mode], _PADDINGS[padding_mode], _aligned(align_corners))


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """Return the grid of positions that affine maps give, for `grid_sample`.

    Args:
        theta: affine matrices `(N, 2, 3)` for images, or `(N, 3, 4)` for volumes.
        size: size of the output: `(N, C, H, W)` or `(N, C, D, H, W)`.
        align_corners: whether -1 and 1 are the centres of the corner pixels instead of their outer edges; the default
            is `False`, with a warning.

    Examples:
        >>> identity = torch.eye(2, 3).unsqueeze(0)
        >>> F.affine_grid(identity, (1, 1, 4, 4), align_corners=False).shape
        torch.Size([1, 4, 4, 2])
    """
    aligned = _aligned(align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError(
            f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {size}."
        )
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {size}. Got {theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    if align_corners and 1 in size[2:]:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is not an "
            "intended use case of affine_grid. See the documentation of affine_grid for details.",
            stacklevel=2,
        )
    return _core.affine_grid_generator(theta, size, aligned)
