"""How sparse tensors come back from pickles."""

from __future__ import annotations

from typing import Any

from .._core import Tensor
from ._build import sparse_coo_tensor
from ._compressed import sparse_compressed_tensor


def rebuild(layout: Any, data: Any) -> Tensor:
    if layout in ("sparse_csr", "sparse_csc"):
        return sparse_compressed_tensor(*data, layout=layout, check_invariants=True)
    if layout != "sparse_coo":
        raise NotImplementedError(f"rebuilding sparse tensor for layout {layout}")
    # Files of old days do not say whether the places are in order.
    indices, values, size, *in_order = data
    return sparse_coo_tensor(indices, values, size, check_invariants=True, is_coalesced=bool(in_order and in_order[0]))
