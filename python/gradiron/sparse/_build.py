"""Sparse tensors in coordinate format: made, looked at, brought in order, and made dense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor, dtype
from .._creation import layout as layout_type
from .._creation import sparse_coo, sparse_csr
from .._types import Size
from ._tensor import CompressedTensor, CooTensor, SparseTensor, expect, is_coo, layout_name, like, make


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: dtype | None = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """Create a sparse tensor in COO (coordinate) format.

    Values of equal indices are summed by `coalesce`.

    Args:
        indices: integer tensor of shape `(sparse_dim, nnz)`, with the coordinates of a value in each column. Without
            indices and values, a size alone makes an empty tensor.
        values: tensor of shape `(nnz, *dense_shape)`.
        size: shape of the result; the smallest possible if `None`.
        dtype: dtype of the values.
        device: device of the result.
        pin_memory: accepted for compatibility. Default: `False`
        requires_grad: whether the result requires a gradient. Default: `False`
        check_invariants: check the indices; `sparse.check_sparse_tensor_invariants` decides if `None`.
        is_coalesced: whether the indices are sorted and unique.

    Examples:
        >>> torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
        tensor([[0., 0., 3.],
                [4., 0., 0.]])
    """
    from . import check_sparse_tensor_invariants

    if (indices is None) == (size is None) if values is None else indices is None:
        raise TypeError("sparse_coo_tensor() needs indices and values, or the size of an empty tensor")
    if values is None:
        return empty(indices if size is None else size, dtype=dtype, device=device).requires_grad_(requires_grad)
    held = _core.make_tensor(values, dtype, device, False) if not isinstance(values, Tensor) else values.to(device, dtype)
    at = indices if isinstance(indices, Tensor) else _core.make_tensor(indices, _core.int64, held.device, False)
    at = at.detach().to(held.device, _core.int64)
    if held.dim() == 0 and at.dim() == 2:
        held = held.expand(at.shape[1])
    if at.dim() == 0:
        raise RuntimeError("indices must be sparse_dim x nnz, but got: []")
    checked = check_sparse_tensor_invariants.is_enabled() if check_invariants is None else check_invariants
    if size is None:
        size = _size_of(at, held)
    shape = Size(size)
    wide, deep = at.shape[0], held.dim() - 1
    if len(shape) != wide + deep:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(shape)}, sparse_dim = {wide}, "
            f"dense_dim = {deep}"
        )
    if at.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(at.shape)}")
    if at.shape[1] != held.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {at.shape[1]}, nnz from values: {held.shape[0]}"
        )
    if tuple(held.shape[1:]) != shape[wide:]:
        expected = [held.shape[0], *shape[wide:]]
        raise RuntimeError(f"values has incorrect size, expected {expected}, got {list(held.shape)}")
    if checked:
        _check_places(at, shape)
    if requires_grad:
        held = held.detach().requires_grad_()
    elif held is values and held.requires_grad:
        held = held.view_as(held)  # A leaf of values makes no leaf.
    return make(at, held, shape, held.shape[0] < 2 if is_coalesced is None else is_coalesced)


def empty(size: Any, dtype: Any = None, device: Any = None, dense_dim: int = 0) -> CooTensor:
    """Nothing but zeros."""
    size = Size(size)
    wide = len(size) - dense_dim
    at = _core.empty([wide, 0], dtype=_core.int64, device=device)
    return make(at, _core.empty([0, *size[wide:]], dtype=dtype, device=device), size, True)


def new(self: Tensor, *args: Any, device: Any = None, size: Any = None) -> Tensor:
    """`Tensor.new`, the former constructor: of a size, or of indices and values."""
    place = self.device if device is None else device
    if not args and size is not None:
        args = (Size(size),)
    if len(args) in (2, 3) and all(isinstance(arg, Tensor) for arg in args[:2]):
        at, held = args[:2]
        return sparse_coo_tensor(at, held, *args[2:], dtype=held.dtype, device=place)
    if all(isinstance(arg, int) for arg in args):
        return empty(args or (0,), self.dtype, place)
    if len(args) == 1 and isinstance(args[0], Size):
        return empty(args[0], self.dtype, place)
    if len(args) == 1 and isinstance(args[0], (tuple, list)) and all(isinstance(n, int) for n in args[0]):
        raise TypeError(
            "SparseTensor.new(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or construct a strided "
            "tensor and convert it to sparse via to_sparse."
        )
    given = ", ".join(type(arg).__name__ for arg in args)
    raise TypeError(f"new() received an invalid combination of arguments - got ({given})")


def _size_of(at: Tensor, held: Tensor) -> list[int]:
    if at.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(at.shape)}")
    if at.shape[1] == 0:
        return [0] * at.shape[0] + list(held.shape[1:])
    for d, least in enumerate(at.amin(1).tolist()):
        if least < 0:
            raise RuntimeError(f"found negative index {least} for dim {d}")
    return [top + 1 for top in at.amax(1).tolist()] + list(held.shape[1:])


def _check_places(at: Tensor, size: Sequence[int]) -> None:
    if at.shape[1] == 0:
        return
    for d, (least, top) in enumerate(zip(at.amin(1).tolist(), at.amax(1).tolist(), strict=True)):
        if least < 0:
            raise RuntimeError(f"found negative index {least} for dim {d}")
        if top >= size[d]:
            raise RuntimeError(f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index {top}")


def from_dense(x: Tensor, sparse_dim: int | None = None, *, layout: Any = None, **rest: Any) -> Tensor:
    """The elements of a tensor that are not zero, in coordinate format; of its first `sparse_dim` dimensions."""
    if isinstance(sparse_dim, layout_type):
        layout, sparse_dim = sparse_dim, None
    if layout is not None and not isinstance(layout, layout_type):
        raise TypeError(f"to_sparse(): argument 'layout' must be torch.layout, not {type(layout).__name__}")
    if any(value is not None for name, value in rest.items() if name != "dense_dim"):
        raise NotImplementedError("to_sparse: gradiron has no layouts of blocks")
    if layout is not None and layout != sparse_coo:
        from . import _compressed, _layouts

        _layouts.check("to_sparse", layout)
        return (_compressed.to_csr if layout == sparse_csr else _compressed.to_csc)(x, rest.get("dense_dim"))
    if isinstance(x, SparseTensor) and not is_coo(x):
        from . import _compressed

        found: Tensor = _compressed.to_coo(x)
        return found
    if rest.get("dense_dim") is not None:
        raise NotImplementedError("to_sparse: in coordinates `sparse_dim` says how many dimensions are stored densely")
    if is_coo(x):
        if sparse_dim not in (None, x._at.shape[0]):  # type: ignore[attr-defined]
            raise RuntimeError(
                "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported"
            )
        return x
    wide = x.dim() if sparse_dim is None else sparse_dim
    if not (0 < wide <= x.dim() or wide == x.dim() == 0):
        raise IndexError(f"sparse_dim must be between 1 and {x.dim()}, but got {wide}")
    there = (x.detach() != 0).reshape(*x.shape[:wide], -1).any(-1) if wide < x.dim() else x.detach() != 0
    at = there.nonzero().t().contiguous()
    return make(at, x[tuple(at)] if wide else x.reshape(1)[: at.shape[1]], x.shape, True)


def indices(x: Any) -> Tensor:
    x = expect(x, "indices")
    if not x._in_order:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return x._at


def values(x: Any) -> Tensor:
    if not is_coo(x):
        raise RuntimeError(f"values expected sparse tensor layout but got {layout_name(x)}")
    if not x._in_order:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    held: Tensor = x._held
    return held


def sparse_dim(x: Any) -> int:
    return x._at.shape[0] if is_coo(x) else 0


def dense_dim(x: Any) -> int:
    return x._held.dim() - 1 if is_coo(x) else x.dim()


def is_coalesced(x: Any) -> bool:
    return expect(x, "is_coalesced")._in_order


def place_keys(x: CooTensor, dims: Sequence[int] | None = None) -> Tensor:
    """A number for each element, by its place in some sparse dimensions."""
    rows = range(x._at.shape[0]) if dims is None else dims
    key = _core.zeros(x._at.shape[1:], dtype=_core.int64, device=x.device)
    for d in rows:
        key = key * x.shape[d] + x._at[d]
    return key


def coalesce(x: Any) -> CooTensor:
    """Sorted by place, the values of one place summed."""
    x = expect(x, "coalesce")
    if x._in_order:
        return x
    if x._at.shape[1] < 2:
        return make(x._at, x._held, x.shape, True)
    keys, group = _core.unique(place_keys(x), return_inverse=True)
    rows = []
    for n in x.shape[: x._at.shape[0]][::-1]:
        rows.append(keys % max(n, 1))
        keys = keys // max(n, 1)
    return make(_core.stack(rows[::-1]), summed(x._held, group, rows[0].shape[0]), x.shape, True)


def summed(values: Tensor, group: Tensor, count: int) -> Tensor:
    """The sum of the values of each group."""
    if values.dtype is _core.bool:
        return summed(values.to(_core.uint8), group, count) != 0
    return _core.zeros([count, *values.shape[1:]], dtype=values.dtype, device=values.device).index_add(0, group, values)


def to_dense(x: Any, dtype: Any = None, *, masked_grad: Any = None) -> Tensor:
    """The tensor with its zeros."""
    if not is_coo(x):
        dense: Tensor = x
        return dense if dtype is None else dense.to(dtype)
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    count = 1
    for n in x.shape[: x._at.shape[0]]:
        count *= n
    return summed(x._held, place_keys(x), count).reshape(x.shape)


def sparse_mask(x: Any, mask: Any) -> Tensor:
    """The elements of `x` where a sparse tensor has any."""
    if isinstance(mask, CompressedTensor):
        from . import _compressed

        return _compressed.sparse_mask(x, mask)
    mask = expect(mask, "sparse_mask")
    if x.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(x.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    if is_coo(x):
        return like(mask, to_dense(x)[tuple(mask._at)])
    return like(mask, x[tuple(mask._at)])
