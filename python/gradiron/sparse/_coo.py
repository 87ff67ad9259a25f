"""Tensors in coordinate format: where the elements are that may differ from zero, and their values.

The indices and the values are ordinary tensors, so that everything here is a composition of ordinary operators: derivatives of
every order, and the GPU's part, come from theirs. To the core it is a tensor without memory, of the right shape and dtype, and
every function that is called with it comes to `__torch_function__`: what is not in `FUNCTIONS` raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from .._core import Tensor, dtype
from .._creation import sparse_coo
from .._tensor import parse_to
from .._types import Size
from ..overrides import prepare

FUNCTIONS: dict[str, Callable[..., Any]] = {}

# What the tensor without memory knows itself.
_OF_SHAPE = frozenset(
    """shape size dim ndim ndimension numel nelement __len__ __hash__ dtype itemsize element_size is_floating_point is_complex
    is_signed is_same_size""".split()
)
# Operators of Python's, by the functions that they are.
_OPERATORS = {
    "__add__": "add",
    "__sub__": "sub",
    "__mul__": "mul",
    "__truediv__": "div",
    "__floordiv__": "floor_divide",
    "__matmul__": "matmul",
    "__pow__": "pow",
    "__neg__": "neg",
    "__abs__": "abs",
    "__iadd__": "add_",
    "__isub__": "sub_",
    "__imul__": "mul_",
    "__itruediv__": "div_",
}
_TURNED = {"__rsub__": "sub", "__rmul__": "mul", "__rtruediv__": "div", "__rmatmul__": "matmul"}


def _of_values(name: str, doc: str) -> Any:
    return property(lambda self: getattr(self._held, name), doc=doc)


class SparseTensor(Tensor):
    """A tensor in coordinate format; `sparse_coo_tensor` and `Tensor.to_sparse` make one."""

    _at: Tensor  # sparse_dim x nnz
    _held: Tensor  # nnz x the dense dimensions
    _in_order: bool

    layout = sparse_coo
    is_sparse = True
    _is_more_than_its_core = True  # Functions that save one keep the object.

    device = _of_values("device", "Where the values are.")
    is_cuda = _of_values("is_cuda", "Whether the values are on the GPU.")
    is_cpu = _of_values("is_cpu", "Whether the values are in host memory.")
    is_meta = _of_values("is_meta", "Whether there are no values.")
    grad_fn = _of_values("grad_fn", "The node that made the values.")
    is_leaf = _of_values("is_leaf", "Whether nothing was recorded that made the values.")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not all(issubclass(kind, (SparseTensor, Tensor)) for kind in types):
            return NotImplemented
        name: str = getattr(func, "__name__", str(func))
        if name == "__get__":
            name = func.__self__.__name__
        if name in _OF_SHAPE:
            return _core._disabled_torch_function_impl(func, types, args, kwargs or {})
        if name in _TURNED:
            name, args = _TURNED[name], args[::-1]
        name = _OPERATORS.get(name, name)
        known = FUNCTIONS.get(name)
        if known is not None:
            return known(*args, **(kwargs or {}))
        if name in _EACH:
            # Zero stays zero, so that only the values change, once each place has one.
            (x,) = args
            x = coalesce(x)
            return _like(x, getattr(_core, name)(x._held))
        raise _unsupported(name, args)

    @property
    def requires_grad(self) -> bool:
        return self._held.requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self._held.requires_grad_(wanted)

    @property
    def grad(self) -> Tensor | None:
        grad = self._held.grad
        return None if grad is None else make(self._at, grad, self.shape, self._in_order)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        self._held.grad = None if value is None else _expect(value, "grad")._held

    @property  # type: ignore[misc]
    def data(self) -> SparseTensor:  # type: ignore[override]
        return _like(self, self._held.detach())

    @property
    def T(self) -> SparseTensor:
        return _permute(self, tuple(range(self.dim()))[::-1])

    @property
    def mT(self) -> SparseTensor:
        return _transpose(self, -2, -1)

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        """Says whether the places are sorted and each is there once; nobody looks."""
        self._in_order = coalesced
        return self

    def __radd__(self, other: Any) -> Tensor:
        # Unlike elsewhere, what stands first matters.
        return _add(other, self)

    def __iter__(self) -> Any:
        return iter(_unbind(self))

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        from .._tensor_str import sparse_str

        return sparse_str(self)

    __str__ = __repr__  # type: ignore[assignment]
    __format__ = object.__format__  # type: ignore[assignment]

    def __deepcopy__(self, memo: dict[int, Any]) -> SparseTensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."
            )
        if id(self) not in memo:
            copied = self._held.detach().clone().requires_grad_(self.requires_grad)
            memo[id(self)] = make(self._at.clone(), copied, self.shape, self._in_order)
        made: SparseTensor = memo[id(self)]
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        from .._utils import _rebuild_sparse_tensor

        return _rebuild_sparse_tensor, (self.layout, (self._at, self._held.detach(), self.shape, self._in_order))


_asking = False


def make(indices: Tensor, values: Tensor, size: Sequence[int], in_order: bool = False) -> SparseTensor:
    """A sparse tensor of indices and values; `in_order` if they are sorted, and no two are of one place."""
    global _asking
    if not _asking:
        prepare(SparseTensor)
        _core.expect_overrides(True)
        _asking = True
    made = _core.make_subclass(SparseTensor, _core.empty(list(size), dtype=values.dtype, device="meta"), False)
    made._at, made._held, made._in_order = indices, values, in_order
    return made


def _like(x: SparseTensor, values: Tensor) -> SparseTensor:
    """Other values at the same places."""
    return make(x._at, values, x.shape, x._in_order)


def is_coo(x: Any) -> bool:
    return isinstance(x, SparseTensor)


def _unsupported(name: str, args: Any) -> NotImplementedError:
    flat = [b for a in args for b in (a if isinstance(a, (list, tuple)) else (a,))]
    backend = "SparseCUDA" if any(is_coo(a) and a.is_cuda for a in flat) else "SparseCPU"
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{backend}' backend. It is not there for sparse tensors: "
        "use `to_dense()` first"
    )


def _expect(x: Any, name: str) -> SparseTensor:
    if not is_coo(x):
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got Strided")
    found: SparseTensor = x
    return found


# --- making ---


def sparse_coo_tensor(
    indices: Any,
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
    """A tensor of the values at their indices, one column each, that is zero elsewhere. Values of one place are summed."""
    from . import check_sparse_tensor_invariants

    if values is None and size is None:
        return _empty(indices, dtype=dtype, device=device).requires_grad_(requires_grad)
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
    return make(at, held, shape, bool(is_coalesced))


def _empty(size: Any, dtype: Any = None, device: Any = None) -> SparseTensor:
    size = Size(size)
    at = _core.empty([len(size), 0], dtype=_core.int64, device=device)
    return make(at, _core.empty([0], dtype=dtype, device=device), size, True)


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
    if isinstance(sparse_dim, type(sparse_coo)):
        layout, sparse_dim = sparse_dim, None
    if layout not in (None, sparse_coo) or any(value is not None for value in rest.values()):
        raise NotImplementedError(f"to_sparse: gradiron has the layout torch.sparse_coo only, not {layout}")
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


# --- looking ---


def indices(x: Any) -> Tensor:
    x = _expect(x, "indices")
    if not x._in_order:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return x._at


def values(x: Any) -> Tensor:
    if not is_coo(x):
        raise RuntimeError("values expected sparse tensor layout but got Strided")
    if not x._in_order:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    held: Tensor = x._held
    return held


def sparse_dim(x: Any) -> int:
    return x._at.shape[0] if is_coo(x) else 0


def dense_dim(x: Any) -> int:
    return x._held.dim() - 1 if is_coo(x) else x.dim()


def is_coalesced(x: Any) -> bool:
    return _expect(x, "is_coalesced")._in_order


def _keys(x: SparseTensor, dims: Sequence[int] | None = None) -> Tensor:
    """A number for each element, by its place in some sparse dimensions."""
    rows = range(x._at.shape[0]) if dims is None else dims
    key = _core.zeros(x._at.shape[1:], dtype=_core.int64, device=x.device)
    for d in rows:
        key = key * x.shape[d] + x._at[d]
    return key


def coalesce(x: Any) -> SparseTensor:
    """Sorted by place, the values of one place summed."""
    x = _expect(x, "coalesce")
    if x._in_order:
        return x
    if x._at.shape[1] < 2:
        return make(x._at, x._held, x.shape, True)
    keys, group = _core.unique(_keys(x), return_inverse=True)
    rows = []
    for n in x.shape[: x._at.shape[0]][::-1]:
        rows.append(keys % max(n, 1))
        keys = keys // max(n, 1)
    return make(_core.stack(rows[::-1]), _summed(x._held, group, rows[0].shape[0]), x.shape, True)


def _summed(values: Tensor, group: Tensor, count: int) -> Tensor:
    """The sum of the values of each group."""
    if values.dtype is _core.bool:
        return _summed(values.to(_core.uint8), group, count) != 0
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
    return _summed(x._held, _keys(x), count).reshape(x.shape)


# --- the same values elsewhere ---


def _permute(x: SparseTensor, *dims: Any) -> SparseTensor:
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


def _transpose(x: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    order = list(range(x.dim()))
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return _permute(x, order)


def _t(x: SparseTensor) -> SparseTensor:
    if x.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {x.dim()}D")
    return _permute(x, list(range(x.dim()))[::-1])


def _unsqueeze(x: SparseTensor, dim: int) -> SparseTensor:
    dim = dim % (x.dim() + 1)
    size = [*x.shape[:dim], 1, *x.shape[dim:]]
    wide = x._at.shape[0]
    if dim > wide:
        return make(x._at, x._held.unsqueeze(dim - wide + 1), size, x._in_order)
    row = _core.zeros([1, x._at.shape[1]], dtype=_core.int64, device=x.device)
    return make(_core.cat([x._at[:dim], row, x._at[dim:]]), x._held, size, x._in_order)


def _select(x: SparseTensor, dim: int, index: int) -> Tensor:
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


def _unbind(x: SparseTensor, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(_select(x, dim, i) for i in range(x.shape[dim]))


def _index_select(x: SparseTensor, dim: int, index: Tensor) -> Tensor:
    dim = dim % x.dim()
    size = list(x.shape)
    size[dim] = index.numel()
    wide = x._at.shape[0]
    if dim >= wide:
        return make(x._at, x._held.index_select(dim - wide + 1, index), size, x._in_order)
    where, entry = _pairs(index, x._at[dim], x.shape[dim])
    at = x._at.index_select(1, entry)
    at = _core.cat([at[:dim], where.unsqueeze(0), at[dim + 1 :]])
    return coalesce(make(at, x._held.index_select(0, entry), size))


def _getitem(x: SparseTensor, index: Any) -> Tensor:
    for i in index if isinstance(index, tuple) else (index,):
        if not isinstance(i, int) and i is not ... and i != slice(None):
            raise _unsupported("index.Tensor" if isinstance(i, (Tensor, list)) else "as_strided", (x,))
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


def _cat(tensors: Any, dim: int = 0) -> SparseTensor:
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


def _stack(tensors: Any, dim: int = 0) -> SparseTensor:
    return _cat([_unsqueeze(_expect(x, "stack"), dim) for x in tensors], dim)


def _pairs(left: Tensor, right: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Where the numbers of two lists, all below `size`, are equal: the places in one and in the other."""
    counts = _core.bincount(right, minlength=size)
    per = counts.index_select(0, left)
    where = _core.repeat_interleave(_core.arange(left.shape[0], device=left.device), per)
    ends = per.cumsum(0)
    nth = _core.arange(where.shape[0], device=left.device) - (ends - per).index_select(0, where)
    starts = counts.cumsum(0) - counts
    order = right.argsort(stable=True)
    return where, order.index_select(0, starts.index_select(0, left).index_select(0, where) + nth)


