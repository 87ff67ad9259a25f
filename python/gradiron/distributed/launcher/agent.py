"""The launcher of one machine: starts its workers, watches over them, ends all when one fails, and starts them again."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ..elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from ..elastic.multiprocessing.std import of_rank
from ..store import DistNetworkError, TCPStore
from .worker import Worker, start_command, start_function

__all__ = ["Agent", "SignalException"]

# Seconds from SIGTERM to SIGKILL.
GRACE = 30.0
_SHARED_MEMORY = "/dev/shm"


class SignalException(Exception):
    """A signal ended the launcher."""

    def __init__(self, number: int) -> None:
        super().__init__(f"Process {os.getpid()} got signal: {number}")
        self.sigval = signal.Signals(number)


class Agent:
    """The launcher of one machine."""

    def __init__(self, config: Any, entrypoint: Callable[..., Any] | str, args: list[Any]) -> None:
        self._config, self._entrypoint, self._args = config, entrypoint, args
        self._store: Any = None
        self._node = 0
        self._attempt = 0
        self._workers: list[Worker] = []
        self._errors = tempfile.mkdtemp(prefix="gradiron_run_")
        self._is_host = False

    # How the launchers of several machines find each other.

    def _meet(self) -> None:
        """Opens the store of the job, or finds it; this machine's number follows."""
        config = self._config
        host, _, port_text = config.rdzv_endpoint.partition(":")
        port = int(port_text) if port_text else 29400
        nodes = config.max_nodes
        timeout = timedelta(seconds=config.rdzv_timeout if config.rdzv_timeout > 0 else 900)
        if nodes == 1:
            self._store = TCPStore(host or "127.0.0.1", port if config.rdzv_endpoint else 0, None, True, timeout, False)
            self._is_host = True
            return
        given = config.rdzv_configs.get("rank")
        if given is not None:
            self._node, self._is_host = int(given), int(given) == 0
            self._store = TCPStore(host, port, None, self._is_host, timeout, False)
        else:
            try:
                self._store = TCPStore(host, port, None, True, timeout, False)
                self._is_host = True
            except (DistNetworkError, OSError, RuntimeError):
                self._store = TCPStore(host, port, None, False, timeout, False)
            # The machine with the store is the first, whose address all ranks are told.
            if self._is_host:
                self._store.set("host", b"1")
            else:
                self._store.wait(["host"], timeout)
            self._node = 0 if self._is_host else int(self._store.add("nodes", 1))
            if self._node >= nodes:
                raise RuntimeError(f"more launchers have come to {config.rdzv_endpoint} than --nnodes {nodes}")
        self._store.set(f"node/{self._node}", socket.gethostname())
        self._store.wait([f"node/{node}" for node in range(nodes)], timeout)

    # Workers.

    def _environment(self, local_rank: int) -> dict[str, str]:
        config = self._config
        count = config.nproc_per_node
        rank, size = self._node * count + local_rank, config.max_nodes * count
        own = {
            "LOCAL_RANK": local_rank,
            "RANK": rank,
            "GROUP_RANK": self._node,
            "ROLE_RANK": rank,
            "ROLE_NAME": config.role,
            "LOCAL_WORLD_SIZE": count,
            "WORLD_SIZE": size,
            "GROUP_WORLD_SIZE": config.max_nodes,
            "ROLE_WORLD_SIZE": size,
            "MASTER_ADDR": self._store.host,
            "MASTER_PORT": self._store.port,
            "TORCHELASTIC_RESTART_COUNT": self._attempt,
            "TORCHELASTIC_MAX_RESTARTS": config.max_restarts,
            "TORCHELASTIC_RUN_ID": config.run_id,
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_ERROR_FILE": os.path.join(self._errors, f"attempt_{self._attempt}", str(local_rank), "error.json"),
        }
        environment = {**os.environ, **{name: str(value) for name, value in own.items()}}
        if "OMP_NUM_THREADS" not in os.environ:
            from .api import count_processors

            environment["OMP_NUM_THREADS"] = str(max(1, count_processors() // count))
        for name in [name for name in environment if name.startswith(("PMI", "HYDI_", "OMPI_"))]:
            del environment[name]  # The launcher may itself run under an MPI launcher.
        return environment

    def _logs(self, local_rank: int) -> str | None:
        config = self._config
        needed = of_rank(config.redirects, local_rank) or of_rank(config.tee, local_rank)
        if not needed:
            return None
        root = config.log_dir or tempfile.gettempdir()
        folder = os.path.join(root, f"{config.run_id}", f"attempt_{self._attempt}", str(local_rank))
        os.makedirs(folder, exist_ok=True)
        return folder

    def _start(self) -> None:
        self._workers = []
        self._shared = _shared_files()
        for local_rank in range(self._config.nproc_per_node):
            environment = self._environment(local_rank)
            if callable(self._entrypoint):
                worker = start_function(self._entrypoint, self._args, environment, self._config.start_method)
            else:
                worker = start_command(
                    [self._entrypoint, *self._args],
                    environment,
                    f"[{self._config.role}{environment['RANK']}]:",
                    of_rank(self._config.redirects, local_rank),
                    of_rank(self._config.tee, local_rank),
                    self._logs(local_rank),
                    shows=self._config.local_ranks_filter is None or local_rank in self._config.local_ranks_filter,
                )
            worker.rank = int(environment["RANK"])
            worker.error_file = environment["TORCHELASTIC_ERROR_FILE"]
            self._workers.append(worker)

    def _end_workers(self, number: int = signal.SIGTERM) -> None:
        """Asks all workers to end, and after a while makes them."""
        for worker in self._workers:
            worker.send(number)
        deadline = time.monotonic() + GRACE
        while any(worker.poll() is None for worker in self._workers) and time.monotonic() < deadline:
            time.sleep(0.02)
        for worker in self._workers:
            worker.send(signal.SIGKILL)  # What a worker has started itself ends with it.
            worker.wait()

    def _clean(self) -> None:
        """Removes the shared memory that workers which could not end in order have left."""
        if all(worker.poll() == 0 for worker in self._workers):
            return
        for name in _shared_files() - self._shared:
            path = os.path.join(_SHARED_MEMORY, name)
            if not _is_mapped(path):
                with contextlib.suppress(OSError):
                    os.unlink(path)

    # The life of a job.

    def run(self) -> dict[int, Any]:
        """Runs the job to its end; what each local rank's function returned. Raises what went wrong."""
        with _signals(self._config.signals_to_handle):
            try:
                self._meet()
                while True:
                    self._start()
                    failures = self._watch()
                    self._clean()
                    if failures is None:
                        return {at: worker.result() for at, worker in enumerate(self._workers)}
                    if self._attempt >= self._config.max_restarts:
                        raise ChildFailedError(self._name(), failures)
                    self._attempt += 1
                    self._gather(f"restart/{self._attempt}")
            except (SignalException, KeyboardInterrupt) as error:
                number = error.sigval if isinstance(error, SignalException) else signal.SIGINT
                self._end_workers(number)
                self._clean()
                raise
            except BaseException:
                self._end_workers()
                raise
            finally:
                shutil.rmtree(self._errors, ignore_errors=True)
                self._store = None

    def _name(self) -> str:
        if callable(self._entrypoint):
            return self._entrypoint.__qualname__
        words = [word for word in self._args if isinstance(word, str) and not word.startswith("-")]
        return next((word for word in words if word.endswith(".py")), words[-1] if words else str(self._entrypoint))

    def _gather(self, key: str) -> None:
        """Waits for the launchers of all machines."""
        if self._config.max_nodes > 1:
            self._store.set(f"{key}/{self._node}", b"1")
            self._store.wait([f"{key}/{node}" for node in range(self._config.max_nodes)], timedelta(seconds=60))

    def _watch(self) -> dict[int, ProcessFailure] | None:
        """Waits until all workers have succeeded (None), or one has failed, here or elsewhere."""
        failed, done = f"failed/{self._attempt}", f"done/{self._attempt}"
        several = self._config.max_nodes > 1
        asked, told = 0.0, False
        while True:
            codes = [worker.poll() for worker in self._workers]
            if any(code not in (None, 0) for code in codes):
                if several:
                    self._store.set(failed, str(self._node))
                return self._collect()
            if all(code == 0 for code in codes):
                if not several:
                    return None
                if not told:
                    told = True
                    self._store.add(done, 1)
            if several and time.monotonic() - asked > 0.5:
                asked = time.monotonic()
                if self._store.check([failed]):
                    return self._collect(elsewhere=self._store.get(failed).decode())
                if told and self._store.add(done, 0) >= self._config.max_nodes:
                    if self._is_host:
                        time.sleep(0.6)  # The other launchers read the same number before the store ends.
                    return None
            time.sleep(min(self._config.monitor_interval, 0.1))

    def _collect(self, elsewhere: str = "") -> dict[int, ProcessFailure]:
        """Ends the other workers; the failures by rank, the first with the earliest time."""
        first = [worker for worker in self._workers if worker.poll() not in (None, 0)]
        moment = time.time()
        self._end_workers()
        failures = {}
        for at, worker in enumerate(self._workers):
            if code := worker.poll():
                when = moment if worker in first else time.time()
                failures[worker.rank] = ProcessFailure(at, worker.pid, code, worker.error_file, when)
        if elsewhere and not first:
            print(f"gradiron-run: a worker of node {elsewhere} failed; see its launcher's output", file=sys.stderr)
        if not failures:
            worker = self._workers[0]
            failures[worker.rank] = ProcessFailure(0, worker.pid, 1, worker.error_file, moment, "")
        return failures


def _shared_files() -> set[str]:
    try:
        return {name for name in os.listdir(_SHARED_MEMORY) if name.startswith("mpich_shm_")}
    except OSError:
        return set()


def _is_mapped(path: str) -> bool:
    """Tells whether a process still has this memory."""
    for process in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{process}/maps") as maps:
            if any(path in line for line in maps):
                return True
    return False


@contextlib.contextmanager
def _signals(names: str) -> Any:
    """Turns signals into exceptions, so that workers are ended first."""

    def stop(number: int, frame: Any) -> None:
        raise SignalException(number)

    old = {}
    with contextlib.suppress(ValueError):  # Only the main thread may do so.
        for name in filter(None, (name.strip() for name in names.split(","))):
            number = getattr(signal, name, None)
            if number is not None:
                old[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
