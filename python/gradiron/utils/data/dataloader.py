"""The data loader, which makes batches in this process or in worker processes."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing as python_multiprocessing
import os
import pickle
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import connection as _connection
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import WeakSet

from ... import _core
from ..._utils import ExceptionWrapper, cpu_count
from . import _utils
from ._utils import worker as _worker
from ._utils.collate import default_collate, default_convert
from ._utils.worker import get_worker_info
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

# Names that other packages write types with.
_collate_fn_t: TypeAlias = Callable[[Any], Any]
_worker_init_fn_t: TypeAlias = Callable[[int], None]

_T_co = TypeVar("_T_co", covariant=True)

# The parents' ends of all connections to workers.
_ends: WeakSet[Any] = WeakSet()


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> Any:
        made = _utils.fetch._MapDatasetFetcher if kind == _DatasetKind.Map else _utils.fetch._IterableDatasetFetcher
        return made(dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler[None]):
    """For datasets that need no index."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(Generic[_T_co]):
    """Iterate over batches of a dataset, optionally shuffled and loaded by worker processes.

    Args:
        dataset: `Dataset` or `IterableDataset`; any sequence will do.
        batch_size: number of samples per batch; `None` gives single samples, converted but not batched. Default: `1`
        shuffle: draw the samples in a new random order in each epoch.
        sampler: sampler of indices, instead of `shuffle`.
        batch_sampler: sampler of lists of indices, instead of `batch_size`, `shuffle`, `sampler` and `drop_last`.
        num_workers: number of worker processes; 0 loads in this process. Default: `0`
        collate_fn: function that makes a batch of a list of samples; `default_collate` if `None`.
        pin_memory: copy tensors into pinned memory, if there is a GPU. Default: `False`
        drop_last: drop the last batch if it is smaller. Default: `False`
        timeout: seconds to wait for a batch of a worker; 0 waits forever. Default: `0`
        worker_init_fn: function of the worker's number, called first in each worker.
        multiprocessing_context: start method or context of the workers.
        generator: random number generator of `shuffle` and of the workers' seeds.
        prefetch_factor: number of batches that each worker loads ahead; 2 if `None`.
        persistent_workers: keep the workers from one epoch to the next. Default: `False`
        pin_memory_device: deprecated. Default: `""`
        in_order: return batches in order, not as they become ready. Default: `True`

    Examples:
        >>> data = torch.utils.data.TensorDataset(torch.arange(5), torch.ones(5))
        >>> for x, y in torch.utils.data.DataLoader(data, batch_size=2):
        ...     print(x)
        tensor([0, 1])
        tensor([2, 3])
        tensor([4])
    """

    _iterator: _BaseDataLoaderIter | None
    __initialized = False

    def __init__(
        self,
        dataset: Dataset[_T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self._dataset_kind = _DatasetKind.Iterable if isinstance(dataset, IterableDataset) else _DatasetKind.Map
        if self._dataset_kind == _DatasetKind.Iterable:
            _refuse_order(shuffle, sampler, batch_sampler)
        shuffle = bool(shuffle)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
            else:
                sampler = SequentialSampler(dataset)  # type: ignore[arg-type]
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)  # type: ignore[arg-type]
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called: int | None = None
        self._iterator = None
        self.check_worker_number_rationality()

    @property
    def multiprocessing_context(self) -> Any:
        """Context in which the worker processes are started."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, given: Any) -> None:
        if given is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            if isinstance(given, str):
                methods = python_multiprocessing.get_all_start_methods()
                if given not in methods:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                        f"multiprocessing_context={given!r}"
                    )
                given = python_multiprocessing.get_context(given)
            if not isinstance(given, python_multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start method, "
                    f"but got multiprocessing_context={given}"
                )
        self.__multiprocessing_context = given

    def __setattr__(self, attr: str, val: Any) -> None:
        if self.__initialized and attr in (
            "batch_size",
            "batch_sampler",
            "sampler",
            "drop_last",
            "dataset",
            "persistent_workers",
        ):
            raise ValueError(f"{attr} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(attr, val)

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not self.persistent_workers:
            return self._get_iterator()
        if self._iterator is None or self._iterator._shutdown:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        # The length is what the user states; more samples cause a warning.
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn if there are more workers than cores."""
        cores = cpu_count()
        if not self.num_workers or (cores is not None and self.num_workers <= cores):
            return
        suggested = "DataLoader is not able to compute a suggested max number of worker in current system."
        if cores is not None:
            unseen = "" if hasattr(os, "sched_getaffinity") else " (`cpuset` is not taken into account)"
            suggested = (
                f"Our suggested max number of worker in current system is {cores}{unseen}, which is smaller than what this "
                "DataLoader is going to create."
            )
        warnings.warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. {suggested} Please be aware that "
            "excessive worker creation might get DataLoader running slow or even freeze, lower the worker number to avoid "
            "potential slowness/freeze if necessary.",
            stacklevel=3,
        )


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _refuse_order(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """An iterable dataset has an order of its own."""
    for name, given in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
        if given is not None:
            raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={given}")


class _BaseDataLoaderIter:
    """One walk through the batches."""

    _shutdown = False

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._pin_memory = loader.pin_memory and _may_pin(loader)
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = draw_seed(loader.generator)
        self._persistent_workers = loader.persistent_workers
        self._num_yielded = 0
        self._profile_name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        if _core.profiler_enabled():
            from ...autograd.profiler import record_function

            with record_function(self._profile_name):
                data = self._next_data()
        else:
            data = self._next_data()
        self._num_yielded += 1
        promised = self._IterableDataset_len_called
        if self._dataset_kind == _DatasetKind.Iterable and promised is not None and self._num_yielded > promised:
            message = (
                f"Length of IterableDataset {self._dataset} was reported to be {promised}(when accessing len(dataloader)), but "
                f"{self._num_yielded} samples have been fetched. "
            )
            if self._num_workers > 0:
                message += (
                    "For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset "
                    "replica at each worker."
                )
            warnings.warn(message, stacklevel=2)
        return _utils.pin_memory.pin_memory(data) if self._pin_memory else data

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


def _may_pin(loader: DataLoader[Any]) -> bool:
    from ... import cuda

    if loader.pin_memory_device:
        warnings.warn(
            "pin_memory_device is deprecated, the current accelerator will be used as the device,ignore "
            f"pin_memory_device='{loader.pin_memory_device}'.",
            stacklevel=5,
        )
    if not cuda.is_available():
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
            stacklevel=5,
        )
        return False
    return True


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        options = (self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last)
        self._dataset_fetcher = _DatasetKind.create_fetcher(*options)

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(self._next_index())