# --- values ---


def _is_number(x: Any) -> bool:
    return not isinstance(x, Tensor) or (not is_coo(x) and x.dim() == 0)


def _add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    if not is_coo(input):
        dense: Tensor = input
        if not isinstance(dense, Tensor):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        return _core.add(dense, to_dense(other), alpha=alpha)
    if not is_coo(other):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if input.shape != other.shape:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(input.shape)} != {list(other.shape)}"
        )
    if input._at.shape[0] != other._at.shape[0]:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same number of sparse dimensions, but {sparse_dim(input)} != "
            f"{sparse_dim(other)}"
        )
    kind = _core.promote_types(input.dtype, other.dtype)
    held = other._held.to(kind)
    held = held if alpha == 1 else held * alpha
    both = _core.cat([input._held.to(kind), held])
    return coalesce(make(_core.cat([input._at, other._at], 1), both, input.shape))


def _sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    return _add(input, other, alpha=-alpha)


def _mul(input: Any, other: Any) -> Tensor:
    if not is_coo(input):
        input, other = other, input
    if _is_number(other):
        return _like(input, input._held * other)
    if input.shape != other.shape:
        raise RuntimeError(
            f"mul: expected 'self' and 'other' to have same sizes when mul is not broadcasting, but {list(input.shape)} != "
            f"{list(other.shape)}"
        )
    if not is_coo(other):
        return _like(input, input._held * other[tuple(input._at)])
    input, other = coalesce(input), coalesce(other)
    # Both are sorted: the places that they share.
    mine, theirs = _keys(input), _keys(other)
    if theirs.shape[0] == 0:
        shared = at = theirs
    else:
        at = _core.searchsorted(theirs, mine).clamp(max=theirs.shape[0] - 1)
        shared = (theirs.index_select(0, at) == mine).nonzero().reshape(-1)
        at = at.index_select(0, shared)
    held = input._held.index_select(0, shared) * other._held.index_select(0, at)
    return make(input._at.index_select(1, shared), held, input.shape, True)


