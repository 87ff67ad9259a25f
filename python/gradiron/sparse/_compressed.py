"""Sparse matrices compressed by rows or by columns (CSR, CSC): what they have of their own. The rest is left to coordinates."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor, dtype
from .._creation import sparse_coo, sparse_csc, sparse_csr
from .._types import Size
from . import _arithmetic as arithmetic
from . import _products as products
from ._build import coalesce, to_dense
from ._tensor import CompressedTensor, CooTensor, SparseTensor, compressed, is_coo, layout_name, make, unsupported

# What the parts are called: of rows that follow each other, and of columns.
_PARTS = {sparse_csr: ("crow_indices", "col_indices", "row"), sparse_csc: ("ccol_indices", "row_indices", "column")}


def is_compressed(x: Any) -> bool:
    return isinstance(x, CompressedTensor)


# --- making ---


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Create a sparse matrix in CSR or CSC layout.

    Args:
        compressed_indices: position in `values` at which each row (CSR) or column (CSC) starts, and the end.
        plain_indices: column (CSR) or row (CSC) of each value.
        values: values.
        size: shape of the result; the smallest possible if `None`.
        dtype: dtype of the values.
        layout: `torch.sparse_csr` or `torch.sparse_csc`.
        device: device of the result.
        pin_memory: accepted for compatibility. Default: `False`
        requires_grad: whether the result requires a gradient. Default: `False`
        check_invariants: check the indices; `sparse.check_sparse_tensor_invariants` decides if `None`.

    Examples:
        >>> torch.sparse_compressed_tensor([0, 1, 2], [1, 0], [3.0, 4.0], layout=torch.sparse_csr).to_dense()
        tensor([[0., 3.],
                [4., 0.]])
    """
    from . import check_sparse_tensor_invariants
    from ._layouts import check

    if layout is None:
        raise RuntimeError("expected sparse compressed tensor layout but got Strided")
    check("sparse_compressed_tensor", layout)
    if layout not in _PARTS:
        raise RuntimeError("expected sparse compressed tensor layout but got Sparse")
    held = _core.make_tensor(values, dtype, device, False) if not isinstance(values, Tensor) else values.to(device, dtype)
    starts, across = (
        (x if isinstance(x, Tensor) else _core.make_tensor(x, _core.int64, held.device, False)).detach().to(held.device)
        for x in (compressed_indices, plain_indices)
    )
    for x in (starts, across):
        if x.dtype not in (_core.int32, _core.int64):
            raise RuntimeError(
                f"{_PARTS[layout][0]} and {_PARTS[layout][1]} must be an int32 or int64 type, but got: {x.dtype}"
            )
    if starts.dim() != 1 or across.dim() != 1:
        raise NotImplementedError("sparse_compressed_tensor: gradiron has no batches of sparse matrices")
    by_row = layout == sparse_csr
    if size is None:
        wide = int(across.amax()) + 1 if across.numel() else 0
        lines = max(starts.shape[0] - 1, 0)
        size = [*((lines, wide) if by_row else (wide, lines)), *held.shape[1:]]
    shape = Size(size)
    if check_sparse_tensor_invariants.is_enabled() if check_invariants is None else check_invariants:
        _check(layout, starts, across, held, shape)
    if requires_grad:
        held = held.detach().requires_grad_()
    elif held is values and held.requires_grad:
        held = held.view_as(held)  # A leaf of values makes no leaf.
    return compressed(layout, starts, across, held, shape)


def sparse_csr_tensor(crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **options: Any) -> Tensor:
    """Create a sparse matrix in CSR (compressed sparse row) format.

    Args:
        crow_indices: position in `values` at which each row starts, and the end.
        col_indices: column of each value.
        values: values.
        size: shape of the result; the smallest possible if `None`.
        options: further arguments of `sparse_compressed_tensor`.

    Examples:
        >>> torch.sparse_csr_tensor([0, 1, 2], [1, 0], [3.0, 4.0]).to_dense()
        tensor([[0., 3.],
                [4., 0.]])
    """
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, layout=_own(sparse_csr, options), **options)


def sparse_csc_tensor(ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **options: Any) -> Tensor:
    """Create a sparse matrix in CSC (compressed sparse column) format.

    Args:
        ccol_indices: position in `values` at which each column starts, and the end.
        row_indices: row of each value.
        values: values.
        size: shape of the result; the smallest possible if `None`.
        options: further arguments of `sparse_compressed_tensor`.

    Examples:
        >>> torch.sparse_csc_tensor([0, 1, 2], [1, 0], [3.0, 4.0]).to_dense()
        tensor([[0., 4.],
                [3., 0.]])
    """
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, layout=_own(sparse_csc, options), **options)


