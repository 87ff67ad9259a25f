"""Numerical derivatives of sampled functions."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor


def gradient(input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Estimate the gradient of a sampled function by central differences.

    Args:
        input: samples of the function on a grid.
        spacing: distance of the samples, one per dimension, or vectors of coordinates. Default: `1`
        dim: dimension or dimensions to differentiate along; all if `None`.
        edge_order: 1 or 2, order of the one-sided differences at the boundary. Default: `1`

    Returns:
        A tuple with the estimated derivative along each dimension.

    Examples:
        >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0, 16.0]))
        (tensor([3., 4., 6., 7.]),)
    """
    spacing = 1 if spacing is None else spacing
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if input.dtype == _core.uint8:
        raise NotImplementedError("torch.gradient does not support uint8 input.")
    count = input.dim()
    if dim is None:
        dims = list(range(count))
    else:
        dims = [_existing(d, count) for d in ([dim] if isinstance(dim, int) else dim)]
    for at, d in enumerate(dims):
        if d in dims[:at]:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    steps = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    if len(steps) != len(dims) and dim is None:
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
            f"'self.dim() = {count}', since dim argument was not given, but got a list of length {len(steps)}"
        )
    if len(steps) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same "
            f"length, but got a spacing argument of length {len(steps)} and a dim argument of length {len(dims)}."
        )
    for step in steps:
        if isinstance(step, Tensor) and step.dim() != 1:
            raise RuntimeError(
                f"torch.gradient expected each element of spacing to have one dimension, but got an element with {step.dim()} "
                "dimensions!"
            )
    if any(input.shape[d] <= edge_order for d in dims):
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple(_slopes(input, d, step, edge_order) for d, step in zip(dims, steps, strict=True))


def _existing(dim: int, count: int) -> int:
    if not -count <= dim < count:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})")
    return dim % count


def _slopes(x: Tensor, dim: int, step: Any, edge_order: int) -> Tensor:
    n = x.shape[dim]

    def part(start: int, length: int) -> Tensor:
        return x.narrow(dim, start, length)

    if not isinstance(step, Tensor):
        inner = (part(2, n - 2) - part(0, n - 2)) / (2 * step)
        if edge_order == 1:
            ends = (part(1, 1) - part(0, 1)) / step, (part(n - 1, 1) - part(n - 2, 1)) / step
        else:
            ends = (
                (-1.5 * part(0, 1) + 2 * part(1, 1) - 0.5 * part(2, 1)) / step,
                (1.5 * part(n - 1, 1) - 2 * part(n - 2, 1) + 0.5 * part(n - 3, 1)) / step,
            )
        return _core.cat([ends[0], inner, ends[1]], dim)
    gaps = step[1:] - step[:-1]
    shape = [1] * x.dim()
    shape[dim] = -1
    before, after = gaps[:-1].reshape(shape), gaps[1:].reshape(shape)
    both = before + after
    inner = (
        -after / (before * both) * part(0, n - 2)
        + (after - before) / (before * after) * part(1, n - 2)
        + before / (after * both) * part(2, n - 2)
    )
    if edge_order == 1:
        ends = (part(1, 1) - part(0, 1)) / gaps[0], (part(n - 1, 1) - part(n - 2, 1)) / gaps[-1]
    else:
        last = _end(part(n - 1, 1), part(n - 2, 1), part(n - 3, 1), gaps[-1], gaps[-2])
        ends = _end(part(0, 1), part(1, 1), part(2, 1), gaps[0], gaps[1]), -last
    return _core.cat([ends[0], inner, ends[1]], dim)


def _end(first: Tensor, second: Tensor, third: Tensor, near: Tensor, far: Tensor) -> Tensor:
    """The slope of the parabola through three points at the first of them."""
    both = near + far
    return -(near + both) / (near * both) * first + both / (near * far) * second - near / (far * both) * third
