"""What pickles hold of tensors."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from .._core import Tensor
from .._parameter import Parameter
from .._storage import UntypedStorage, rebuild_lazy, rebuild_tensor, untyped_storage
from ..storage import CLASSES, NEWER, TypedStorage
from ..utils.hooks import warn_if_has_hooks
from .rebuild import (
    _rebuild_from_type_v2,
    _rebuild_meta_tensor_no_storage,
    _rebuild_parameter,
    _rebuild_parameter_with_state,
    _rebuild_tensor_v2,
    _rebuild_tensor_v3,
)
from .state import _get_obj_state, thread


def reduce(self: Tensor, protocol: Any = None) -> Any:
    """What a pickle holds: the storage, how the tensor lies in it, and what the user hung on the tensor."""
    if thread.saves or type(self) is Parameter:
        return reduce_tensor(self)
    if self._backward_hooks and not isinstance(self, Parameter):
        warn_if_has_hooks(self)
    if self.is_meta:
        return with_state(self, *reduce_meta(self))
    place = (untyped_storage(self), self.dtype, self.storage_offset(), tuple(self.shape), self.stride(), self.requires_grad)
    if self.is_conj() or self.is_neg():
        return with_state(self, rebuild_lazy, (self.is_conj(), self.is_neg(), *place))
    state = _get_obj_state(self)
    # Not by its own name, which is another one in a program that the launcher runs.
    cls = None if type(self) is Tensor else type(self)
    return rebuild_tensor, (place if cls is None and not state else (*place, cls, state))


def reduce_meta(tensor: Tensor) -> Any:
    """What a pickle holds of a tensor without elements."""
    return _rebuild_meta_tensor_no_storage, (tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.requires_grad)


def reduce_tensor(tensor: Tensor) -> Any:
    """What a checkpoint holds of a tensor: PyTorch's call that rebuilds it."""
    hooks: OrderedDict[int, Any] = OrderedDict()
    # What is derived from parameters becomes one, as in PyTorch: a leaf, which an optimizer takes.
    if issubclass(type(tensor), Parameter):
        state = _get_obj_state(tensor)
        args: Any = (tensor.data, tensor.requires_grad, hooks)
        return (_rebuild_parameter_with_state, (*args, state)) if state else (_rebuild_parameter, args)
    if tensor._backward_hooks:
        warn_if_has_hooks(tensor)
    if tensor.is_meta:
        return with_state(tensor, *reduce_meta(tensor))
    untyped = tensor.untyped_storage()
    is_newer = tensor.dtype in NEWER
    storage = untyped if is_newer else TypedStorage(wrap_storage=untyped, dtype=tensor.dtype, _internal=True)
    args = (storage, tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.requires_grad, hooks)
    args = (*args, tensor.dtype) if is_newer else args
    if tensor.is_conj() or tensor.is_neg():
        there = {"conj": tensor.is_conj(), "neg": tensor.is_neg()}
        args = (*args, {name: True for name, yes in there.items() if yes})
    return with_state(tensor, _rebuild_tensor_v3 if is_newer else _rebuild_tensor_v2, args)


def with_state(tensor: Tensor, rebuild: Any, args: Any) -> Any:
    """A call that rebuilds a tensor, and also its class and what hangs on it where there is more than the tensor."""
    if type(tensor) is Tensor and not tensor.__dict__:
        return rebuild, args
    return _rebuild_from_type_v2, (rebuild, type(tensor), args, _get_obj_state(tensor))


def storage_class(storage: Any) -> Any:
    """The class that a checkpoint names for a storage."""
    return CLASSES[storage.dtype] if isinstance(storage, TypedStorage) else UntypedStorage