def _div(input: Any, other: Any, *, rounding_mode: Any = None) -> Tensor:
    if not is_coo(input):
        if not isinstance(input, Tensor):
            raise _unsupported("reciprocal", (other,))
    if not _is_number(other):
        raise RuntimeError(
            f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {list(other.shape)} for divisor)"
        )
    if rounding_mode is not None:
        input = coalesce(input)
    return _like(input, _core.div(input._held, other, rounding_mode=rounding_mode))


def _pow(input: Any, exponent: Any) -> Tensor:
    if not is_coo(input) or isinstance(exponent, Tensor):
        raise _unsupported("pow.Tensor_Tensor", (input, exponent))
    if exponent == 0:
        raise RuntimeError("pow: a sparse tensor to the power of 0 is not sparse: use `to_dense()` first")
    input = coalesce(input)
    return _like(input, input._held**exponent)


def _sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    x = _expect(input, "coalesce")
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
    """Softmax of a sparse tensor: what is not there counts as minus infinity."""
    x = coalesce(input)
    held = x._held if dtype is None else x._held.to(dtype)
    dim = dim % x.dim()
    wide = x._at.shape[0]
    if dim >= wide:
        made = (_core.log_softmax if log else _core.softmax)(held, dim - wide + 1)
        return _like(x, made)
    if held.shape[0] == 0:
        return _like(x, held)
    _, group = _core.unique(_keys(x, [d for d in range(wide) if d != dim]), return_inverse=True)
    count = x._at.shape[1]
    place = group.reshape(-1, *[1] * (held.dim() - 1)).expand_as(held)
    top = _core.zeros_like(held.detach()).scatter_reduce(0, place, held.detach(), "amax", include_self=False)
    shifted = held - top.index_select(0, group)
    powers = shifted.exp()
    total = _summed(powers, group, count).index_select(0, group)
    return _like(x, shifted - total.log() if log else powers / total)


