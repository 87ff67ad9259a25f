"""The launcher of one machine: starts its workers, watches over them, ends all when one fails, and starts them again."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import string
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from ..elastic.multiprocessing.api import SignalException
from ..elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, get_error_handler
from ..elastic.multiprocessing.std import Std, of_rank
from . import shared_memory
from .nodes import Nodes
from .worker import Outputs, Worker, start_command, start_function

__all__ = ["Agent"]

# Seconds from SIGTERM to SIGKILL.
_PATIENCE = 30
_PREFIX = "[${role_name}${local_rank}]:"
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


class _Signals:
    """Notes signals, so that workers are ended before the launcher; while there are none, a signal raises at once."""

    def __init__(self, names: str) -> None:
        self._numbers = [
            getattr(signal, name) for name in filter(None, map(str.strip, names.split(","))) if hasattr(signal, name)
        ]
        self._old: dict[int, Any] = {}
        self.received: list[int] = []
        self.raises = True

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            for number in self._numbers:
                if signal.getsignal(number) != signal.SIG_IGN:  # `nohup` keeps its promise.
                    self._old[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: Any) -> None:
        self.received.append(number)
        if self.raises:
            self.raise_received()

    def raise_received(self) -> None:
        if self.received:
            number = self.received[0]
            raise SignalException(f"Process {os.getpid()} got signal: {number}", signal.Signals(number))


class Agent:
    """The launcher of one machine."""

    def __init__(self, config: Any, entrypoint: Callable[..., Any] | str, args: list[Any]) -> None:
        self._config, self._entrypoint, self._args = config, entrypoint, args
        patience = config.shutdown_timeout
        if patience is None:
            patience = float(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", _PATIENCE))
        self._patience: float = patience
        self._nodes = Nodes(config)
        self._signals = _Signals(config.signals_to_handle)
        self._attempt = 0
        self._workers: list[Worker] = []
        self._ended = threading.Event()  # A worker has.
        self._shared = shared_memory.list_files()
        self._folder = ""

    # Workers.

    def _prepare_folder(self) -> None:
        logs = self._config.logs_specs
        if logs.log_dir:
            os.makedirs(logs.log_dir, exist_ok=True)
            self._folder = tempfile.mkdtemp(prefix=f"{self._nodes.run_id}_", dir=logs.log_dir)
        else:
            self._folder = tempfile.mkdtemp(prefix="gradiron_run_")

    def _environment(self, local_rank: int, sizes: list[int]) -> dict[str, str]:
        config, nodes = self._config, self._nodes
        rank, size = sum(sizes[: nodes.number]) + local_rank, sum(sizes)
        own = {
            "LOCAL_RANK": local_rank,
            "RANK": rank,
            "GROUP_RANK": nodes.number,
            "ROLE_RANK": rank,
            "ROLE_NAME": config.role,
            "LOCAL_WORLD_SIZE": config.nproc_per_node,
            "WORLD_SIZE": size,
            "GROUP_WORLD_SIZE": nodes.count,
            "ROLE_WORLD_SIZE": size,
            "MASTER_ADDR": nodes.store.host,
            "MASTER_PORT": nodes.store.port,
            "TORCHELASTIC_RESTART_COUNT": self._attempt,
            "TORCHELASTIC_MAX_RESTARTS": nodes.max_restarts,
            "TORCHELASTIC_RUN_ID": nodes.run_id,
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_SIGNALS_TO_HANDLE": config.signals_to_handle,
            "TORCHELASTIC_ERROR_FILE": os.path.join(self._place(local_rank), "error.json"),
        }
        environment = {**os.environ, **{name: str(value) for name, value in own.items()}}
        if "OMP_NUM_THREADS" not in os.environ and config.nproc_per_node > 1:
            from .api import count_processors

            environment["OMP_NUM_THREADS"] = str(max(1, count_processors() // config.nproc_per_node))
        environment["GRADIRON_AS_TORCH"] = "1"  # Also a command that is no Python program may start one.
        for name in [name for name in environment if name.startswith(("PMI", "HYDI_", "OMPI_"))]:
            del environment[name]  # The launcher may itself run under an MPI launcher.
        return environment

    def _place(self, local_rank: int) -> str:
        """The folder of a worker's files."""
        return os.path.join(self._folder, f"attempt_{self._attempt}", str(local_rank))

    def _outputs(self, local_rank: int, rank: int) -> Outputs:
        logs, words = self._config.logs_specs, {"role_name": self._config.role, "local_rank": local_rank, "rank": rank}
        template = self._config.log_line_prefix_template or _PREFIX
        prefix = string.Template(template).safe_substitute(words, hostname=os.uname().nodename if hasattr(os, "uname") else "")
        outputs = Outputs(prefix=prefix)
        is_shown = logs.local_ranks_filter is None or local_rank in logs.local_ranks_filter
        redirects, tee = of_rank(logs.redirects, local_rank), of_rank(logs.tee, local_rank)
        for flag, number, name in ((Std.OUT, 1, "stdout.log"), (Std.ERR, 2, "stderr.log")):
            if flag & (redirects | tee):
                outputs.files[number] = os.path.join(self._place(local_rank), name)
                if flag & tee and is_shown:
                    outputs.shown.append(number)
            elif not is_shown:
                outputs.files[number] = os.devnull
        return outputs

    def _start(self, sizes: list[int]) -> None:
        self._workers = []
        self._ended.clear()
        for local_rank in range(self._config.nproc_per_node):
            os.makedirs(self._place(local_rank))
            environment = self._environment(local_rank, sizes)
            rank, error_file = int(environment["RANK"]), environment["TORCHELASTIC_ERROR_FILE"]
            outputs = self._outputs(local_rank, rank)
            if callable(self._entrypoint):
                method, result = self._config.start_method, self._result_file(local_rank)
                process = start_function(self._entrypoint, self._args, environment, outputs, method, result)
            else:
                words = [str(word).replace("${local_rank}", str(local_rank)) for word in self._args]
                process = start_command([self._entrypoint, *words], environment, outputs)
            self._workers.append(Worker(rank, local_rank, error_file, process, outputs))
        for worker in self._workers:
            worker.watch(self._ended)

    def _result_file(self, local_rank: int) -> str:
        return os.path.join(self._place(local_rank), "result")

    def _results(self) -> dict[int, Any]:
        if not callable(self._entrypoint):
            return {worker.rank: None for worker in self._workers}
        results = {}
        for worker in self._workers:
            with open(self._result_file(worker.local_rank), "rb") as file:
                results[worker.rank] = pickle.load(file)
        return results

    def _end_workers(self, number: int = signal.SIGTERM) -> None:
        """Asks all workers to end, and after a while, or at another signal, makes them."""
        heard = len(self._signals.received)
        for worker in self._workers:
            worker.send(number)
        deadline = time.monotonic() + self._patience
        while any(worker.exitcode is None for worker in self._workers):
            self._ended.clear()
            if time.monotonic() >= deadline or len(self._signals.received) > heard:
                break
            self._ended.wait(0.02)
        for worker in self._workers:
            worker.send(_KILL)  # What a worker has started itself ends with it.
        for worker in self._workers:
            worker.join()
        shared_memory.remove_files(self._shared)

    # The life of a job.

    def run(self) -> dict[int, Any]:
        """Runs the job to its end; what each rank's function returned. Raises what went wrong."""
        with self._signals, contextlib.ExitStack() as last:
            last.callback(self._nodes.end, self._patience + 5)
            self._nodes.meet()
            self._prepare_folder()
            if not self._config.logs_specs.log_dir:
                last.callback(shutil.rmtree, self._folder, ignore_errors=True)
            while True:
                sizes = self._nodes.begin(self._attempt)
                if (lost := self._run_once(sizes)) is None:
                    return self._results()
                rank, failure = lost.get_first_failure()
                if self._attempt >= self._nodes.max_restarts:
                    self._tell_own_starter(rank)
                    raise lost
                self._attempt += 1
                print(
                    f"gradiron-run: rank {rank} failed (exitcode: {failure.exitcode}): all ranks start again, "
                    f"{self._attempt} of {self._nodes.max_restarts} times",
                    file=sys.stderr,
                )

    def _run_once(self, sizes: list[int]) -> ChildFailedError | None:
        """Runs the workers until all have succeeded, or one has failed."""
        self._signals.raises = False
        try:
            self._start(sizes)
            return self._watch()
        except BaseException as error:
            number = error.sigval if isinstance(error, SignalException) else signal.SIGTERM
            self._nodes.tell_end(f"it ended its workers ({type(error).__name__}: {error})")
            self._end_workers(number)
            raise
        finally:
            self._signals.raises = True

    def _watch(self) -> ChildFailedError | None:
        """Waits until the workers of all machines have succeeded, or one has failed."""
        told = False
        while True:
            self._signals.raise_received()
            codes = [worker.exitcode for worker in self._workers]
            if any(codes):
                return self._collect(None)
            if text := self._nodes.failure():
                told_by_other = self._nodes.read_failure(text)
                if isinstance(told_by_other, str):
                    raise RuntimeError(told_by_other)
                return self._collect(told_by_other)
            if None not in codes:
                if not told:
                    self._nodes.tell_success()
                    told = True
                if self._nodes.have_all_succeeded():
                    for worker in self._workers:
                        worker.join()
                    return None
            self._ended.wait(self._config.monitor_interval)
            self._ended.clear()

    def _describe(self, worker: Worker) -> ProcessFailure:
        assert worker.exitcode is not None
        failure = ProcessFailure(worker.local_rank, worker.pid, worker.exitcode, worker.error_file, worker.ended_at)
        if not self._config.logs_specs.log_dir:
            failure.error_file = "<N/A>"  # It ends with the launcher; what it says stands in the table.
        return failure

    def _tell_own_starter(self, rank: int) -> None:
        """A launcher may itself be a worker of another, which reads what has happened."""
        for worker in self._workers:
            if worker.rank == rank:
                get_error_handler().dump_error_file(worker.error_file)

    def _collect(self, elsewhere: tuple[int, ProcessFailure] | None) -> ChildFailedError:
        """Ends the other workers; the failures by rank."""
        if elsewhere is None:
            failed = {worker.rank: self._describe(worker) for worker in self._workers if worker.exitcode}
            self._nodes.tell_failure(*ChildFailedError("", failed).get_first_failure())
        self._end_workers()
        failures = {worker.rank: self._describe(worker) for worker in self._workers if worker.exitcode}
        if elsewhere is not None:
            rank, failure = elsewhere
            # It is the cause, whatever the other machine's clock says.
            failure.timestamp = min([failure.timestamp, *(other.timestamp for other in failures.values())])
            failures = {rank: failure, **failures}
        return ChildFailedError(self._name(), failures)

    def _name(self) -> str:
        if callable(self._entrypoint):
            return self._entrypoint.__qualname__
        return str(self._config.name or self._entrypoint)
