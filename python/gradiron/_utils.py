"""What checkpoints call by PyTorch's names to put tensors together again; exceptions that travel between processes."""

from __future__ import annotations

import copyreg
import os
import sys
import threading
import traceback
from collections import OrderedDict
from typing import Any, NoReturn

from . import _core
from ._core import Tensor, dtype
from ._parameter import Parameter
from ._storage import UntypedStorage
from .storage import CLASSES, TypedStorage

# What PyTorch writes for tensors that gradiron does not have.
MISSING = {
    "_rebuild_qtensor": "quantised tensors",
    "_rebuild_nested_tensor": "nested tensors",
    "_rebuild_wrapper_subclass": "wrapper subclasses",
}


def _extent(size: Any, stride: Any, offset: int) -> int:
    """How many elements of its storage a tensor reaches."""
    if 0 in size:
        return 0
    return int(offset + 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True)))


def _lay_out(storage: UntypedStorage, kind: dtype, offset: int, size: Any, stride: Any) -> Tensor:
    size, stride = tuple(size), tuple(stride)
    numbers = (offset, *size, *stride)
    if not all(type(n) is int for n in numbers) or len(size) != len(stride):
        raise TypeError(f"a tensor cannot have size {size}, stride {stride} and storage offset {offset}")
    if min(numbers) < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}, sizes {list(size)} or strides {list(stride)}")
    needed, there = _extent(size, stride, offset) * kind.itemsize, storage.nbytes()
    if needed > there or max(numbers) >= 1 << 63:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {kind.itemsize} "
            f"requiring a storage size of {needed} are out of bounds for storage of size {there}"
        )
    return _core.storage_view(storage._seen, kind, offset, size, stride)


def _rebuild_tensor(storage: TypedStorage, storage_offset: int, size: Any, stride: Any) -> Tensor:
    if not isinstance(storage, TypedStorage):
        raise TypeError(f"a tensor lies in a storage, not in a {type(storage).__name__}")
    return _lay_out(storage.untyped(), storage.dtype, storage_offset, size, stride)


def _dressed(made: Tensor, requires_grad: bool, metadata: Any = None) -> Tensor:
    # Hooks are not kept, neither in new files nor in those of old days.
    if metadata:
        made = made.conj() if metadata.get("conj") else made
        made = _core._neg_view(made) if metadata.get("neg") else made
        made = made.detach()
    if requires_grad:
        made.requires_grad_(True)
    return made


def _rebuild_tensor_v2(
    storage: TypedStorage,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    made = _rebuild_tensor(storage, storage_offset, size, stride)
    return _dressed(made, requires_grad, metadata)


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: dtype,
    metadata: Any = None,
) -> Tensor:
    made = _lay_out(storage.untyped(), dtype, storage_offset, size, stride)
    return _dressed(made, requires_grad, metadata)


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Tensor:
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Tensor:
    return _set_obj_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_device_tensor_from_cpu_tensor(data: Tensor, dtype: dtype, device: Any, requires_grad: bool) -> Tensor:
    from .serialization import _restored_place

    return _dressed(data.to(dtype=dtype, device=_restored_place(device)), requires_grad)


def _rebuild_device_tensor_from_numpy(data: Any, dtype: dtype, device: Any, requires_grad: bool) -> Tensor:
    return _rebuild_device_tensor_from_cpu_tensor(_core.from_numpy(data), dtype, device, requires_grad)


_rebuild_xla_tensor = _rebuild_device_tensor_from_numpy


def _rebuild_sparse_tensor(layout: Any, data: Any) -> Tensor:
    from .sparse._build import sparse_coo_tensor
    from .sparse._compressed import sparse_compressed_tensor

    if layout in ("sparse_csr", "sparse_csc"):
        return sparse_compressed_tensor(*data, layout=layout, check_invariants=True)
    if layout != "sparse_coo":
        raise NotImplementedError(f"rebuilding sparse tensor for layout {layout}")
    # Files of old days do not say whether the places are in order.
    indices, values, size, *in_order = data
    return sparse_coo_tensor(indices, values, size, check_invariants=True, is_coalesced=bool(in_order and in_order[0]))


def _rebuild_from_type_v2(func: Any, new_type: Any, args: Any, state: Any) -> Any:
    made = func(*args)
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    return restored(made, state)


def restored(made: Any, state: Any) -> Any:
    """A tensor with what hung on it, put back by its class if that has its own way."""
    own = getattr(type(made), "__setstate__", None)
    if own is not None and own is not getattr(Tensor, "__setstate__", None):
        made.__setstate__(state)
        return made
    return _set_obj_state(made, state)