def _norm(input: SparseTensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    if dim is not None:
        raise RuntimeError("norm_sparse currently does not support dim reductions")
    return _core.norm(coalesce(input)._held, 2 if p == "fro" else p)


# --- products ---


def _product(a: SparseTensor, b: Tensor, what: str) -> Tensor:
    """A sparse matrix times the rows of a dense one."""
    if a.dtype != b.dtype:
        names = [str(x.dtype).removeprefix("torch.").replace("float64", "Double").replace("float32", "Float") for x in (a, b)]
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}")
    if a._at.shape[0] != 2 or a._held.dim() != 1:
        raise RuntimeError(
            f"{what}: expected a matrix with two sparse dimensions, but got {sparse_dim(a)} and {dense_dim(a)} dense"
        )
    rows, columns = a._at[0], a._at[1]
    return _summed(a._held.unsqueeze(1) * b.index_select(0, columns), rows, a.shape[0])


def _check_matrices(a: Any, b: Any) -> None:
    for place, x in (("1", a), ("2", b)):
        if x.dim() != 2:
            raise RuntimeError(f"mm: Expected argument {place} to be a matrix, but got {x.dim()}D tensor")
    if a.shape[1] != b.shape[0]:
        if is_coo(a) != is_coo(b):
            raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {a.shape[1]}, got {b.shape[0]}")
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )


