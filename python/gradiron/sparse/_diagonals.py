"""Sparse matrices from their diagonals."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import sparse_coo
from ._build import sparse_coo_tensor


def spdiags(diagonals: Tensor, offsets: Tensor, shape: tuple[int, int], layout: Any = None) -> Tensor:
    """Create a sparse matrix from its diagonals.

    The element `diagonals[i, j]` goes to column `j` of the diagonal `offsets[i]`; those outside of the matrix are
    dropped.

    Args:
        diagonals: matrix with one diagonal per row, or a single one.
        offsets: offset of each diagonal: 0 is the main one, positive ones lie above it.
        shape: shape of the result.
        layout: layout of the result; COO if `None`.

    Examples:
        >>> torch.sparse.spdiags(torch.tensor([1.0, 2.0, 3.0]), torch.tensor(1), (3, 3)).to_dense()
        tensor([[0., 2., 0.],
                [0., 0., 3.],
                [0., 0., 0.]])
    """
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
