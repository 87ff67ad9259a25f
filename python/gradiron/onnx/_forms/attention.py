"""Attention."""

from __future__ import annotations

import math
from typing import Any

import gradiron

from ..._core import Tensor
from .._table import form
from .._writer import Value, Writer
from .shapes import swapped

__all__: list[str] = []


def _causal(g: Writer, queries: Any, keys: Any) -> Any:
    """The mask that is true where a query may see a key: none sees a later one."""
    if isinstance(queries, int) and isinstance(keys, int):
        return gradiron.ones(queries, keys, dtype=gradiron.bool).tril()
    rows, columns = (g.Range(*(g.cast(each, gradiron.int64) for each in (0, size, 1))) for size in (queries, keys))
    return g.GreaterOrEqual(g.unsqueeze(rows, 1), g.unsqueeze(columns, 0), dtype=gradiron.bool)


def _may_hide_all(mask: Any) -> bool:
    """Whether a mask may hide all keys from a query."""
    if not isinstance(mask, Tensor):
        return mask is not None
    hidden = ~mask if mask.dtype == gradiron.bool else mask == -math.inf
    return bool(hidden.all(-1).any())


def _repeated(g: Writer, x: Any, groups: int) -> Value:
    """Each head of keys or values for several heads of queries."""
    rank, sizes = x.ndim, g.shape_of(x)
    wide = g.Expand(g.unsqueeze(x, rank - 2), [*([1] * (rank - 2)), groups, 1, 1])
    return g.reshape(wide, [*sizes[:-3], -1, *sizes[-2:]])


@form("scaled_dot_product_attention")
def _scaled_dot_product_attention(
    g: Writer,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    rank, dtype = key.ndim, query.dtype
    masks = [attn_mask] if attn_mask is not None else []
    if is_causal:
        masks.append(_causal(g, g.size(query, -2), g.size(key, -2)))
    if scale is None:
        features = g.size(query, -1)
        scale = 1 / math.sqrt(features) if isinstance(features, int) else None
    factor = g.Reciprocal(g.Sqrt(g.cast(g.size(query, -1), dtype))) if scale is None else scale
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        if query.shape[-3] is None or key.shape[-3] is None:
            g.refuse("The number of heads is dynamic.")
        groups = query.shape[-3] // key.shape[-3]
        key, value = _repeated(g, key, groups), _repeated(g, value, groups)
    scores = g.MatMul(g.Mul(query, factor), swapped(g, key, rank, -1, -2))
    for mask in masks:
        if mask.dtype == gradiron.bool:
            mask = g.Where(mask, g.cast(0.0, dtype), g.cast(-math.inf, dtype), dtype=dtype)
        scores = g.Add(scores, g.cast(mask, dtype))
    weights = g.Softmax(scores, axis=-1)
    if _may_hide_all(attn_mask):
        # A query that sees no key gets zeros rather than no numbers.
        hidden = g.Equal(g.reduce("ReduceMax", scores, [-1], True), g.cast(-math.inf, dtype), dtype=gradiron.bool)
        weights = g.Where(hidden, g.cast(0.0, dtype), weights, dtype=dtype)
    if dropout_p > 0:
        weights = g.Dropout(weights, g.cast(dropout_p, gradiron.float32), g.cast(True, gradiron.bool))
    return g.MatMul(weights, value)