def _own(layout: Any, options: dict[str, Any]) -> Any:
    told = options.pop("layout", layout)
    if told != layout:
        raise RuntimeError(f"{layout} layout must be {layout} but got {told}")
    return layout


def empty(layout: Any, size: Any, dtype: Any = None, device: Any = None) -> CompressedTensor:
    """Nothing but zeros."""
    size = Size(size)
    if len(size) != 2:
        if len(size) < 2:
            raise RuntimeError(
                f"torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size {list(size)}"
            )
        raise NotImplementedError("gradiron has no batches of sparse matrices")
    starts = _core.zeros(size[0 if layout == sparse_csr else 1] + 1, dtype=_core.int64, device=device)
    across = _core.empty(0, dtype=_core.int64, device=device)
    return compressed(layout, starts, across, _core.empty(0, dtype=dtype, device=device), size)


def _check(layout: Any, starts: Tensor, across: Tensor, held: Tensor, shape: Size) -> None:
    first, other, _ = _PARTS[layout]
    by_row = layout == sparse_csr
    lines, wide = (shape[0], shape[1]) if by_row else (shape[1], shape[0])
    count = "ncols" if by_row else "nrows"
    if starts.shape[0] != lines + 1:
        raise RuntimeError(
            f"{first}.shape[-1] must be equal to the number of {'rows' if by_row else 'columns'} + 1 (that is {lines + 1}), "
            f"but got {starts.shape[0]}"
        )
    if across.shape[0] != held.shape[0]:
        raise RuntimeError(
            f"number of elements in {other} and values must be equal, but got {across.shape[0]}, {held.shape[0]}"
        )
    steps = starts.diff()
    conditions = {
        f"`{first}[..., 0] == 0`": starts[0] == 0,
        f"`{first}[..., -1] == nnz`": starts[-1] == across.shape[0],
        f"`0 <= {first}[..., 1:] - {first}[..., :-1] <= {count}`": ((steps >= 0) & (steps <= wide)).all(),
        f"`0 <= {other} < {count}`": ((across >= 0) & (across < wide)).all(),
    }
    for text, holds in conditions.items():
        if not holds:
            raise RuntimeError(f"{text} is not satisfied.")
    lines_of = _repeated(steps)
    if not ((across.diff() > 0) | (lines_of.diff() > 0)).all():
        raise RuntimeError(
            f"`{other}[..., {first}[..., i - 1]:{first}[..., i]] for all i = 1, ..., {'nrows' if by_row else 'ncols'} are "
            "sorted and distinct along the last dimension values` is not satisfied."
        )


# --- looking ---


def starts(x: CompressedTensor, layout: Any) -> Tensor:
    """Where each row or column begins."""
    return _part(x, layout, 0, x._starts)


def across(x: CompressedTensor, layout: Any) -> Tensor:
    """In which column or row each value is."""
    return _part(x, layout, 1, x._across)


def _part(x: CompressedTensor, layout: Any, at: int, part: Tensor) -> Tensor:
    if x.layout != layout:
        raise RuntimeError(_expected(_PARTS[layout][at], layout, x))
    return part


def _expected(name: str, layout: Any, x: Any) -> str:
    return f"{name} expected sparse {_PARTS[layout][2]} compressed tensor layout but got {layout_name(x)}"


def only(name: str) -> Any:
    """The method `name` of other tensors: it is for compressed ones."""
    layout = next(layout for layout, parts in _PARTS.items() if name in parts)

    def method(self: Tensor) -> Any:
        raise RuntimeError(_expected(name, layout, self))

    method.__doc__ = "Of compressed sparse tensors only."
    return method


def _repeated(steps: Tensor) -> Tensor:
    return _core.repeat_interleave(_core.arange(steps.shape[0], device=steps.device), steps)


# --- other layouts ---


def to_coo(x: Any) -> Any:
    """The same in coordinates. (Others are what they are.)"""
    if not is_compressed(x):
        return x
    if x._lines is None:
        x._lines = _repeated(x._starts.diff().to(_core.int64))
    across = x._across.to(_core.int64)
    if x.layout == sparse_csr:
        return make(_core.stack([x._lines, across]), x._held, x.shape, True)
    return make(_core.stack([across, x._lines]), x._held, x.shape)


def _to(layout: Any, x: Any, dense_dim: int | None) -> CompressedTensor:
    if is_compressed(x) and x.layout == layout:
        found: CompressedTensor = x
        return found
    if x.dim() < 2:
        raise IndexError(f"to_{str.__str__(layout)}: a matrix is expected, but got a tensor of size {list(x.shape)}")
    if x.dim() - (dense_dim or (x.dense_dim() if isinstance(x, SparseTensor) else 0)) != 2:
        raise NotImplementedError(f"to_{str.__str__(layout)}: gradiron has no batches of sparse matrices")
    coo = to_coo(x) if isinstance(x, SparseTensor) else x.to_sparse(2)
    if layout == sparse_csc:
        # Sorted by columns.
        coo = coo.transpose(0, 1)
    coo = coalesce(coo)
    starts = _convert_indices_from_coo_to_csr(coo._at[0], coo.shape[0])
    return compressed(layout, starts, coo._at[1], coo._held, x.shape, coo._at[0])


