"""`all_reduce` and its sisters, as functions with gradients."""

from __future__ import annotations

from .. import _group

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]

all_gather = all_reduce = all_to_all = all_to_all_single = broadcast = gather = reduce = reduce_scatter = scatter = _group
