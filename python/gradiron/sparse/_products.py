"""Matrix products of sparse COO matrices."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from ._arithmetic import add
from ._build import coalesce, dense_dim, sparse_dim, summed
from ._tensor import CooTensor, is_coo, make, unsupported
from ._views import pairs, t


def _product(a: CooTensor, b: Tensor, what: str) -> Tensor:
    """A sparse matrix times the rows of a dense one."""
    if a.dtype != b.dtype:
        names = [str(x.dtype).removeprefix("torch.").replace("float64", "Double").replace("float32", "Float") for x in (a, b)]
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}")
    if a._at.shape[0] != 2 or a._held.dim() != 1:
        raise RuntimeError(
            f"{what}: expected a matrix with two sparse dimensions, but got {sparse_dim(a)} and {dense_dim(a)} dense"
        )
    rows, columns = a._at[0], a._at[1]
    return summed(a._held.unsqueeze(1) * b.index_select(0, columns), rows, a.shape[0])


def check_matrices(a: Any, b: Any) -> None:
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
    """Multiply matrices or a matrix and a vector, or a dense batch of matrices and a sparse matrix."""
    if not isinstance(other, Tensor):
        return NotImplemented
    if input.dim() == 2 and other.dim() == 1:
        return mv(input, other)
    if input.dim() == 1 and other.dim() == 2:
        return mv(_transposed(other), input)
    if input.dim() > 2 and other.dim() == 2 and not is_coo(input):
        return mm(input.flatten(0, -2), other).reshape(*input.shape[:-1], other.shape[1])
    if max(input.dim(), other.dim()) > 2:
        raise RuntimeError("expand is unsupported for Sparse tensors")
    return mm(input, other)


def mm(input: Any, mat2: Any) -> Tensor:
    """Multiply two matrices, of which one or both may be sparse.

    The result is sparse if both are.

    Args:
        input: matrix of shape `(n, m)`.
        mat2: matrix of shape `(m, p)`.

    Examples:
        >>> torch.dsmm(torch.eye(2).to_sparse(), torch.ones(2, 2))
        tensor([[1., 1.],
                [1., 1.]])
    """
    for name, given in (("input", input), ("mat2", mat2)):
        if not isinstance(given, Tensor):
            raise TypeError(f"mm(): argument '{name}' must be Tensor, not {type(given).__name__}")
    if not is_coo(input) and not is_coo(mat2):
        return _core.mm(input, mat2)
    check_matrices(input, mat2)
    if not is_coo(mat2):
        return _product(input, mat2, "mm")
    if not is_coo(input):
        return _product(t(mat2), input.t(), "mm").t()
    a: Any = input
    b: Any = mat2
    one, other = pairs(a._at[1], b._at[0], b.shape[0])
    at = _core.stack([a._at[0].index_select(0, one), b._at[1].index_select(0, other)])
    held = a._held.index_select(0, one) * b._held.index_select(0, other)
    return coalesce(make(at, held, [a.shape[0], b.shape[1]]))


spmm = dsmm = mm


def _transposed(x: Any) -> Any:
    return t(x) if is_coo(x) else x.t()


def mv(input: Any, vec: Tensor) -> Tensor:
    if is_coo(vec):
        raise unsupported("mv", (vec,))
    if input.dim() != 2 or vec.dim() != 1:
        raise RuntimeError(f"mv: two dim tensor 'self' should be 2D and 'vec' 1D, but got {input.dim()}D and {vec.dim()}D")
    if input.shape[1] != vec.shape[0]:
        raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
    if not is_coo(input):
        return _core.mv(input, vec)
    return _product(input, vec.unsqueeze(1), "mv").squeeze(1)


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Compute `beta * input + alpha * (mat1 @ mat2)` with a sparse `mat1`.

    Args:
        input: matrix to add.
        mat1: matrix of shape `(n, m)`, usually sparse.
        mat2: matrix of shape `(m, p)`.
        beta: factor of `input`. Default: `1`
        alpha: factor of the product. Default: `1`

    Examples:
        >>> torch.sparse.addmm(torch.ones(2, 2), torch.eye(2).to_sparse(), torch.ones(2, 2))
        tensor([[2., 2.],
                [2., 2.]])
    """
    made = mm(mat1, mat2)
    made = made if alpha == 1 else made * alpha
    if beta == 0:
        return made
    return add(input if beta == 1 else input * beta, made)


def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    made = matmul(input, _transposed(weight))
    return made if bias is None else made + bias
