"""Histograms of numbers and of points."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._core import Tensor
from .._types import named_result


def histogram(
    input: Tensor,
    bins: Any = 100,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Any = None,
) -> Any:
    """Compute a histogram of the elements of a tensor.

    The last bin includes its upper edge. Elements outside of the edges are not counted.

    Args:
        input: tensor, float32 or float64.
        bins: number of bins of equal width, or a vector of increasing edges. Default: `100`
        range: pair of the lowest and the highest edge; the extreme elements if `None`.
        weight: weight of each element.
        density: normalize so that the integral is 1. Default: `False`
        out: pair of tensors to write to.

    Returns:
        A named tuple `(hist, bin_edges)`.

    Examples:
        >>> torch.histogram(torch.tensor([1.0, 2.0, 1.0]), bins=2, range=(0.0, 4.0)).hist
        tensor([2., 1.])
    """
    if isinstance(bins, Tensor) and range is not None:
        raise TypeError("histogram() received an invalid combination of arguments: bins that are edges have no range")
    if out is not None:
        _check_targets(input, out)
    weights = None if weight is None else weight.reshape(-1)
    hist, edges = _counted(input.reshape(-1, 1), [bins], range, weights, density)
    if out is not None:
        made = [to.resize_(of.shape).copy_(of) for to, of in zip(out, (hist, edges[0]), strict=True)]
        return named_result("histogram_out", ("hist", "bin_edges"), tuple(made))
    return named_result("histogram", ("hist", "bin_edges"), (hist, edges[0]))


def _check_targets(input: Tensor, out: Any) -> None:
    """Refuses what the counts and the edges cannot be written to, before anything is."""
    if not isinstance(out, (tuple, list)):
        raise TypeError(
            "histogram() received an invalid combination of arguments - got "
            f"({type(input).__name__}, out={type(out).__name__}), but out= is a tuple of two tensors"
        )
    if len(out) != 2:
        raise TypeError(f"expected tuple of 2 elements but got {len(out)}")
    for at, (name, to) in enumerate(zip(("hist", "bin_edges"), out, strict=True)):
        if not isinstance(to, Tensor):
            raise TypeError(f"expected Tensor as element {at} in argument 5, but got {type(to).__name__}")
        if to.dtype != input.dtype:
            raise RuntimeError(
                f"torch.histogram: input tensor and {name} tensor should have the same dtype, but got input "
                f"{input.dtype._c_name} and {name} {to.dtype._c_name}"
            )
        if to.requires_grad:
            raise RuntimeError(
                "aten::histogram(): functions with out=... arguments don't support automatic differentiation, but one of the "
                "arguments requires grad."
            )


def histogramdd(input: Tensor, bins: Any, range: Any = None, weight: Tensor | None = None, density: bool = False) -> Any:
    """Compute a multi-dimensional histogram of points, the vectors along the last dimension.

    Args:
        input: tensor of shape `(..., n)`, float32 or float64.
        bins: number of bins, one number for each of the `n` dimensions, or a vector of edges for each.
        range: lowest and highest edge of each dimension, `2 * n` numbers; the extreme elements if `None`.
        weight: weight of each point.
        density: normalize so that the integral is 1. Default: `False`

    Returns:
        A named tuple `(hist, bin_edges)`.

    Examples:
        >>> points = torch.tensor([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
        >>> torch.histogramdd(points, bins=2).hist
        tensor([[1., 0.],
                [0., 2.]])
    """
    if input.dim() < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    size = input.shape[-1]
    if weight is not None and weight.shape != input.shape[:-1]:
        raise _unlike(input, weight)
    given = [bins] * size if isinstance(bins, int) else list(bins)
    if len(given) != size:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    weights = None if weight is None else weight.reshape(-1)
    hist, edges = _counted(input.reshape(-1, size), given, range, weights, density)
    return named_result("histogramdd", ("hist", "bin_edges"), (hist, tuple(edges)))


def _unlike(input: Tensor, weight: Tensor) -> RuntimeError:
    return RuntimeError(
        "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its "
        f"innermost dimension, but got input with shape {list(input.shape)} and weight with shape {list(weight.shape)}"
    )


def _counted(points: Tensor, bins: list[Any], limits: Any, weight: Tensor | None, density: bool) -> tuple[Tensor, list[Tensor]]:
    points = points.detach()
    count, size = points.shape
    if weight is not None:
        if weight.shape != (count,):
            raise _unlike(points, weight)
        if weight.dtype != points.dtype:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, "
                f"but got input({points.dtype._c_name}), and weight({weight.dtype._c_name})"
            )
    edges = _edges(points, bins, limits)
    if points.dtype not in (_core.float32, _core.float64):
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{points.dtype._scalar_name}'")
    shape = [len(line) - 1 for line in edges]
    inside = _core.ones(count, dtype=_core.bool, device=points.device)
    place = _core.zeros(count, dtype=_core.int64, device=points.device)
    for column, line in zip(points.unbind(1), edges, strict=True):
        inside &= (column >= line[0]) & (column <= line[-1])
        at = _core.searchsorted(line, column.contiguous(), right=True) - 1
        # The last bin includes its upper edge.
        place = place * (len(line) - 1) + at.clamp(0, len(line) - 2)
    given = _core.ones(count, dtype=points.dtype, device=points.device) if weight is None else weight.detach()
    hist = _core.zeros(math.prod(shape), dtype=points.dtype, device=points.device)
    hist = hist.index_add(0, place[inside], given[inside]).reshape(shape)
    if density:
        hist = hist / hist.sum()
        for dim, line in enumerate(edges):
            widths = line[1:] - line[:-1]
            hist = hist / widths.reshape([-1 if d == dim else 1 for d in range(size)])
    return hist, edges


def _edges(points: Tensor, bins: list[Any], limits: Any) -> list[Tensor]:
    if any(isinstance(b, Tensor) for b in bins):
        for at, line in enumerate(bins):
            _check_edges(points, line, at)
        return [line.detach().clone() for line in bins]
    for at, n in enumerate(bins):
        if n <= 0:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {n} for dimension {at}")
    size = points.shape[1]
    if limits is not None and len(limits) != 2 * size:
        raise RuntimeError(
            f"torch.histogramdd: for a {size}-dimensional histogram range should have {2 * size} elements, but got "
            f"{len(limits)}"
        )
    kind = points.dtype if points.is_floating_point() else None
    made = []
    for at, n in enumerate(bins):
        low, high = _range(points, at, limits)
        made.append(_core.linspace(low, high, n + 1, dtype=kind, device=points.device))
    return made


def _check_edges(points: Tensor, line: Tensor, at: int) -> None:
    if line.dim() != 1:
        raise RuntimeError(
            f"torch.histogramdd: bins tensor should have one dimension, but got {line.dim()} dimensions in the bins tensor for "
            f"dimension {at}"
        )
    if len(line) < 2:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got 0 for dimension {at}")
    if line.dtype != points.dtype:
        raise RuntimeError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
            f"{points.dtype._c_name} and bins for dimension {at} with dtype {line.dtype._c_name}"
        )


def _range(points: Tensor, at: int, limits: Any) -> tuple[float, float]:
    """The ends of the bins along a dimension: those given, or the points'."""
    low, high = 0.0, 1.0
    if limits is not None:
        low, high = float(limits[2 * at]), float(limits[2 * at + 1])
    elif len(points) and points.is_floating_point():
        low, high = points[:, at].min().item(), points[:, at].max().item()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histogramdd: dimension {at}'s range [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {at}")
    return (low - 0.5, high + 0.5) if low == high else (low, high)
