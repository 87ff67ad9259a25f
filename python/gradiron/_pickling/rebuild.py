"""What files call, by PyTorch's names, to put tensors together again."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor, device, dtype
from .._creation import sparse_coo, sparse_csc, sparse_csr, strided
from .._parameter import Parameter
from .._storage import UntypedStorage
from .._tensor import forward_to
from ..storage import TypedStorage
from .state import _set_obj_state, restored, thread

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


def _restored_place(place: Any) -> Any:
    """Where the `map_location` of the load that goes on sends what was on a device."""
    where = thread.map_location
    if where is None:
        return place
    if isinstance(where, dict):
        return where.get(place, place)
    if isinstance(where, (str, device)):
        return where
    raise RuntimeError(
        "Callable map_location not supported with _rebuild_wrapper_subclass or _rebuild_device_tensor_from_numpy"
    )


def _rebuild_device_tensor_from_cpu_tensor(data: Tensor, dtype: dtype, device: Any, requires_grad: bool) -> Tensor:
    return _dressed(data.to(dtype=dtype, device=_restored_place(device)), requires_grad)


def _rebuild_device_tensor_from_numpy(data: Any, dtype: dtype, device: Any, requires_grad: bool) -> Tensor:
    return _rebuild_device_tensor_from_cpu_tensor(_core.from_numpy(data), dtype, device, requires_grad)


_rebuild_xla_tensor = _rebuild_device_tensor_from_numpy


@forward_to("sparse._pickles.rebuild")
def _rebuild_sparse_tensor(layout: Any, data: Any) -> Any: ...


def _rebuild_from_type_v2(func: Any, new_type: Any, args: Any, state: Any) -> Any:
    made = func(*args)
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    return restored(made, state)


def _rebuild_meta_tensor_no_storage(dtype: dtype, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    return _core.empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def set_state(self: Tensor, state: Any) -> None:
    """Restore a tensor from its pickle: in old files a storage and the tensor's place in it, otherwise its attributes."""
    if isinstance(state, tuple) and len(state) == 4:
        self.set_(_rebuild_tensor(*state))
    else:
        _set_obj_state(self, state)


def _get_layout(name: str) -> Any:
    known = {str(layout): layout for layout in (strided, sparse_coo, sparse_csr, sparse_csc)}
    if name not in known:
        raise ValueError(f"gradiron has no layout {name!r:.100}")
    return known[name]
