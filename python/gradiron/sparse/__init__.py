"""Sparse tensors in COO, CSR and CSC layout and their functions."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from .. import _core
from .._core import Tensor
from .._functions.settings import tell_once
from . import _build, _compressed, _products, _reductions, _tensor
from . import _function as _function
from . import _functions as _functions
from ._compressed import sampled_addmm
from ._diagonals import spdiags
from ._products import addmm

__all__ = ["addmm", "check_sparse_tensor_invariants", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum"]


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """Multiply two matrices, of which one or both may be sparse.

    The result is sparse only if both are.

    Args:
        mat1: matrix of shape `(n, m)`.
        mat2: matrix of shape `(m, p)`.
        reduce: how the products of a row are combined: `"sum"`, `"mean"`, `"amax"` or `"amin"`; needs a CSR `mat1`.

    Examples:
        >>> a = torch.eye(2).to_sparse()
        >>> torch.sparse.mm(a, torch.ones(2, 3))
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
    """
    return _products.mm(mat1, mat2) if reduce is None else _compressed.mm_reduce(mat1, mat2, reduce)


def sum(input: Tensor, dim: int | tuple[int, ...] | None = None, dtype: Any = None) -> Tensor:
    """Sum a sparse COO tensor over all or some dimensions.

    Args:
        input: sparse tensor.
        dim: dimension or dimensions to sum over; all if `None`.
        dtype: dtype of the result.

    Examples:
        >>> torch.sparse.sum(torch.eye(3).to_sparse())
        tensor(3.)
    """
    if _compressed.is_compressed(input):
        raise _tensor.unsupported("_indices", (input,))
    return _reductions.reduce_sum(input, dim, dtype=dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Apply softmax along a dimension of a sparse COO tensor.

    Unspecified elements count as negative infinity.

    Args:
        input: sparse tensor.
        dim: dimension along which the result sums to 1.
        dtype: dtype to convert to first.

    Examples:
        >>> torch.sparse.softmax(torch.tensor([[1.0, 1.0], [0.0, 2.0]]).to_sparse(), 1).to_dense()
        tensor([[0.5000, 0.5000],
                [0.0000, 1.0000]])
    """
    return _reductions.softmax(input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Apply softmax and the logarithm along a dimension of a sparse COO tensor.

    Unspecified elements count as negative infinity.

    Args:
        input: sparse tensor.
        dim: dimension of the softmax.
        dtype: dtype to convert to first.

    Examples:
        >>> torch.sparse.log_softmax(torch.tensor([[1.0, 1.0], [0.0, 2.0]]).to_sparse(), 1).values()
        tensor([-0.6931, -0.6931,  0.0000])
    """
    return _reductions.softmax(input, dim, dtype=dtype, log=True)


class check_sparse_tensor_invariants:
    """Control whether the indices of new sparse tensors are checked, for a `with` block or a function.

    Args:
        enable: whether to check inside. Default: `True`

    Examples:
        >>> with torch.sparse.check_sparse_tensor_invariants():
        ...     torch.sparse.check_sparse_tensor_invariants.is_enabled()
        True
    """

    _on = False

    @staticmethod
    def is_enabled() -> bool:
        """Return whether new sparse tensors are checked."""
        return check_sparse_tensor_invariants._on

    @staticmethod
    def enable() -> None:
        """Check new sparse tensors from now on."""
        check_sparse_tensor_invariants._on = True

    @staticmethod
    def disable() -> None:
        """Do not check new sparse tensors any more."""
        check_sparse_tensor_invariants._on = False

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(check_sparse_tensor_invariants._on)
        check_sparse_tensor_invariants._on = self.state

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        check_sparse_tensor_invariants._on = self._before.pop()

    def __call__(self, function: Any) -> Any:
        import functools

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked


class _OldClass(type):
    """The old classes of sparse tensors, one a dtype: calls make tensors."""

    dtype: Any

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        given = (
            "indices, values, shape, "
            if len(args) == 3
            else "indices, values, "
            if args and isinstance(args[0], Tensor)
            else ""
        )
        if not given and args:
            given = "shape, "
        instead = f"torch.sparse_coo_tensor({given}dtype=, device=)" if args else "torch.sparse_coo_tensor((0,), dtype=)"
        old = f"torch.sparse.SparseTensor({given}*, device=)" if args else "torch.sparse.SparseTensor()"
        tell_once(f"torch.sparse.SparseTensor({given})", f"{old} is deprecated.  Please use {instead}.")
        if not args:
            return _build.sparse_coo_tensor((0,), dtype=cls.dtype, device=device)
        if isinstance(args[0], Tensor):
            # (The dtype of the values stays what it is.)
            return _build.sparse_coo_tensor(*args, device=device)
        size = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
        return _build.sparse_coo_tensor(size, dtype=cls.dtype, device=device)

    def __instancecheck__(cls, value: Any) -> bool:
        return _tensor.is_coo(value) and value.dtype is cls.dtype


_KINDS = {
    "FloatTensor": _core.float32,
    "DoubleTensor": _core.float64,
    "HalfTensor": _core.float16,
    "BFloat16Tensor": _core.bfloat16,
    "LongTensor": _core.int64,
    "IntTensor": _core.int32,
    "ShortTensor": _core.int16,
    "CharTensor": _core.int8,
    "ByteTensor": _core.uint8,
}
for _name, _kind in _KINDS.items():
    globals()[_name] = _OldClass(_name, (), {"dtype": _kind, "__module__": "torch.sparse"})
del _name, _kind
