"""`save` and `load` of state that every rank has whole."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from .. import distributed_c10d as c10d
from .filesystem import FileSystemReader, FileSystemWriter
from .stateful import Stateful

__all__ = ["CheckpointException", "async_save", "load", "save"]


class CheckpointException(RuntimeError):
    """A checkpoint could not be written or read."""


def _is_alone(process_group: Any, no_dist: bool) -> bool:
    return no_dist or not c10d.is_initialized() or c10d.get_world_size(process_group) == 1


def _states(state_dict: dict[str, Any]) -> dict[str, Any]:
    return {key: value.state_dict() if _is_stateful(value) else value for key, value in state_dict.items()}


def _is_stateful(value: Any) -> bool:
    return isinstance(value, Stateful) and not isinstance(value, Tensor)


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> None:
    """Writes a state into a folder: the first rank writes, the others wait, and all raise if it fails."""
    writer = storage_writer if storage_writer is not None else FileSystemWriter(_place(checkpoint_id))
    told: list[Any] = [None]
    alone = _is_alone(process_group, no_dist)
    if not alone:
        # A state that a dead rank never reached must not replace the last one.
        c10d.barrier(process_group)
    if alone or c10d.get_rank(process_group) == 0:
        try:
            writer.write(_states(state_dict))
        except Exception as error:
            if alone:
                raise
            told = [f"{type(error).__name__}: {error}"]
    if not alone:
        from ..objects import broadcast_object_list

        broadcast_object_list(told, group=process_group, group_src=0)
        if told[0] is not None:
            raise CheckpointException(f"rank 0 could not write the checkpoint: {told[0]}")


def async_save(state_dict: dict[str, Any], **options: Any) -> Future[None]:
    """Copies a state, and writes the copy in another thread. Only the thread that writes waits."""
    copied = {key: _copied(value) for key, value in _states(state_dict).items()}
    if not _is_alone(options.get("process_group"), options.get("no_dist", False)):
        writes = c10d.get_rank(options.get("process_group")) == 0
        options = {**options, "no_dist": True}
        if not writes:
            done: Future[None] = Future()
            done.set_result(None)
            return done
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(lambda: save(copied, **options))
    finally:
        pool.shutdown(wait=False)


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_copied, value))
    return value


def _place(checkpoint_id: Any) -> Any:
    if checkpoint_id is None:
        raise ValueError("Must specify either storage_writer or checkpoint_id")
    return checkpoint_id


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Reads into `state_dict` what its keys name: tensors in place, other values by replacing them."""
    reader = storage_reader if storage_reader is not None else FileSystemReader(_place(checkpoint_id))
    _fill(state_dict, reader.read(), "", getattr(planner, "allow_partial_load", False))


def _fill(into: dict[str, Any], found: dict[str, Any], prefix: str, partial: bool) -> None:
    for key, value in into.items():
        name = f"{prefix}{key}"
        if key not in found:
            if partial:
                continue
            raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
        new = found[key]
        if isinstance(value, Tensor):
            if value.shape != new.shape:
                raise ValueError(f"Size mismatch between saved {tuple(new.shape)} and current: {tuple(value.shape)} for {name}")
            with no_grad():
                value.detach().copy_(new)
        elif _is_stateful(value):
            value.load_state_dict(new)
        elif isinstance(value, dict):
            _fill(value, new, f"{name}.", partial)
        else:
            into[key] = new