def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Where each of `size` rows begins in a sorted list of them, and where the last one ends."""
    counts = _core.bincount(input, minlength=size)
    return _core.cat([counts.new_zeros(1), counts.cumsum(0)]).to(_core.int32 if out_int32 else _core.int64)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """The row and the column of each value."""
    lines = _repeated(crow_indices.diff().to(_core.int64))
    both = (col_indices, lines) if transpose else (lines, col_indices)
    return _core.stack([x.to(_core.int32 if out_int32 else _core.int64) for x in both])


def to_csr(x: Any, dense_dim: int | None = None) -> CompressedTensor:
    """The same, compressed by rows."""
    return _to(sparse_csr, x, dense_dim)


def to_csc(x: Any, dense_dim: int | None = None) -> CompressedTensor:
    """The same, compressed by columns."""
    return _to(sparse_csc, x, dense_dim)


def transpose(x: CompressedTensor, dim0: int = 0, dim1: int = 1) -> CompressedTensor:
    """What were rows are columns."""
    dims = {dim0 % x.dim(), dim1 % x.dim()}
    if dims == {0} or dims == {1}:
        return x
    if dims != {0, 1}:
        raise NotImplementedError("transposing sparse dimensions with dense ones is not supported: use `to_dense()` first")
    layout = sparse_csc if x.layout == sparse_csr else sparse_csr
    return compressed(layout, x._starts, x._across, x._held, [x.shape[1], x.shape[0], *x.shape[2:]], x._lines)


def _back(made: Any, *given: Any) -> Any:
    """What coordinates made of compressed tensors, compressed as the first of them."""
    layout = next((x.layout for x in given if is_compressed(x)), sparse_coo)
    return _to(layout, made, None) if is_coo(made) and layout != sparse_coo else made


# --- values ---


def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """The sum of two sparse matrices, or of a sparse and a dense one."""
    for x in (input, other):
        if arithmetic.is_number(x):
            raise RuntimeError(
                "add: expected 'self' and 'other' to have same size, but self has size [] while other has size "
                f"{list((other if x is input else input).shape)} (FYI: op2-sparse addition does not currently support "
                "broadcasting)"
            )
    if not isinstance(input, SparseTensor):
        return _core.add(input, to_dense(to_coo(other)), alpha=alpha)
    if not isinstance(other, SparseTensor):
        return _core.add(to_dense(to_coo(input)), other, alpha=alpha)
    made: Tensor = _back(arithmetic.add(to_coo(input), to_coo(other), alpha=alpha), input, other)
    return made


def mul(input: Any, other: Any) -> Tensor:
    """The product of the elements."""
    if arithmetic.is_number(other) or arithmetic.is_number(input):
        x, number = (input, other) if arithmetic.is_number(other) else (other, input)
        scaled: Tensor = x._with(x._held * number)
        return scaled
    if input.shape != other.shape:
        x, mask = (input, other) if is_compressed(other) else (other, input)
        raise _no_mask(x, mask)
    made: Tensor = _back(arithmetic.mul(to_coo(input), to_coo(other)), input, other)
    return made


def _no_mask(x: Any, mask: Any) -> RuntimeError:
    return RuntimeError(
        f"sparse_mask(): operands have incompatible sizes; self has size {list(x.shape)} but mask has size {list(mask.shape)}"
    )


def _check_leaf(x: CompressedTensor) -> None:
    if x._held.requires_grad and x._held.is_leaf and _core.is_grad_enabled():
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def _write(x: CompressedTensor, other: CompressedTensor) -> CompressedTensor:
    _check_leaf(x)
    if x.layout != other.layout:
        other = _to(x.layout, other, None)
    x._starts, x._across, x._lines, x._held = other._starts, other._across, other._lines, other._held.to(x.device, x.dtype)
    return x


def mul_(x: Any, other: Any) -> Any:
    """The product, in place."""
    if not is_compressed(x):
        raise unsupported("mul_", (other,))
    if arithmetic.is_number(other):
        x._held.mul_(other)
        return x
    return _write(x, mul(x, other))  # type: ignore[arg-type]


def fill_(x: CompressedTensor, value: Any) -> CompressedTensor:
    """Sets the values that are there."""
    x._held.fill_(value)
    return x


def zero_(x: CompressedTensor) -> CompressedTensor:
    """Takes all values out."""
    return _write(x, empty(x.layout, x.shape, x.dtype, x.device))


def copy_(x: Any, src: Any, non_blocking: bool = False) -> Any:
    """Takes over another's values and places."""
    if not is_compressed(x) or not is_compressed(src):
        raise RuntimeError(
            f"copy of {layout_name(src)} to {layout_name(x)} is not supported: copy_() needs tensors of the same layout"
        )
    if x.shape != src.shape:
        raise RuntimeError(f"copy_(): sizes of the sparse tensors differ: {list(x.shape)} and {list(src.shape)}")
    return _write(x, src.clone())


