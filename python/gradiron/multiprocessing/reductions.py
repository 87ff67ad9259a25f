"""How tensors go to other processes: their memory is shared, and only its handle is sent."""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any

from .. import _core
from .._core import Tensor
from .._parameter import Parameter
from .._storage import UntypedStorage
from ..storage import TypedStorage
from . import _memory

__all__ = ["init_reductions", "rebuild_storage", "reduce_storage", "reduce_tensor"]


def check_sent(tensor: Tensor) -> None:
    """Whether a tensor may go to another process: histories end at this one."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
            "process boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., "
            "putting it on the queue)."
        )


def reduce_tensor(tensor: Tensor) -> Any:
    """The storage, and how the tensor lies in it."""
    check_sent(tensor)
    return tensor.__reduce_ex__(2)


def reduce_storage(storage: UntypedStorage) -> Any:
    """The handle of its memory, into which it is moved; what the GPU has goes by way of host memory."""
    if not _memory.can_share():
        return storage.__reduce__()
    segment = _memory.share(storage)
    if segment is None or segment.file is None:
        return storage.__reduce__()
    from multiprocessing.reduction import DupFd

    start = storage.data_ptr() - segment.address
    return rebuild_storage, (DupFd(segment.file), segment.size, start, len(storage), storage._seen.dtype)


def rebuild_storage(handle: Any, size: int, start: int, count: int, kind: Any) -> UntypedStorage:
    """The other end."""
    whole = _memory.Segment(size, handle.detach()).tensor(start, count)
    return UntypedStorage(_core.storage_view(whole, kind, 0, (count // kind.itemsize,), (1,)))


def _reduce_typed(storage: TypedStorage) -> Any:
    return storage.__reduce__()


def init_reductions() -> None:
    """Tells Python's own queues and pipes."""
    ForkingPickler.register(UntypedStorage, reduce_storage)
    ForkingPickler.register(TypedStorage, _reduce_typed)
    ForkingPickler.register(Tensor, reduce_tensor)
    ForkingPickler.register(Parameter, reduce_tensor)
