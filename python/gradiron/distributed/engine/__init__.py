"""Starts the engine, once in a process, and watches over its ranks.

MPI cannot tell that a rank has died, so every rank keeps a connection to a store, which can.
"""

from __future__ import annotations

import atexit
import os
import socket
import sys
import time
import uuid
from datetime import timedelta
from typing import Any

from ... import _core
from . import mpi
from .alone import AloneCommunicator

__all__ = [
    "describe",
    "failure",
    "is_launched_for",
    "left",
    "note",
    "notes",
    "split",
    "start",
    "start_by_launcher",
    "was_forked",
]

# Seconds that a rank which ends stays for the others, so that what it has sent arrives.
_STAY = 2.0
# What MPICH shares per rank: 5.4 MB were measured with 2, 4 and 8 ranks.
_SHARED_BYTES = 6 << 20


class _Running:
    """The engine of this process, from its start to the end of the process."""

    def __init__(self, rank: int, size: int, address: tuple[str, int, str], server: Any, by_launcher: bool) -> None:
        self.rank, self.size, self.by_launcher = rank, size, by_launcher
        self.host, self.port, self.job = address
        self.server = server  # The store that watches over the ranks, where this rank keeps it.
        self.watch = _core._distributed.Watch(self.host, self.port, self.job, rank, size)


_running: _Running | None = None
_forked = False


def was_forked() -> bool:
    """Tells whether this process is a child of one in which the engine runs."""
    return _forked


def failure() -> str | None:
    """What has happened to another rank, if anything: "rank 1 ended (exit or signal)"."""
    return None if _running is None else _running.watch.failure()


def left() -> list[int]:
    """The ranks that have ended in order."""
    return [] if _running is None else _running.watch.left()


def note(text: str) -> None:
    """Says what this rank does now, for messages on other ranks."""
    if _running is not None:
        _running.watch.note(text)


def notes() -> list[str | None]:
    """What every rank does."""
    return [] if _running is None else _running.watch.notes()


def describe() -> str:
    """What runs, in words: "MPICH 5.0.2 by mpi4py 4.1.2, started by env://"."""
    if _running is None:
        return "not started: init_process_group has not been called, or with one rank"
    return mpi.describe()


def _machine() -> str:
    """A name for the memory that ranks of one machine share; host names differ between containers of one."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        return f"{boot}:{os.stat('/dev/shm').st_dev}"
    except OSError:
        return f"{socket.gethostname()}:{uuid.getnode():x}"


def _free_shared_memory() -> int:
    """How many bytes ranks of this machine can still share; -1 where that is not known."""
    try:
        state = os.statvfs("/dev/shm")
    except (AttributeError, OSError):
        return -1
    return state.f_bavail * state.f_frsize


def _check_shared_memory(machines: list[str], free: list[int]) -> None:
    """Raises on all ranks if a machine has too little memory to share: MPI would be killed when it touches it."""
    for machine in dict.fromkeys(machines):
        ranks = [rank for rank, other in enumerate(machines) if other == machine]
        needed, left = len(ranks) * _SHARED_BYTES, min(free[rank] for rank in ranks)
        if len(ranks) > 1 and 0 <= left < needed:
            raise RuntimeError(
                f"the {len(ranks)} ranks on the machine of rank {ranks[0]} need {needed >> 20} MB of shared memory, but "
                f"/dev/shm has {left / 2**20:.1f} MB left: remove files from it or make it larger (docker run --shm-size=1g)"
            )


def _process_mapping(machines: list[str]) -> str:
    """Return the ranks that share a machine, as PMI writes them: blocks of (machine, machines, ranks of each)."""
    numbers: dict[str, int] = {}
    blocks: list[list[int]] = []
    for machine in machines:
        number = numbers.setdefault(machine, len(numbers))
        if blocks and blocks[-1][0] == number:
            blocks[-1][1] += 1
        else:
            blocks.append([number, 1])
    return "(vector," + ",".join(f"({number},1,{count})" for number, count in blocks) + ")"


def _own_address(peer: str | None = None) -> str:
    """This machine's address as others see it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((peer or "10.255.255.255", 1))  # Sends nothing: it only chooses a route.
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def _innermost(store: Any) -> Any:
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    return store


def _gather_machines(store: Any, rank: int, size: int, timeout: timedelta) -> list[str]:
    """Waits until every rank has come to the store; the machine of each. They must have the memory to share."""
    store.set(f"machine/{rank}", f"{_machine()} {_free_shared_memory()}")
    deadline = time.monotonic() + timeout.total_seconds()
    while True:
        missing = [r for r in range(size) if not store.check([f"machine/{r}"])]
        if not missing:
            found = [store.get(f"machine/{r}").decode().rsplit(" ", 1) for r in range(size)]
            machines = [machine for machine, _ in found]
            _check_shared_memory(machines, [int(free) for _, free in found])
            return machines
        if time.monotonic() > deadline:
            names = ", ".join(map(str, missing))
            raise _timed_out(f"init_process_group timed out after {timeout.total_seconds():g} s: ranks {names} have not come")
        try:
            store.wait([f"machine/{missing[0]}"], timedelta(seconds=min(1.0, max(0.01, deadline - time.monotonic()))))
        except RuntimeError as error:
            if "timeout" not in str(error).lower():
                raise


