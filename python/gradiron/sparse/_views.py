"""Sparse tensors in coordinate format: the same values elsewhere."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from ._build import coalesce
from ._tensor import CooTensor, expect, is_coo, make, unsupported


def permute(x: CooTensor, *dims: Any) -> CooTensor:
    order = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    order = [d % x.dim() for d in order]
    wide = x._at.shape[0]
    if sorted(order) != list(range(x.dim())):
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering "
            f"of dimensions i.e. input.dim() = {x.dim()} is not equal to len(dims) = {len(order)}"
        )
    if sorted(order[:wide]) != list(range(wide)):
        raise NotImplementedError("transposing sparse dimensions with dense ones is not supported: use `to_dense()` first")
    at = _core.stack([x._at[d] for d in order[:wide]]) if wide else x._at
    held = x._held.permute(0, *(1 + d - wide for d in order[wide:]))
    return make(at, held, [x.shape[d] for d in order], x._in_order and order[:wide] == list(range(wide)))


def transpose(x: CooTensor, dim0: int, dim1: int) -> CooTensor:
    order = list(range(x.dim()))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return permute(x, order)


def t(x: CooTensor) -> CooTensor:
    if x.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {x.dim()}D")
    return permute(x, list(range(x.dim()))[::-1])


def unsqueeze(x: CooTensor, dim: int) -> CooTensor:
    dim = dim % (x.dim() + 1)
    size = [*x.shape[:dim], 1, *x.shape[dim:]]
    wide = x._at.shape[0]
    if dim > wide:
        return make(x._at, x._held.unsqueeze(dim - wide + 1), size, x._in_order)
    row = _core.zeros([1, x._at.shape[1]], dtype=_core.int64, device=x.device)
    return make(_core.cat([x._at[:dim], row, x._at[dim:]]), x._held, size, x._in_order)


def select(x: CooTensor, dim: int, index: int) -> Tensor:
    dim = dim % x.dim()
    if not -x.shape[dim] <= index < x.shape[dim]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(x.shape)} at dimension {dim}")
    index %= x.shape[dim]
    size = [n for d, n in enumerate(x.shape) if d != dim]
    wide = x._at.shape[0]
    if dim >= wide:
        return make(x._at, x._held.select(dim - wide + 1, index), size, x._in_order)
    chosen = (x._at[dim] == index).nonzero().reshape(-1)
    held = x._held.index_select(0, chosen)
    if wide == 1:
        return held.sum(0)
    at = _core.cat([x._at[:dim], x._at[dim + 1 :]]).index_select(1, chosen)
    return make(at, held, size, x._in_order)


def unbind(x: CooTensor, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(select(x, dim, i) for i in range(x.shape[dim]))


def index_select(x: CooTensor, dim: int, index: Tensor) -> Tensor:
    dim = dim % x.dim()
    size = list(x.shape)
    size[dim] = index.numel()
    wide = x._at.shape[0]
    if dim >= wide:
        return make(x._at, x._held.index_select(dim - wide + 1, index), size, x._in_order)
    where, entry = pairs(index, x._at[dim], x.shape[dim])
    at = x._at.index_select(1, entry)
    at = _core.cat([at[:dim], where.unsqueeze(0), at[dim + 1 :]])
    return coalesce(make(at, x._held.index_select(0, entry), size))


def getitem(x: CooTensor, index: Any) -> Tensor:
    for i in index if isinstance(index, tuple) else (index,):
        if not isinstance(i, int) and i is not ... and i != slice(None):
            raise unsupported("index.Tensor" if isinstance(i, (Tensor, list)) else "as_strided", (x,))
    parts = list(index) if isinstance(index, tuple) else [index]
    if ... in parts:
        at = parts.index(...)
        parts[at : at + 1] = [slice(None)] * (x.dim() - len(parts) + 1)
    if len(parts) > x.dim():
        raise IndexError(f"too many indices for tensor of dimension {x.dim()}")
    dim = 0
    found: Any = x
    for part in parts:
        if isinstance(part, int):
            found = found.select(dim, part)
        else:
            dim += 1
    return found


def cat(tensors: Any, dim: int = 0) -> CooTensor:
    if not all(map(is_coo, tensors)):
        raise RuntimeError("cat: sparse and dense tensors cannot be concatenated: use `to_dense()` or `to_sparse()` first")
    first = tensors[0]
    dim = dim % first.dim()
    wide = first._at.shape[0]
    size = list(first.shape)
    if dim >= wide:
        raise NotImplementedError("concatenation in a dense dimension of sparse tensors is not supported")
    at, size[dim] = [], 0
    for i, x in enumerate(tensors):
        if x._at.shape[0] != wide or [n for d, n in enumerate(x.shape) if d != dim] != [
            n for d, n in enumerate(size) if d != dim
        ]:
            raise RuntimeError(
                f"All tensors must have the same shape: {list(first.shape)} (except in the concatenating dimension), but found "
                f"shape: {list(x.shape)} at position {i}"
            )
        shift = _core.zeros([wide, 1], dtype=_core.int64, device=x.device)
        shift[dim] = size[dim]
        at.append(x._at + shift)
        size[dim] += x.shape[dim]
    return make(_core.cat(at, 1), _core.cat([x._held for x in tensors]), size, dim == 0 and all(x._in_order for x in tensors))


def stack(tensors: Any, dim: int = 0) -> CooTensor:
    return cat([unsqueeze(expect(x, "stack"), dim) for x in tensors], dim)


def pairs(left: Tensor, right: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Where the numbers of two lists, all below `size`, are equal: the places in one and in the other."""
    counts = _core.bincount(right, minlength=size)
    per = counts.index_select(0, left)
    where = _core.repeat_interleave(_core.arange(left.shape[0], device=left.device), per)
    ends = per.cumsum(0)
    nth = _core.arange(where.shape[0], device=left.device) - (ends - per).index_select(0, where)
    starts = counts.cumsum(0) - counts
    order = right.argsort(stable=True)
    return where, order.index_select(0, starts.index_select(0, left).index_select(0, where) + nth)
