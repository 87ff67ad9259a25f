"""Places of elements: from flat numbers, and of those that are not zero."""

from __future__ import annotations

from typing import Any

from . import _core
from ._core import Tensor


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Where elements lie along each dimension of `shape`, whose flat numbers are given."""
    if not isinstance(indices, Tensor):
        raise TypeError(f"expected 'indices' to be an integer tensor, but got {type(indices)}")
    if indices.is_floating_point() or indices.is_complex() or indices.dtype.itemsize == 0:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = [shape] if isinstance(shape, int) else list(shape)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
        if size < 0:
            raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    found, step = [], 1
    for size in reversed(sizes):
        found.append(indices.div(step, rounding_mode="floor") % size)
        step *= size
    return tuple(reversed(found))


def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The places of the first `size` elements that are not zero, and `fill_value` where there are fewer."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    found = _core.nonzero(input)[:size]
    return _core.cat([found, found.new_full((size - found.shape[0], input.dim()), fill_value)])