def matmul(input: Any, other: Any) -> Tensor:
    """`mm`, or the product of a matrix and a vector."""
    if not isinstance(other, Tensor):
        return NotImplemented
    if input.dim() == 2 and other.dim() == 1:
        return _mv(input, other)
    if input.dim() == 1 and other.dim() == 2:
        return _mv(_transposed(other), input)
    if max(input.dim(), other.dim()) > 2:
        raise RuntimeError("expand is unsupported for Sparse tensors")
    return mm(input, other)


def mm(input: Any, mat2: Any) -> Tensor:
    """The product of two matrices of which one is sparse, or both: sparse then."""
    for name, given in (("input", input), ("mat2", mat2)):
        if not isinstance(given, Tensor):
            raise TypeError(f"mm(): argument '{name}' must be Tensor, not {type(given).__name__}")
    if not is_coo(input) and not is_coo(mat2):
        return _core.mm(input, mat2)
    _check_matrices(input, mat2)
    if not is_coo(mat2):
        return _product(input, mat2, "mm")
    if not is_coo(input):
        return _product(_t(mat2), input.t(), "mm").t()
    a: Any = input
    b: Any = mat2
    one, other = _pairs(a._at[1], b._at[0], b.shape[0])
    at = _core.stack([a._at[0].index_select(0, one), b._at[1].index_select(0, other)])
    held = a._held.index_select(0, one) * b._held.index_select(0, other)
    return coalesce(make(at, held, [a.shape[0], b.shape[1]]))


spmm = dsmm = mm


def _transposed(x: Any) -> Any:
    return _t(x) if is_coo(x) else x.t()