def _set_obj_state(obj: Any, state: Any) -> Any:
    slots = None
    if isinstance(state, tuple):
        if len(state) != 2:
            raise RuntimeError(f"Invalid serialized state: {state}")
        state, slots = state
    if state:
        obj.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(obj, name, value)
    return obj


def set_state(self: Tensor, state: Any) -> None:
    """Restore a tensor from its pickle: in old files a storage and the tensor's place in it, otherwise its attributes."""
    if isinstance(state, tuple) and len(state) == 4:
        self.set_(_rebuild_tensor(*state))
    else:
        _set_obj_state(self, state)


def _get_obj_state(obj: Any) -> Any:
    """What hangs on an object, told by its class if that has its own way."""
    own = getattr(type(obj), "__getstate__", None)
    if own is not None and own is not getattr(object, "__getstate__", None):
        return obj.__getstate__()
    return attributes(obj)


def attributes(obj: Any) -> Any:
    """What the user hung on an object: its dictionary, or that and its slots."""
    names = getattr(copyreg, "_slotnames")(type(obj))  # noqa: B009 (pickle's own, without a public name)
    slots = {name: getattr(obj, name) for name in names if hasattr(obj, name)}
    return (obj.__dict__, slots) if slots else obj.__dict__


def _rebuild_meta_tensor_no_storage(dtype: dtype, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    return _core.empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def reduce_meta(tensor: Tensor) -> Any:
    """What a pickle holds of a tensor without elements."""
    return _rebuild_meta_tensor_no_storage, (tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.requires_grad)


class _Saving(threading.local):
    """Whether this thread writes a checkpoint: what a class makes of `super().__reduce_ex__` there is PyTorch's call, too."""

    on = False


saving = _Saving()


def reduce_tensor(tensor: Tensor) -> Any:
    """What a checkpoint holds of a tensor: PyTorch's call that rebuilds it."""
    hooks: OrderedDict[int, Any] = OrderedDict()
    # What is derived from parameters becomes one, as in PyTorch: a leaf, which an optimizer takes.
    if issubclass(type(tensor), Parameter):
        state = _get_obj_state(tensor)
        args: Any = (tensor.data, tensor.requires_grad, hooks)
        return (_rebuild_parameter_with_state, (*args, state)) if state else (_rebuild_parameter, args)
    if tensor._backward_hooks:
        from .utils.hooks import warn_if_has_hooks

        warn_if_has_hooks(tensor)
    if tensor.is_meta:
        return with_state(tensor, *reduce_meta(tensor))
    storage = TypedStorage(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype, _internal=True)
    args = (storage, tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.requires_grad, hooks)
    if tensor.is_conj() or tensor.is_neg():
        there = {"conj": tensor.is_conj(), "neg": tensor.is_neg()}
        args = (*args, {name: True for name, yes in there.items() if yes})
    return with_state(tensor, _rebuild_tensor_v2, args)


def with_state(tensor: Tensor, rebuild: Any, args: Any) -> Any:
    """A call that rebuilds a tensor, and also its class and what hangs on it where there is more than the tensor."""
    if type(tensor) is Tensor and not tensor.__dict__:
        return rebuild, args
    return _rebuild_from_type_v2, (rebuild, type(tensor), args, _get_obj_state(tensor))


def storage_class(storage: Any) -> Any:
    """The class that a checkpoint names for a storage."""
    return CLASSES[storage.dtype] if isinstance(storage, TypedStorage) else UntypedStorage


class KeyErrorMessage(str):
    """A message that KeyError prints as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return self


class ExceptionWrapper:
    """An exception on its way from another process, with its traceback as text."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        exc_info = exc_info or sys.exc_info()
        # Not the exception itself: its frames hold what they hold.
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raises an exception of the same type, which tells the traceback."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)
        try:
            exception = self.exc_type(message)
        except Exception:
            # It takes other arguments than one.
            raise RuntimeError(message) from None
        raise exception


def _element_size(dtype: dtype) -> int:
    """How many bytes an element takes."""
    if not isinstance(dtype, _core.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def cpu_count() -> int | None:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _flatten_dense_tensors(tensors: Any) -> Tensor:
    """All elements one after the other."""
    return _core.cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Any) -> tuple[Tensor, ...]:
    """Views of such a row, shaped as the tensors that it came of."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.view(t.shape) for part, t in zip(parts, tensors, strict=True))