def _timed_out(text: str) -> Exception:
    from ..store import DistStoreError

    return DistStoreError(text)


def check_start() -> None:
    """Raises what would keep the engine from starting, before any rank is waited for."""
    if _running is None and (problem := mpi.find_problem(by_launcher=False)):
        raise RuntimeError(problem)


def start(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    """Starts the engine with the ranks that come to a store; a communicator of all of them."""
    if size == 1:
        return AloneCommunicator()
    if _running is not None:
        return _start_again(store, rank, size, timeout)
    check_start()
    if not hasattr(_core._distributed, "serve_pmi"):
        raise RuntimeError("on this system ranks are started by mpiexec: mpiexec -n 2 python -m gradiron train.py")
    machines = _gather_machines(store, rank, size, timeout)
    address, server = _control_address(store, rank, machines)
    running = _Running(rank, size, address, server, by_launcher=False)
    _choose_interface()
    with _environment(_core._distributed.serve_pmi(*address, rank, size, _process_mapping(machines)), rank, size):
        # MPI waits for all ranks with the interpreter's lock: if one is lost, the watch ends this process, with a word.
        running.watch.begin_start(timeout.total_seconds())
        mpi.initialize(_method_name(store))
        running.watch.end_start()
    _keep(running)
    world = mpi.world()
    _wait_for_all(world, timeout)
    mpi.remove_shared_files()
    return world


def _wait_for_all(world: Any, timeout: timedelta) -> None:
    """Waits until every rank is there, and has the memory that they share."""
    request, deadline = world.barrier(), time.monotonic() + timeout.total_seconds()
    while not request.test():
        if lost := failure():
            raise RuntimeError(f"{lost} during init_process_group")
        if time.monotonic() > deadline:
            raise _timed_out(f"init_process_group timed out after {timeout.total_seconds():g} s")
        time.sleep(1e-4)


def _method_name(store: Any) -> str:
    kind = type(_innermost(store)).__name__
    return {"TCPStore": "a TCPStore (env:// or tcp://)", "FileStore": "a FileStore (file://)"}.get(kind, f"a {kind}")


def _control_address(store: Any, rank: int, machines: list[str]) -> tuple[tuple[str, int, str], Any]:
    """The address of the store that watches over the ranks, with the job's name, and its server on rank 0."""
    server = None
    if rank == 0:
        inner = _innermost(store)
        host, job = getattr(inner, "host", None), uuid.uuid4().hex
        if host is not None and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            port = inner.port  # The launcher's: when it ends, the ranks must know.
        else:
            if host is None:
                host = "127.0.0.1" if len(set(machines)) == 1 else _own_address()
            server = _core._distributed.StoreServer(host, 0)
            port = server.port
        store.set("control", f"{host} {port} {job}")
    host, port, job = store.get("control").decode().split()
    return (host, int(port), job), server


def _start_again(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    """MPI starts once in a process: the same processes may meet again, others may not."""
    assert _running is not None
    if size != _running.size:
        raise RuntimeError(
            f"MPI has started in this process with {_running.size} ranks, and cannot start again with {size}: use new_group "
            "for fewer"
        )
    if lost := failure():
        raise RuntimeError(f"init_process_group cannot start again: {lost}")
    store.set(f"job/{rank}", _running.job)
    store.wait([f"job/{r}" for r in range(size)], timeout)
    if len({bytes(store.get(f"job/{r}")) for r in range(size)}) > 1:
        raise RuntimeError(
            "MPI has started in these processes with other ranks before, and cannot start again: use fresh processes"
        )
    return mpi.world(order=rank)


class _environment:
    """What MPI reads when it starts, and nothing that is left by another launcher."""

    def __init__(self, descriptor: int, rank: int, size: int) -> None:
        self._own = {"PMI_FD": str(descriptor), "PMI_RANK": str(rank), "PMI_SIZE": str(size), "PMI_SPAWNED": "0"}

    def __enter__(self) -> None:
        for name in [name for name in os.environ if name.startswith(("PMI", "HYDI_", "HYDRA_", "MPI_LOCAL", "OMPI_"))]:
            del os.environ[name]
        os.environ.update(self._own)

    def __exit__(self, *_: object) -> None:
        for name in self._own:
            os.environ.pop(name, None)


def _choose_interface() -> None:
    """The network that scripts choose for gloo is the one that MPI uses."""
    if name := os.environ.get("GLOO_SOCKET_IFNAME"):
        first = name.split(",")[0]
        os.environ.setdefault("UCX_NET_DEVICES", first)
        os.environ.setdefault("FI_TCP_IFACE", first)


# Start by an MPI launcher.


def is_launched_for(init_method: str | None, store: Any, rank: int, size: int) -> bool:
    """Tells whether an MPI launcher has started the ranks that are asked for."""
    launched = mpi.launched_size()
    if store is not None or launched is None or launched < 2:
        return False
    if size < 0 and os.environ.get("WORLD_SIZE", "").isdigit():
        size = int(os.environ["WORLD_SIZE"])
    return size in (-1, launched) and (init_method is None or init_method.startswith(("env://", "tcp://")))


def start_by_launcher(rank: int, size: int, timeout: timedelta) -> tuple[Any, Any, int, int]:
    """Starts the engine with the ranks of an MPI launcher: a communicator, a store, this rank and how many there are."""
    from ..store import TCPStore

    if problem := mpi.find_problem(by_launcher=True):
        raise RuntimeError(problem)
    if rank < 0 and os.environ.get("RANK", "").isdigit():
        rank = int(os.environ["RANK"])
    if lost := failure():
        raise RuntimeError(f"init_process_group cannot start again: {lost}")
    _choose_interface()
    mpi.initialize("its own launcher")
    world = mpi.world(order=rank if rank >= 0 else None)
    machines = world.exchange(_machine())
    host = "127.0.0.1" if len(set(machines)) == 1 else _own_address()
    if _running is None:
        server, told = None, ""
        if world.rank == 0:
            server = _core._distributed.StoreServer(host, 0)
            told = f"{host} {server.port} {uuid.uuid4().hex}"
        at, port, job = world.exchange(told)[0].split()
        _keep(_Running(world.rank, world.size, (at, int(port), job), server, by_launcher=True))
    store = TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=timeout) if world.rank == 0 else None
    address = world.exchange(f"{host} {store.port}" if store is not None else "")[0].split()
    if store is None:
        store = TCPStore(address[0], int(address[1]), is_master=False, wait_for_workers=False, timeout=timeout)
    return world, store, world.rank, world.size


def split(world: Any, members: list[int], own: int, store: Any, timeout: timedelta, name: str) -> Any:
    """A communicator of some ranks, once all of them have come."""
    if len(members) == 1:
        return AloneCommunicator()
    store.set(f"come/{own}", b"1")
    try:
        store.wait([f"come/{rank}" for rank in range(len(members))], timeout)
    except RuntimeError as error:
        late = [member for at, member in enumerate(members) if not store.check([f"come/{at}"])]
        raise _timed_out(
            f"new_group of ranks {members} timed out after {timeout.total_seconds():g} s: ranks {late} have not come"
        ) from error
    return world.split(members, sum(name.encode()) % 16384)


# The end of a process.


def _keep(running: _Running) -> None:
    global _running
    _running = running
    atexit.register(_leave)
    os.register_at_fork(after_in_child=_abandon)


def _abandon() -> None:
    """In a forked child: its copies of the parent's connections close, so that the parent's end can be seen."""
    global _forked
    if _running is not None:
        from ..work import progress

        _forked = True
        _running.watch.abandon()
        if _running.server is not None:
            _running.server.abandon()
        progress.forget()


def _leave() -> None:
    """Ends in order: stays until what was sent has arrived, or until the others are lost."""
    if _running is None or _forked:
        return
    if _failed or failure() is not None:
        mpi.remove_shared_files()
        return  # MPI's own end would wait for ranks that are lost.
    _running.watch.goodbye()
    all_end = _stay_for_the_others(_running)
    mpi.remove_shared_files()
    if all_end:
        mpi.shutdown()


def _stay_for_the_others(running: _Running) -> bool:
    """Lets what this rank has sent arrive; tells whether all ranks end now, so that MPI can end, too."""
    deadline = None if running.by_launcher else time.monotonic() + _STAY
    try:
        store = _core._distributed.StoreClient(running.host, running.port, _STAY)
        come = store.add(f"{running.job}/ends", 1)
        while come < running.size and (deadline is None or time.monotonic() < deadline):
            mpi.probe()
            time.sleep(2e-3)
            come = store.add(f"{running.job}/ends", 0)
    except (OSError, RuntimeError):
        return False  # The rank that keeps the store has gone.
    return come >= running.size


_failed = False


def mark_tracebacks(rank: int) -> None:
    """From now on an exception that ends this process is printed with its rank before each line, and told to the others."""
    previous = sys.excepthook
    if getattr(previous, "_rank", None) is not None:
        previous._rank[0] = rank  # type: ignore[attr-defined]
        return
    ranks = [rank]

    def print_with_rank(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        global _failed
        _failed = True
        if _running is not None and not _forked:
            _running.watch.fail(f"{kind.__name__}: {str(error).partition(chr(10))[0]}"[:500])
        stderr, prefix = sys.stderr, f"[rank{ranks[0]}]: "
        if stderr is None or previous is not sys.__excepthook__:
            previous(kind, error, trace)
            return
        import traceback

        text = "".join(traceback.format_exception(kind, error, trace))
        stderr.write("".join(f"{prefix}{line}\n" for line in text.rstrip("\n").split("\n")))
        stderr.flush()

    print_with_rank._rank = ranks  # type: ignore[attr-defined]
    sys.excepthook = print_with_rank
