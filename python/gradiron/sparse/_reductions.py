"""Sum, softmax and norm of sparse COO tensors."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from ._build import coalesce, place_keys, summed
from ._tensor import CooTensor, expect, like, make


def reduce_sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    x = expect(input, "coalesce")
    held = x._held if dtype is None else x._held.to(dtype)
    if dim is None or dim == ():
        return held.sum()
    dims = sorted({d % x.dim() for d in ([dim] if isinstance(dim, int) else dim)})
    wide = x._at.shape[0]
    kept = [d for d in range(wide) if d not in dims]
    deep = [d - wide + 1 for d in dims if d >= wide]
    held = held.sum(deep) if deep else held
    if keepdim:
        raise NotImplementedError("sum: keepdim=True is not supported for sparse tensors")
    if not kept:
        return held.sum(0)
    size = [n for d, n in enumerate(x.shape) if d not in dims]
    if len(kept) == wide:
        return make(x._at, held, size, x._in_order)
    return coalesce(make(_core.stack([x._at[d] for d in kept]), held, size))


def softmax(input: Any, dim: int, *, dtype: Any = None, log: bool = False) -> Tensor:
    """Apply softmax to a sparse tensor, whose unspecified elements count as negative infinity."""
    x = coalesce(input)
    held = x._held if dtype is None else x._held.to(dtype)
    dim = dim % x.dim()
    wide = x._at.shape[0]
    if dim >= wide:
        made = (_core.log_softmax if log else _core.softmax)(held, dim - wide + 1)
        return like(x, made)
    if held.shape[0] == 0:
        return like(x, held)
    _, group = _core.unique(place_keys(x, [d for d in range(wide) if d != dim]), return_inverse=True)
    count = x._at.shape[1]
    place = group.reshape(-1, *[1] * (held.dim() - 1)).expand_as(held)
    top = _core.zeros_like(held.detach()).scatter_reduce(0, place, held.detach(), "amax", include_self=False)
    shifted = held - top.index_select(0, group)
    powers = shifted.exp()
    total = summed(powers, group, count).index_select(0, group)
    return like(x, shifted - total.log() if log else powers / total)


def norm(input: CooTensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    if dim is not None:
        raise RuntimeError("norm_sparse currently does not support dim reductions")
    return _core.norm(coalesce(input)._held, 2 if p == "fro" else p)
