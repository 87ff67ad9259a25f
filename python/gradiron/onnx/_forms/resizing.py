"""Images of other sizes, and sampling at points."""

from __future__ import annotations

from typing import Any

import gradiron

from ...nn.functional import interpolate
from .._table import form
from .._writer import Value, Writer
from .layers import each_of
from .pooling import adaptive, along_last

__all__: list[str] = []

_KINDS = {
    "nearest": "nearest",
    "nearest-exact": "nearest",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "bicubic": "cubic",
}


@form("interpolate", "upsample")
def _interpolate(
    g: Writer,
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    spatial = input.ndim - 2
    if mode == "area":
        return adaptive(g, "Average", spatial, input, list(g.shape[2:]))
    if antialias:
        return _antialiased(g, input, spatial, mode, align_corners)
    options: dict[str, Any] = {"mode": _KINDS[mode]}
    if mode == "nearest":
        options.update(coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    elif mode == "nearest-exact":
        options.update(coordinate_transformation_mode="half_pixel", nearest_mode="round_prefer_ceil")
    else:
        options["coordinate_transformation_mode"] = "align_corners" if align_corners else "half_pixel"
        options["cubic_coeff_a"] = -0.75 if mode == "bicubic" else None
    if size is None and not recompute_scale_factor:
        scales = [1.0, 1.0, *(float(each) for each in each_of(scale_factor, spatial))]
        return g.Resize(input, None, g.constant(gradiron.tensor(scales)), **options)
    if size is None:
        known = list(g.shape[2:])
        if None in known:
            g.refuse("recompute_scale_factor needs known sizes.")
        size = known
    sizes = [*g.shape_of(input)[:2], *each_of(size, spatial)]
    return g.Resize(input, None, None, [each if isinstance(each, Value) else int(each) for each in sizes], **options)


def _antialiased(g: Writer, input: Any, spatial: int, mode: str, align_corners: bool | None) -> Any:
    """Products with the matrices that resize vectors, as ONNX filters otherwise."""
    sizes, wanted = input.shape[-spatial:], g.shape[-spatial:]
    if None in (*sizes, *wanted):
        g.refuse("With antialias, the sizes have to be known.")
    matrices = [
        interpolate(gradiron.eye(size).reshape(size, 1, size, 1), (count, 1), None, mode, align_corners, antialias=True)
        for size, count in zip(sizes, wanted, strict=True)
    ]
    return along_last(g, input, input.ndim, [matrix[:, 0, :, 0].to(input.dtype) for matrix in matrices])


_SAMPLES = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}


@form("grid_sample")
def _grid_sample(
    g: Writer,
    input: Any,
    grid: Any,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:
    g.need(16 if input.ndim == 4 else 20)
    kind = _SAMPLES[mode] if g.opset >= 20 else mode
    return g.GridSample(input, grid, mode=kind, padding_mode=padding_mode, align_corners=int(bool(align_corners)))


@form("affine_grid")
def _affine_grid(g: Writer, theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    g.need(20)
    return g.AffineGrid(theta, list(size), align_corners=int(bool(align_corners)))
