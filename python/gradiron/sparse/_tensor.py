"""Sparse tensors as objects: where the elements are that may differ from zero, and their values.

The indices and the values are ordinary tensors, so that everything here is a composition of ordinary operators: derivatives of
every order, and the GPU's part, come from theirs. To the core it is a tensor without memory, of the right shape and dtype, and
every function that is called with it comes to `__torch_function__`: what is not in `functions` raises. The core keeps the parts
of a tensor in coordinate format, because it makes and adds up sparse gradients itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from .. import _core
from .._core import Tensor
from .._creation import sparse_coo, sparse_csr
from .._pickling.rebuild import _rebuild_sparse_tensor
from ..overrides import prepare

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
    """A tensor of which the values are stored, and where they are."""

    functions: ClassVar[dict[str, Callable[..., Any]]]
    #: What PyTorch calls the tensors' device.
    backend: ClassVar[str]

    _held: Tensor  # nnz x the dense dimensions

    _is_more_than_its_core = True  # Functions that save one keep the object.

    device = _of_values("device", "Where the values are.")
    is_cuda = _of_values("is_cuda", "Whether the values are on the GPU.")
    is_cpu = _of_values("is_cpu", "Whether the values are in host memory.")
    is_meta = _of_values("is_meta", "Whether there are no values.")
    grad_fn = _of_values("grad_fn", "The node that made the values.")
    is_leaf = _of_values("is_leaf", "Whether nothing was recorded that made the values.")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from ._layouts import TAKE_AFTER, create

        if not all(issubclass(kind, Tensor) for kind in types):
            return NotImplemented
        name: str = getattr(func, "__name__", str(func))
        if name == "__get__":
            name = func.__self__.__name__
        if name in _OF_SHAPE:
            return _core._disabled_torch_function_impl(func, types, args, kwargs or {})
        if name in TAKE_AFTER:
            return create(func, args, kwargs or {})
        if name in _TURNED:
            name, args = _TURNED[name], args[::-1]
        name = _OPERATORS.get(name, name)
        # Those of compressed tensors take others, too.
        cls = next((kind for kind in types if issubclass(kind, CompressedTensor)), cls)
        known = cls.functions.get(name)
        if known is not None:
            return known(*args, **(kwargs or {}))
        if name in _EACH:
            (x,) = args
            return x._each(getattr(_core, name))
        raise unsupported(name, args)

    def _with(self, values: Tensor) -> Any:
        """Other values at the same places."""
        raise NotImplementedError

    def _places(self) -> tuple[Tensor, ...]:
        """Where the values are."""
        raise NotImplementedError

    def _moved(self, values: Tensor, device: Any, copy: bool) -> Any:
        """Other values at the same places, which are told on another device."""
        raise NotImplementedError

    def _each(self, function: Callable[[Tensor], Tensor]) -> Any:
        """A function of each element that leaves zero as it is."""
        return self._with(function(self._held))

    @property
    def requires_grad(self) -> bool:
        return self._held.requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        self._held.requires_grad_(wanted)

    @property
    def grad(self) -> Tensor | None:
        grad = self._held.grad
        return None if grad is None else self._with(grad)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and not isinstance(value, SparseTensor):
            raise RuntimeError("grad expected sparse coordinate tensor layout but got Strided")
        self._held.grad = None if value is None else value._held

    @property  # type: ignore[override]
    def data(self) -> SparseTensor:
        return self._with(self._held.detach())

    @data.setter
    def data(self, value: SparseTensor) -> None:
        # The core keeps the dtype, which may be another, and the parts of tensors in coordinate format.
        Tensor.data.__set__(self, value)  # type: ignore[attr-defined]
        self.__dict__.update(value.__dict__)

    def __iter__(self) -> Any:
        return iter(self.unbind())

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
            memo[id(self)] = self.detach().clone().requires_grad_(self.requires_grad)
        made: SparseTensor = memo[id(self)]
        return made


def _part(place: int, doc: str) -> Any:
    def get(self: CooTensor) -> Any:
        return _core.coo_parts(self)[place]

    def put(self: CooTensor, value: Any) -> None:
        parts = list(_core.coo_parts(self))
        parts[place] = value
        _core.set_coo_parts(self, *parts)

    return property(get, put, doc=doc)


class CooTensor(SparseTensor):
    """A tensor in coordinate format; `sparse_coo_tensor` and `Tensor.to_sparse` make one, and sparse gradients are such."""

    backend = "Sparse"

    _at = _part(0, "The indices: sparse_dim x nnz.")
    _held = _part(1, "The values: nnz x the dense dimensions.")
    _in_order = _part(2, "Whether the indices are sorted and each is there once.")

    layout = sparse_coo
    is_sparse = True

    def _with(self, values: Tensor) -> CooTensor:
        return like(self, values)

    def _places(self) -> tuple[Tensor, ...]:
        return (self._at,)

    def _moved(self, values: Tensor, device: Any, copy: bool) -> CooTensor:
        return make(_core.convert(self._at, None, device, copy), values, self.shape, self._in_order)

    def _each(self, function: Callable[[Tensor], Tensor]) -> CooTensor:
        # Only the values change, once each place has one.
        x = self.coalesce()
        return like(x, function(x._held))

    @property
    def T(self) -> Any:
        return self.permute(tuple(range(self.dim()))[::-1])

    @property
    def mT(self) -> Any:
        return self.transpose(-2, -1)

    def _coalesced_(self, coalesced: bool) -> CooTensor:
        """Says whether the places are sorted and each is there once; nobody looks."""
        self._in_order = coalesced
        return self

    def __radd__(self, other: Any) -> Tensor:
        # Unlike elsewhere, what stands first matters.
        return self.functions["add"](other, self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild_sparse_tensor, (self.layout, (self._at, self._held.detach(), self.shape, self._in_order))


class CompressedTensor(SparseTensor):
    """A matrix of which the places of each row (or column) follow each other; `sparse_csr_tensor`, `to_sparse_csr` make one."""

    backend = "SparseCsr"

    _starts: Tensor  # where each row begins in what follows, and where the last one ends
    _across: Tensor  # the columns
    _lines: Tensor | None  # the row of each value, once it was asked for

    layout = sparse_csr
    is_sparse_csr = True

    def _with(self, values: Tensor) -> CompressedTensor:
        return compressed(self.layout, self._starts, self._across, values, self.shape, self._lines)

    def _places(self) -> tuple[Tensor, ...]:
        return self._starts, self._across

    def _moved(self, values: Tensor, device: Any, copy: bool) -> CompressedTensor:
        starts, across = (_core.convert(x, None, device, copy) for x in (self._starts, self._across))
        return compressed(self.layout, starts, across, values, self.shape)

    @property
    def T(self) -> Any:
        return self.t()

    @property
    def mT(self) -> Any:
        return self.t()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild_sparse_tensor, (self.layout, (self._starts, self._across, self._held.detach(), self.shape))


@functools.cache
def _ask_classes() -> None:
    """Have functions ask the classes of sparse tensors, of which there will be one now."""
    prepare(CooTensor)
    prepare(CompressedTensor)
    _core.expect_overrides(True)


def coo_class() -> type[CooTensor]:
    """The class of the objects that the core makes for its first sparse tensor, and for those that follow."""
    _ask_classes()
    return CooTensor


def make(indices: Tensor, values: Tensor, size: Sequence[int], in_order: bool = False) -> CooTensor:
    """A sparse tensor of indices and values; `in_order` if they are sorted, and no two are of one place."""
    made: CooTensor = _core.make_coo(indices, values, size, in_order)
    return made


def compressed(
    layout: Any, starts: Tensor, across: Tensor, values: Tensor, size: Sequence[int], lines: Tensor | None = None
) -> CompressedTensor:
    """A sparse matrix, compressed by rows or columns."""
    _ask_classes()
    empty = _core.empty(list(size), dtype=values.dtype, device="meta")
    made: CompressedTensor = _core.make_subclass(CompressedTensor, empty, False)
    made._held = values
    made.layout, made._starts, made._across, made._lines = layout, starts, across, lines
    return made


def like(x: CooTensor, values: Tensor) -> CooTensor:
    """Other values at the same places."""
    return make(x._at, values, x.shape, x._in_order)


def is_coo(x: Any) -> bool:
    return isinstance(x, CooTensor)


def layout_name(x: Any) -> str:
    """What PyTorch's errors call the layout of a tensor."""
    return {"sparse_coo": "Sparse", "sparse_csr": "SparseCsr", "sparse_csc": "SparseCsc"}.get(str.__str__(x.layout), "Strided")


def unsupported(name: str, args: Any) -> NotImplementedError:
    flat = [b for a in args for b in (a if isinstance(a, (list, tuple)) else (a,)) if isinstance(b, SparseTensor)]
    kind = flat[0].backend if flat else "Sparse"
    backend = f"{kind}{'CUDA' if any(a.is_cuda for a in flat) else 'CPU'}"
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{backend}' backend. It is not there for sparse tensors: "
        "use `to_dense()` first"
    )


def expect(x: Any, name: str) -> CooTensor:
    if not is_coo(x):
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got {layout_name(x)}")
    found: CooTensor = x
    return found


# Functions of each element that leave zero as it is.
_EACH = frozenset(
    """abs absolute asin arcsin asinh arcsinh atan arctan atanh arctanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan
    isneginf isposinf log1p neg negative positive rad2deg relu round sgn sign signbit sin sinh sqrt tan tanh trunc
    fix""".split()
)
