"""The main loop of a worker process of the data loader."""

from __future__ import annotations

import os
import random
import select
import sys
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .... import _core
from ...._utils import ExceptionWrapper
from ....multiprocessing._channel import Channel

# How long to wait, in seconds, before looking whether the parent is still there.
_CHECK = 5.0


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker knows of itself."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return what a worker process knows of itself, or `None` outside of a worker.

    The result has the attributes `id`, `num_workers`, `seed` and `dataset` (the worker's copy).

    Examples:
        >>> torch.utils.data.get_worker_info() is None
        True
    """
    return _worker_info


@dataclass(frozen=True)
class Task:
    """A batch to make. Of an epoch that was given up the batches are not wanted."""

    epoch: int
    number: int
    index: Any
    # The memory of batches that the loader has let go of.
    released: tuple[int, ...] = ()


@dataclass(frozen=True)
class Resume:
    """A new epoch begins."""

    epoch: int


@dataclass(frozen=True)
class Done:
    """A batch, or why there is none."""

    epoch: int
    number: int
    data: Any


@dataclass(frozen=True)
class Exhausted:
    """An iterable dataset has ended."""


@dataclass(frozen=True)
class Plan:
    """All that a worker needs to know."""

    dataset_kind: int
    dataset: Any
    auto_collation: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    base_seed: int
    init_fn: Callable[[int], Any] | None
    worker_id: int
    num_workers: int


class _Parent:
    """The loader's end, as the worker sees it."""

    def __init__(self, connection: Any) -> None:
        self._channel = Channel(connection)
        self._connection = connection
        self._pid = os.getppid()
        self._waiting: deque[Any] = deque()

    def _take(self) -> None:
        message = self._channel.receive()
        if isinstance(message, Task):
            self._channel.reclaim(message.released)
        if message is None or isinstance(message, Resume):
            self._waiting.clear()
        self._waiting.append(message)

    def receive(self) -> Any:
        """The next thing to do; None at the end, also if the parent is gone."""
        try:
            while not self._waiting:
                if self._connection.poll(_CHECK):
                    self._take()
                elif os.getppid() != self._pid:
                    return None
            while self._connection.poll(0):
                self._take()
        except (EOFError, OSError):
            return None
        return self._waiting.popleft()

    def send(self, message: Any) -> None:
        """Sends a result. Meanwhile it takes what comes, so that the parent never waits for room in the pipe."""
        file = self._connection.fileno()
        while sys.platform != "win32":
            readable, writable, _ = select.select([file], [file], [])
            if writable:
                break
            if readable:
                self._take()
        self._channel.send(message)


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """The state that NumPy's `SeedSequence((worker_id, base_seed, base_seed >> 32))` generates first."""
    mask = 0xFFFFFFFF
    constant = 0x43B0D7E5

    def hashed(value: int, factor: int) -> int:
        nonlocal constant
        value ^= constant
        constant = constant * factor & mask
        value = value * constant & mask
        return value ^ value >> 16

    pool = [hashed(value, 0x931E8875) for value in (worker_id, base_seed & mask, base_seed >> 32, 0)]
    for source in range(4):
        for target in range(4):
            if source != target:
                mixed = (0xCA01F9DD * pool[target] - 0x4973F715 * hashed(pool[source], 0x931E8875)) & mask
                pool[target] = mixed ^ mixed >> 16
    constant = 0x8B51F9DD
    return [hashed(value, 0x58F38DED) for value in pool]


def _seed(base_seed: int, worker_id: int) -> int:
    """Every worker draws other numbers, and after the same seed of the loader the same ones."""
    seed = base_seed + worker_id
    random.seed(seed)
    from ....random import manual_seed

    manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(_generate_state(base_seed, worker_id))
    return seed


def _worker_loop(plan: Plan, connection: Any, others: Iterable[Any]) -> None:
    """Makes batches until there is nothing more to do."""
    # What a fork has copied is the parent's: were it open here, nobody would notice the end of the parent.
    for other in others:
        other.close()
    parent = _Parent(connection)
    try:
        _work(plan, parent)
    except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
        # The parent is interrupted as well, or gone.
        pass
    finally:
        connection.close()


def _work(plan: Plan, parent: _Parent) -> None:
    global _worker_info
    _core.set_num_threads(1)
    seed = _seed(plan.base_seed, plan.worker_id)
    _worker_info = WorkerInfo(plan.worker_id, plan.num_workers, seed, plan.dataset)
    from ..dataloader import _DatasetKind

    where = f"in DataLoader worker process {plan.worker_id}"
    options = (plan.dataset_kind, plan.dataset, plan.auto_collation, plan.collate_fn, plan.drop_last)
    failed: Any = None
    fetcher: Any = None
    try:
        if plan.init_fn is not None:
            plan.init_fn(plan.worker_id)
        fetcher = _DatasetKind.create_fetcher(*options)
    except Exception:
        failed = ExceptionWrapper(where=where)
    ended = False
    while (task := parent.receive()) is not None:
        if isinstance(task, Resume):
            ended = False
            fetcher = _DatasetKind.create_fetcher(*options)
            continue
        if ended:
            continue
        data: Any
        if failed is not None:
            data, failed = failed, None
        else:
            try:
                data = fetcher.fetch(task.index)
            except Exception as error:
                ended = isinstance(error, StopIteration) and plan.dataset_kind == _DatasetKind.Iterable
                data = Exhausted() if ended else ExceptionWrapper(where=where)
        try:
            parent.send(Done(task.epoch, task.number, data))
        except (BrokenPipeError, ConnectionResetError):
            raise
        except Exception:
            # It cannot be pickled, and perhaps its exception cannot either.
            wrapped = ExceptionWrapper(where=where)
            if isinstance(data, ExceptionWrapper):
                wrapped = data
                wrapped.exc_type = RuntimeError
            parent.send(Done(task.epoch, task.number, wrapped))
        del data, task
