"""Sparse tensors with another dtype, on another device, or with other contents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from .._tensor import parse_to
from ._tensor import CooTensor, SparseTensor, is_coo, make, unsupported


def to(x: SparseTensor, *args: Any, **kwargs: Any) -> Any:
    kind, place, copy, _ = parse_to(args, kwargs)
    held = _core.convert(x._held, kind, place, copy)
    return x if held is x._held else x._moved(held, place, copy)


def cast(name: str) -> Callable[..., Any]:
    def convert(x: SparseTensor, memory_format: Any = None) -> Any:
        return to(x, getattr(_core, name))

    return convert


def cuda(x: SparseTensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
    return to(x, "cuda:0" if device is None else device)


def type_name(x: SparseTensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    if dtype is None:
        name = x._held.detach().type().rpartition(".")
        return f"{name[0]}.sparse.{name[2]}"
    kind = getattr(dtype, "dtype", dtype)
    return to(x, kind)


def requires_grad_(x: SparseTensor, requires_grad: bool = True) -> SparseTensor:
    x._held.requires_grad_(requires_grad)
    return x


def detach_(x: SparseTensor) -> SparseTensor:
    x._held = x._held.detach()
    return x


def clone(x: SparseTensor, memory_format: Any = None) -> Any:
    return x._moved(x._held.clone(), None, True)


def replaced(x: Any, other: Any) -> CooTensor:
    """The object `x` with the contents of another."""
    if x._held.requires_grad and x._held.is_leaf and _core.is_grad_enabled():
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    _core.set_coo_parts(x, other._at, other._held.to(x.device, x.dtype), other._in_order)
    kept: CooTensor = x
    return kept


def copy_(x: Any, src: Any, non_blocking: bool = False) -> CooTensor:
    if not is_coo(x) or not is_coo(src):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented! Found self type = "
                           f"{x.type()} and src type = {src.type()}")  # fmt: skip
    if x.shape != src.shape:
        raise RuntimeError(f"copy_(): sizes of the sparse tensors differ: {list(x.shape)} and {list(src.shape)}")
    return replaced(x, clone(src))


def resize_as_(x: CooTensor, other: Any, memory_format: Any = None) -> CooTensor:
    """Gives a tensor that holds nothing another's shape."""
    if not is_coo(other) or x._at.shape[1]:
        raise unsupported("resize_as_", (x,))
    x.data = make(other._at[:, :0], _core.convert(other._held.detach()[:0], x.dtype, x.device, True), other.shape, True)
    return x


def zero_(x: CooTensor) -> CooTensor:
    nothing = make(x._at[:, :0], x._held.detach()[:0], x.shape, True)
    return replaced(x, nothing)


def hooked(x: SparseTensor, hook: Callable[[Any], Any], grad: Tensor) -> Any:
    made = hook(x._with(grad))
    return made._held if isinstance(made, SparseTensor) else made