class _Worker:
    """A worker process, as the loader sees it."""

    def __init__(self, context: Any, plan: _worker.Plan) -> None:
        from ...multiprocessing._channel import Channel

        ours, theirs = context.Pipe()
        _ends.add(ours)
        forked = context.get_start_method() == "fork"
        others = list(_ends) if forked else []
        self.process = context.Process(target=_worker._worker_loop, args=(plan, theirs, others), daemon=True)
        try:
            self.process.start()
        except (TypeError, AttributeError, pickle.PicklingError):
            warnings.warn(
                "Got pickle error when attempting to start a worker Process. This might be because the worker Process "
                "arguments are not picklable. Python 3.14+ changed the multiprocessing start method in non-Mac POSIX platforms "
                "to 'forkserver', which requires the worker Process arguments to be picklable. You can also try "
                "multiprocessing.set_start_method('fork').",
                stacklevel=6,
            )
            raise
        theirs.close()
        self.connection = ours
        self.channel = Channel(ours)
        # Whether it is given tasks, and how many it has.
        self.active = True
        self.tasks = 0

    def __getattr__(self, name: str) -> Any:
        """What is asked of the process: `pid`, `is_alive`."""
        return getattr(self.process, name)

    def end(self) -> None:
        """Tells it to end, if it is there to be told."""
        self.active = False
        with contextlib.suppress(OSError):
            self.channel.send(None)

    def error(self) -> RuntimeError:
        """How it has ended."""
        self.process.join(1)
        pid, code = self.process.pid, self.process.exitcode
        if code is not None and code < 0:
            why = f"is killed by signal: {signal.strsignal(-code)}. "
        else:
            why = (
                f"exited unexpectedly with exit code {code}. Details are lost due to multiprocessing. Rerunning with "
                "num_workers=0 may give better error trace."
            )
        return RuntimeError(f"DataLoader worker (pid {pid}) {why}")


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._pid = os.getpid()
        self._prefetch_factor = loader.prefetch_factor or 0
        self._in_order = loader.in_order
        self._epoch = 0
        self._workers: list[_Worker] = []
        if self._num_workers <= 0 or self._prefetch_factor <= 0:
            raise AssertionError("num_workers and prefetch_factor must be greater than 0 for multi-process loading")
        context = loader.multiprocessing_context or python_multiprocessing.get_context()
        with contextlib.suppress(ImportError):
            # It is seeded in workers; imported here, it is there in those that are forked.
            import numpy  # noqa: F401
        try:
            for i in range(self._num_workers):
                self._workers.append(_Worker(context, self._plan(loader, i)))
            self._reset(loader, first_iter=True)
        except BaseException:
            self._shutdown_workers()
            raise

    def _plan(self, loader: DataLoader[Any], i: int) -> _worker.Plan:
        options = (self._auto_collation, self._collate_fn, self._drop_last, self._base_seed, loader.worker_init_fn)
        return _worker.Plan(self._dataset_kind, self._dataset, *options, i, self._num_workers)

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        self._epoch += 1
        # The number of the next task to be sent, and of the next batch to be given.
        self._send_idx = self._rcvd_idx = 0
        # The worker of each batch, and batches that arrived before their turn.
        self._tasks: dict[int, _Worker] = {}
        self._early: dict[int, tuple[_Worker, Any]] = {}
        self._turns = itertools.cycle(self._workers)
        for worker in self._workers:
            worker.active, worker.tasks = True, 0
            if not first_iter:
                self._send(worker, _worker.Resume(self._epoch))
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _send(self, worker: _Worker, message: Any) -> None:
        try:
            worker.channel.send(message)
        except OSError:
            raise self._lost([worker]) from worker.error()

    def _lost(self, workers: list[_Worker]) -> RuntimeError:
        pids = ", ".join(str(worker.process.pid) for worker in workers)
        for worker in workers:
            worker.active = False
        self._shutdown_workers()
        return RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly")

    def _try_put_index(self) -> None:
        try:
            index = self._next_index()
        except StopIteration:
            return
        active = sum(worker.active for worker in self._workers)
        most = self._prefetch_factor * self._num_workers
        for worker in itertools.islice(self._turns, self._num_workers):
            if worker.active and (self._in_order or worker.tasks < most // active):
                break
        else:
            return
        released = worker.channel.take_released()
        self._send(worker, _worker.Task(self._epoch, self._send_idx, index, released))
        self._tasks[self._send_idx] = worker
        worker.tasks += 1
        self._send_idx += 1

    def _next_data(self) -> Any:
        while True:
            # Skip the batches of workers that have ended.
            while self._rcvd_idx < self._send_idx and self._rcvd_idx not in self._early:
                worker = self._tasks.get(self._rcvd_idx)
                if worker is not None and worker.active:
                    break
                self._tasks.pop(self._rcvd_idx, None)
                self._rcvd_idx += 1
            if self._rcvd_idx >= self._send_idx:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            if self._rcvd_idx in self._early:
                worker, data = self._early.pop(self._rcvd_idx)
                self._rcvd_idx += 1
                return self._process_data(worker, data)
            worker, number, data = self._get_data()
            self._tasks.pop(number, None)
            if isinstance(data, _worker.Exhausted):
                worker.active = False
                if not self._persistent_workers:
                    worker.end()
                self._try_put_index()
            elif number == self._rcvd_idx or not self._in_order:
                self._rcvd_idx += number == self._rcvd_idx
                return self._process_data(worker, data)
            else:
                self._early[number] = worker, data

    def _get_data(self) -> tuple[_Worker, int, Any]:
        """The next batch that comes, whoever made it. A worker that is gone is an error at once."""
        if self._shutdown:
            raise AssertionError("Invalid iterator state: shutdown or no outstanding tasks when fetching next data")
        until = time.monotonic() + self._timeout if self._timeout > 0 else None
        while True:
            active = [worker for worker in self._workers if worker.active]
            ends: dict[Any, _Worker] = {worker.connection: worker for worker in active}
            ends.update((worker.process.sentinel, worker) for worker in active)
            left = None if until is None else max(0.0, until - time.monotonic())
            ready = _connection.wait(list(ends), left)
            if not ready:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
            # Its pipe and its process may both tell of the end.
            lost: dict[int, _Worker] = {}
            for end in ready:
                worker = ends[end]
                try:
                    # What was sent before the end counts.
                    if worker.connection.poll():
                        done = worker.channel.receive()
                        if done.epoch == self._epoch:
                            return worker, done.number, done.data
                    elif end is worker.process.sentinel:
                        lost[id(worker)] = worker
                except (EOFError, OSError) as error:
                    _tell_of_open_files(error)
                    lost[id(worker)] = worker
            if lost:
                gone = list(lost.values())
                raise self._lost(gone) from gone[0].error()

    def _process_data(self, worker: _Worker, data: Any) -> Any:
        worker.tasks -= 1
        self._try_put_index()
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return data

    def _shutdown_workers(self) -> None:
        # In a forked process the iterator is a copy, and the workers belong to the parent.
        if self._shutdown or getattr(self, "_pid", None) != os.getpid():
            return
        self._shutdown = True
        for worker in self._workers:
            worker.end()
            worker.connection.close()
        until = time.monotonic() + _utils.MP_STATUS_CHECK_INTERVAL
        for worker in self._workers:
            worker.process.join(max(0.0, until - time.monotonic()))
            for end in (worker.process.terminate, worker.process.kill):
                if worker.process.is_alive():
                    end()
                    worker.process.join(_utils.MP_STATUS_CHECK_INTERVAL)

    def __del__(self) -> None:
        # At exit the interpreter ends its daemon processes itself.
        with contextlib.suppress(Exception):
            self._shutdown_workers()


def _tell_of_open_files(error: Exception) -> None:
    import errno

    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        raise RuntimeError(
            "Too many open files. Communication with the workers is no longer possible. Please increase the limit using "
            "`ulimit -n` in the shell"
        ) from None