def sparse_mask(x: Any, mask: Any) -> Any:
    """The elements of `x` where a sparse tensor has any."""
    if not is_compressed(mask):
        return to_coo(x).sparse_mask(mask)
    if x.shape != mask.shape:
        raise _no_mask(x, mask)
    return mask._with(to_dense(to_coo(x))[tuple(to_coo(mask)._at)])


def reduce_sum(x: CompressedTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of all, of each row or of each column."""
    held = x._held if dtype is None else x._held.to(dtype)
    if dim is None or dim == ():
        return held.sum()
    if not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    coo = to_coo(x)
    dims = {d % x.dim() for d in ([dim] if isinstance(dim, int) else dim)}
    at = _core.stack([row * 0 if d in dims else row for d, row in enumerate(coo._at)])
    size = [1 if d in dims else n for d, n in enumerate(x.shape)]
    made: Tensor = _back(coalesce(make(at, held, size)), x)
    return made


# --- products ---


def matmul(input: Any, other: Any) -> Any:
    """The product of two matrices, or of a matrix and a vector."""
    if not isinstance(other, Tensor) or not isinstance(input, Tensor):
        return NotImplemented
    return _back(products.matmul(to_coo(input), to_coo(other)), input, other)


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """`beta * input + alpha * mat1 @ mat2`."""
    made = matmul(mat1, mat2)
    made = made if alpha == 1 else made * alpha
    if beta == 0:
        return made
    return _core.add(input if beta == 1 else input * beta, made)


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """`input @ weight.t() + bias`."""
    made = matmul(input, weight.t())
    return made if bias is None else made + bias


def mm_reduce(input: Any, other: Tensor, reduce: str) -> Tensor:
    """Multiply a CSR and a dense matrix, and reduce the products of each row by sum, mean, minimum or maximum."""
    if reduce not in ("sum", "mean", "amax", "amin", "max", "min"):
        raise RuntimeError(f"reduce argument must be either sum, mean, amax or amin, got {reduce}")
    if not is_compressed(input) or input.layout != sparse_csr:
        raise RuntimeError(f"Expect self to be SparseCsr, got {layout_name(input)}")
    if isinstance(other, SparseTensor):
        raise unsupported("_sparse_mm_reduce_impl", (other,))
    coo = to_coo(input)
    products.check_matrices(coo, other)
    if reduce == "sum":
        return products.mm(coo, other)
    lines, across = coo._at
    terms = coo._held.unsqueeze(1) * other.index_select(0, across)
    how = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    start = _core.zeros(input.shape[0], other.shape[1], dtype=terms.dtype, device=terms.device)
    return start.scatter_reduce(0, lines.unsqueeze(1).expand_as(terms), terms, how, include_self=False)


def sampled_addmm(input: Any, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0, out: Any = None) -> Tensor:
    """Compute `beta * input + alpha * (mat1 @ mat2)` at the specified elements of a sparse `input` only.

    Args:
        input: sparse CSR matrix of shape `(n, p)`.
        mat1: dense matrix of shape `(n, m)`.
        mat2: dense matrix of shape `(m, p)`.
        beta: factor of `input`. Default: `1.0`
        alpha: factor of the product. Default: `1.0`
        out: not supported.

    Examples:
        >>> torch.sparse.sampled_addmm(torch.eye(2).to_sparse_csr(), torch.ones(2, 3), torch.ones(3, 2)).to_dense()
        tensor([[4., 0.],
                [0., 4.]])
    """
    if not is_compressed(input):
        raise RuntimeError(f"sampled_addmm: Expected self to have sparse csr layout, but got {layout_name(input)}")
    if out is not None:
        raise NotImplementedError("sampled_addmm(): out= is not there for sparse tensors")
    if mat1.shape[-1] != mat2.shape[-2] or (mat1.shape[0], mat2.shape[1]) != tuple(input.shape):
        raise RuntimeError(
            f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied into {list(input.shape)}: {list(mat1.shape)} and "
            f"{list(mat2.shape)}"
        )
    at: CooTensor = to_coo(input)
    product = (mat1.index_select(0, at._at[0]) * mat2.t().index_select(0, at._at[1])).sum(1)
    made: Tensor = input._with(input._held * beta + product * alpha)
    return made
