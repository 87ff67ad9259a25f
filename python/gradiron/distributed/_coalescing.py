"""Several collectives as one: those of a `with` statement, and tensors that travel together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import no_grad
from ._registry import _resolve
from .options import AllreduceCoalescedOptions, BroadcastOptions, ReduceScatterOptions
from .process_group import ProcessGroup
from .work import Work

_coalescing: dict[ProcessGroup, list[tuple[str, Tensor, Tensor | None, Any]]] = {}


class _IllegalWork(Work):
    """Stands for the work of a collective that has not begun yet."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("is_success", "exception", "wait", "source_rank", "_source_rank", "result", "synchronize"):
            raise ValueError(f"Illegal to call {name} on IllegalWork object")
        return super().__getattribute__(name)


class _CoalescingManager:
    """The works of a coalescing `with` statement."""

    def __init__(self) -> None:
        self.works: list[Any] = []

    def append(self, work: Any = None) -> None:
        """Adds a work."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Waits for all of them."""
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(
    group: ProcessGroup | None = None, device: Any = None, async_ops: bool = False
) -> Iterator[_CoalescingManager]:
    """Collects collectives of one kind, and begins them together at its end."""
    pg = _resolve(group)
    if pg in _coalescing:
        raise ValueError("ProcessGroup has non-empty op list at the start of coalescing")
    _coalescing[pg] = []
    manager = _CoalescingManager()
    try:
        yield manager
        calls = _coalescing.pop(pg)
        if len({call[0] for call in calls}) > 1:
            raise RuntimeError("Coalescing manager requires that all collectives be of the same type")
        if calls:
            manager.append(_begin_coalesced(pg, calls, async_ops))
        if not async_ops:
            manager.wait()
    finally:
        _coalescing.pop(pg, None)


def _begin_coalesced(pg: Any, calls: list[tuple[str, Any, Any, Any]], async_ops: bool) -> Any:
    kind, _, _, op = calls[0]
    inputs, outputs = [call[1] for call in calls], [call[2] for call in calls]
    if kind == "all_reduce":
        return pg.allreduce_coalesced(inputs, AllreduceCoalescedOptions(reduceOp=op))
    if kind == "all_gather_into_tensor":
        return pg.allgather_into_tensor_coalesced(outputs, inputs)
    return pg.reduce_scatter_tensor_coalesced(outputs, inputs, ReduceScatterOptions(reduceOp=op))


def _broadcast_coalesced(pg: ProcessGroup, tensors: Sequence[Tensor], buffer_size: int, src: int = 0) -> None:
    """Sends tensors of rank `src` to all, joined to messages of about `buffer_size` bytes."""
    pending = []
    with no_grad():
        for part in _parts_by_dtype(tensors, buffer_size):
            flat = _core.cat([t.detach().reshape(-1) for t in part])
            pending.append((pg.broadcast([flat], BroadcastOptions(rootRank=src)), flat, part))  # type: ignore[attr-defined]
        for work, flat, part in pending:
            work.wait()
            at = 0
            for tensor in part:
                tensor.detach().copy_(flat[at : at + tensor.numel()].reshape(tensor.shape))
                at += tensor.numel()


def _parts_by_dtype(tensors: Sequence[Tensor], limit: int) -> list[list[Tensor]]:
    """Tensors of the same dtype and device, in parts of at most `limit` bytes."""
    parts: list[list[Tensor]] = []
    open_parts: dict[Any, tuple[list[Tensor], int]] = {}
    for tensor in tensors:
        kind, size = (tensor.dtype, tensor.device), tensor.numel() * tensor.element_size()
        part, used = open_parts.get(kind, ([], 0))
        if not part or used + size > limit:
            part, used = [], 0
            parts.append(part)
        part.append(tensor)
        open_parts[kind] = (part, used + size)
    return parts
