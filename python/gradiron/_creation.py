"""Functions that make tensors from data, sizes and numbers."""

from __future__ import annotations

from typing import Any

from . import _core
from ._core import Tensor, device, dtype

__all__ = ["as_tensor", "from_numpy", "full", "ones", "tensor", "zeros"]


def tensor(
    data: Any,
    *,
    dtype: dtype | None = None,
    device: device | str | int | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new tensor with a copy of `data`: nested sequences, numbers, arrays or a tensor."""
    return _core.make_tensor(data, dtype, device, requires_grad)


def from_numpy(array: Any) -> Tensor:
    """A tensor over the memory of a NumPy array."""
    return _core.from_numpy(array)


def as_tensor(data: Any, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """`data` as a tensor; shared where no conversion is needed."""
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else data.to(device=device, dtype=dtype)
    if hasattr(data, "__array_interface__") and getattr(data, "shape", None) is not None:
        shared = _core.from_numpy(data)
        return _core.convert(shared, dtype, device, False)
    return _core.make_tensor(data, dtype, device, False)


def _size(size: tuple[Any, ...]) -> list[int]:
    if len(size) == 1 and not isinstance(size[0], int):
        size = tuple(size[0]) if not isinstance(size[0], Tensor) else size
    return [int(n) for n in size]


def _finish(t: Tensor, requires_grad: bool) -> Tensor:
    return t.requires_grad_() if requires_grad else t


def full(size: Any, fill_value: Any, *, dtype: dtype | None = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of `size` filled with one number."""
    return _finish(_core.full(_size((size,)), fill_value, dtype, device), requires_grad)


def zeros(*size: Any, dtype: dtype | None = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros."""
    return _finish(_core.full(_size(size), 0, dtype, device), requires_grad)


def ones(*size: Any, dtype: dtype | None = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A tensor of ones."""
    return _finish(_core.full(_size(size), 1, dtype, device), requires_grad)
