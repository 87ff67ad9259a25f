"""Sparse matrices of diagonals."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import sparse_coo
from ._build import sparse_coo_tensor


def spdiags(diagonals: Tensor, offsets: Tensor, shape: tuple[int, int], layout: Any = None) -> Tensor:
    """A sparse matrix with these rows as its diagonals: element `j` of one stands in column `j`."""
    from . import _layouts

    lines = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    shifts = offsets.reshape(1) if offsets.dim() == 0 else offsets
    if lines.dim() != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if shifts.dim() != 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if lines.shape[0] != shifts.shape[0]:
        raise RuntimeError(f"Number of diagonals ({lines.shape[0]}) does not match the number of offsets ({shifts.shape[0]})")
    if shifts.unique().numel() != shifts.numel():
        raise RuntimeError("Offset tensor contains duplicate values")
    if layout is not None:
        _layouts.check("spdiags", layout)
    columns = _core.arange(lines.shape[1], device=lines.device).expand(lines.shape)
    rows = columns - shifts.unsqueeze(1)
    inside = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    made = sparse_coo_tensor(_core.stack([rows[inside], columns[inside]]), lines[inside], shape)
    return made if layout in (None, sparse_coo) else made.coalesce().to_sparse(layout=layout)