def _mv(input: Any, vec: Tensor) -> Tensor:
    if is_coo(vec):
        raise _unsupported("mv", (vec,))
    if input.dim() != 2 or vec.dim() != 1:
        raise RuntimeError(f"mv: two dim tensor 'self' should be 2D and 'vec' 1D, but got {input.dim()}D and {vec.dim()}D")
    if input.shape[1] != vec.shape[0]:
        raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
    if not is_coo(input):
        return _core.mv(input, vec)
    return _product(input, vec.unsqueeze(1), "mv").squeeze(1)


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * input + alpha * mat1 @ mat2`, of which `mat1` may be sparse."""
    made = mm(mat1, mat2)
    made = made if alpha == 1 else made * alpha
    if beta == 0:
        return made
    return _add(input if beta == 1 else input * beta, made)


def _linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    made = mm(input, _transposed(weight))
    return made if bias is None else made + bias


# --- the rest of what a tensor has ---


def _to(x: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
    kind, place, copy, _ = parse_to(args, kwargs)
    held = _core.convert(x._held, kind, place, copy)
    at = _core.convert(x._at, None, place, copy)
    return x if held is x._held and at is x._at else make(at, held, x.shape, x._in_order)


def _cast(name: str) -> Callable[..., Any]:
    def convert(x: SparseTensor, memory_format: Any = None) -> SparseTensor:
        return _to(x, getattr(_core, name))

    return convert


def _cuda(x: SparseTensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> SparseTensor:
    return _to(x, "cuda:0" if device is None else device)


def _type(x: SparseTensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    if dtype is None:
        name = x._held.detach().type().rpartition(".")
        return f"{name[0]}.sparse.{name[2]}"
    kind = getattr(dtype, "dtype", dtype)
    return _to(x, kind)


def _requires_grad_(x: SparseTensor, requires_grad: bool = True) -> SparseTensor:
    x._held.requires_grad_(requires_grad)
    return x


def _detach_(x: SparseTensor) -> SparseTensor:
    x._held = x._held.detach()
    return x


def _copied(x: SparseTensor, memory_format: Any = None) -> SparseTensor:
    return make(x._at.clone(), x._held.clone(), x.shape, x._in_order)


def _replaced(x: Any, other: Any) -> SparseTensor:
    """The object `x` with the contents of another."""
    if x._held.requires_grad and x._held.is_leaf and _core.is_grad_enabled():
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    x._at, x._held, x._in_order = other._at, other._held.to(x.device, x.dtype), other._in_order
    kept: SparseTensor = x
    return kept


def _copy_(x: Any, src: Any, non_blocking: bool = False) -> SparseTensor:
    if not is_coo(x) or not is_coo(src):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented! Found self type = "
                           f"{x.type()} and src type = {src.type()}")  # fmt: skip
    if x.shape != src.shape:
        raise RuntimeError(f"copy_(): sizes of the sparse tensors differ: {list(x.shape)} and {list(src.shape)}")
    return _replaced(x, _copied(src))


def _zero_(x: SparseTensor) -> SparseTensor:
    nothing = make(x._at[:, :0], x._held.detach()[:0], x.shape, True)
    return _replaced(x, nothing)


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def write(x: Any, other: Any, **kwargs: Any) -> Any:
        if is_coo(x) and _is_number(other) and function in (_mul, _div):
            # Who shares the values sees it.
            (x._held.mul_ if function is _mul else x._held.div_)(other, **kwargs)
            return x
        made = function(x, other, **kwargs)
        return _replaced(x, made) if is_coo(x) else x.copy_(made)

    return write


def _zeros_like(x: SparseTensor, *, dtype: Any = None, layout: Any = None, device: Any = None, **rest: Any) -> Tensor:
    kind, place = dtype or x.dtype, device or x.device
    if layout not in (None, sparse_coo):
        return _core.zeros(list(x.shape), dtype=kind, device=place)
    deep = list(x._held.shape[1:])
    at = _core.empty([x._at.shape[0], 0], dtype=_core.int64, device=place)
    return make(at, _core.empty([0, *deep], dtype=kind, device=place), x.shape, True)


def sparse_mask(x: Any, mask: Any) -> Tensor:
    """The elements of `x` where a sparse tensor has any."""
    mask = _expect(mask, "sparse_mask")
    if x.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(x.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    if is_coo(x):
        return _like(mask, to_dense(x)[tuple(mask._at)])
    return _like(mask, x[tuple(mask._at)])


def _refuse(kind: type[Exception], text: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise kind(text)

    return refuse


def _bool(x: SparseTensor) -> bool:
    if x.numel() > 1:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(to_dense(x))


def _item(x: SparseTensor) -> Any:
    if x.numel() != 1:
        raise RuntimeError(f"a Tensor with {x.numel()} elements cannot be converted to Scalar")
    return to_dense(x).item()


_no_storage = _refuse(NotImplementedError, "Cannot access storage of SparseTensorImpl")
_no_pointer = _refuse(RuntimeError, "Cannot access data pointer of Tensor that doesn't have storage")
_no_array = _refuse(TypeError, "can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")
_no_shape = _refuse(RuntimeError, "reshape is not implemented for sparse tensors")

FUNCTIONS.update(
    {
        "indices": indices,
        "values": values,
        "_indices": lambda x: x._at,
        "_values": lambda x: x._held,
        "_nnz": lambda x: x._at.shape[1],
        "sparse_dim": sparse_dim,
        "dense_dim": dense_dim,
        "is_coalesced": is_coalesced,
        "coalesce": coalesce,
        "to_dense": to_dense,
        "to_sparse": from_dense,
        "to_sparse_coo": from_dense,
        "sparse_mask": sparse_mask,
        "permute": _permute,
        "transpose": _transpose,
        "swapaxes": _transpose,
        "t": _t,
        "unsqueeze": _unsqueeze,
        "select": _select,
        "__getitem__": _getitem,
        "index_select": _index_select,
        "unbind": _unbind,
        "cat": _cat,
        "concat": _cat,
        "stack": _stack,
        "add": _add,
        "add_": _in_place(_add),
        "sub": _sub,
        "sub_": _in_place(_sub),
        "mul": _mul,
        "multiply": _mul,
        "mul_": _in_place(_mul),
        "div": _div,
        "true_divide": _div,
        "div_": _in_place(_div),
        "floor_divide": lambda x, other: _div(x, other, rounding_mode="floor"),
        "pow": _pow,
        "sum": _sum,
        "norm": _norm,
        "any": lambda x: coalesce(x)._held.any(),
        "mm": mm,
        "matmul": matmul,
        "mv": _mv,
        "addmm": addmm,
        "linear": _linear,
        "to": _to,
        "cpu": lambda x, memory_format=None: _to(x, "cpu"),
        "cuda": _cuda,
        "type": _type,
        "type_as": lambda x, other: _to(x, other.dtype),
        "get_device": lambda x: x._held.get_device(),
        "is_pinned": lambda x, device=None: False,
        "pin_memory": lambda x, device=None: x,
        "is_inference": lambda x: x._held.is_inference(),
        "requires_grad_": _requires_grad_,
        "detach": lambda x: _like(x, x._held.detach()),
        "detach_": _detach_,
        "clone": _copied,
        "copy_": _copy_,
        "zero_": _zero_,
        "zeros_like": _zeros_like,
        "empty_like": _zeros_like,
        "new_zeros": lambda x, *size, dtype=None, device=None: _empty(
            size[0] if len(size) == 1 and not isinstance(size[0], int) else size, dtype or x.dtype, device or x.device
        ),
        "register_hook": lambda x, hook: x._held.register_hook(lambda g: _hooked(x, hook, g)),
        "is_contiguous": lambda x, memory_format=None: False,
        "contiguous": _refuse(RuntimeError, "unsupported memory format option Contiguous"),
        "storage_offset": lambda x: 0,
        "stride": lambda x, dim=None: (0,) * x.dim() if dim is None else 0,
        "__bool__": _bool,
        "item": _item,
        "numpy": _no_array,
        "__array__": _no_array,
        "data_ptr": _no_pointer,
        "tolist": _no_pointer,
        "apply_": _no_pointer,
        "storage": _no_storage,
        "untyped_storage": _no_storage,
        "share_memory_": _no_storage,
        "reshape": _no_shape,
        "flatten": _no_shape,
        "einsum": _no_shape,
        "expand": _refuse(RuntimeError, "expand is unsupported for Sparse tensors"),
        **{
            name: _cast(kind)
            for name, kind in {
                "float": "float32",
                "double": "float64",
                "half": "float16",
                "bfloat16": "bfloat16",
                "int": "int32",
                "long": "int64",
                "short": "int16",
                "char": "int8",
                "byte": "uint8",
                "bool": "bool",
                "cfloat": "complex64",
                "cdouble": "complex128",
            }.items()
        },
    }
)

# Functions of each element that leave zero as it is.
_EACH = frozenset(
    """abs absolute asin arcsin asinh arcsinh atan arctan atanh arctanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan
    isneginf isposinf log1p neg negative positive rad2deg relu round sgn sign signbit sin sinh sqrt tan tanh trunc
    fix""".split()
)


def _hooked(x: SparseTensor, hook: Callable[[Any], Any], grad: Tensor) -> Any:
    made = hook(_like(x, grad))
    return made._held if is_coo(made) else made
