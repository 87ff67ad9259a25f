"""The engine: MPI by mpi4py. No other file imports mpi4py."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Callable
from typing import Any

from .requests import Channel, Request

__all__ = ["MPICommunicator", "describe", "find_problem", "initialize", "launched_size", "probe", "shutdown", "world"]

# Bytes of a piece of a long message: 40 MB in one message take MPICH three times as long.
PIECE = 2 << 20

_DATATYPES = {
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "complex64": "C_FLOAT_COMPLEX",
    "complex128": "C_DOUBLE_COMPLEX",
    "int8": "INT8_T",
    "int16": "INT16_T",
    "int32": "INT32_T",
    "int64": "INT64_T",
    "uint8": "UINT8_T",
    "uint16": "UINT16_T",
    "uint32": "UINT32_T",
    "uint64": "UINT64_T",
    "bool": "C_BOOL",
}
_OPERATIONS = {"SUM": "SUM", "PRODUCT": "PROD", "MIN": "MIN", "MAX": "MAX", "BAND": "BAND", "BOR": "BOR", "BXOR": "BXOR"}
_OF_TRUTHS = {"SUM": "LOR", "MAX": "LOR", "PRODUCT": "LAND", "MIN": "LAND", "BAND": "LAND", "BOR": "LOR", "BXOR": "LXOR"}

INSTALL = "pip install gradiron[mpi] (or, on a cluster that has its own MPI, pip install mpi4py)"

_MPI: Any = None
# Tables from names to MPI's objects, filled when MPI starts.
_datatypes: dict[str, Any] = {}
_operations: dict[tuple[bool, str], Any] = {}
_started_by = ""


def _load() -> Any:
    """Imports mpi4py without starting MPI."""
    global _MPI
    if _MPI is None:
        try:
            import mpi4py
        except ImportError as error:
            raise ImportError(f"torch.distributed needs mpi4py for more than one rank: {INSTALL}") from error
        mpi4py.rc.initialize = False
        mpi4py.rc.finalize = False
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:
            raise ImportError(f"mpi4py finds no MPI library: {INSTALL}. It says: {error}") from error
        _MPI = MPI
        for dtype, name in _DATATYPES.items():
            _datatypes[dtype] = getattr(MPI, name)
        for op, name in _OPERATIONS.items():
            _operations[False, op] = getattr(MPI, name)
        for op, name in _OF_TRUTHS.items():
            _operations[True, op] = getattr(MPI, name)
    return _MPI


def is_installed() -> bool:
    """Tells whether mpi4py can be found, without importing it."""
    return importlib.util.find_spec("mpi4py") is not None


def launched_size() -> int | None:
    """How many ranks an MPI launcher has started, or None where none has."""
    for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    if "PMIX_NAMESPACE" in os.environ and os.environ.get("SLURM_NTASKS", "").isdigit():
        return int(os.environ["SLURM_NTASKS"])
    return None


def is_up() -> bool:
    """Tells whether MPI runs in this process."""
    return _MPI is not None and _MPI.Is_initialized() and not _MPI.Is_finalized()


def library() -> str:
    """The MPI library's name and version, which can be asked before it starts."""
    first = _load().Get_library_version().partition("\n")[0]
    return " ".join(first.replace("Version", "").replace(":", " ").replace(",", " ").split()[:3])


def is_mpich_like() -> bool:
    """Tells whether this MPI can be started by gradiron itself: MPICH, and what is made from it."""
    version = _load().Get_library_version()
    return any(name in version for name in ("MPICH", "Intel(R) MPI", "MVAPICH"))


def find_problem(by_launcher: bool) -> str | None:
    """Why MPI cannot be started this way, or None; asked first, since a start that fails ends the process."""
    mpi = _load()
    if mpi.Is_finalized():
        return "MPI was started and finalized in this process before, and cannot start again"
    if by_launcher:
        if "PMIX_NAMESPACE" in os.environ and "PMI_FD" not in os.environ and "OMPI_COMM_WORLD_SIZE" not in os.environ:
            if is_mpich_like() and "PMI_PORT" not in os.environ:
                return f"{library()} cannot be started through PMIx: use `srun --mpi=pmi2`, or the mpiexec that comes with it"
        return None
    if mpi.Is_initialized():
        return (
            "mpi4py was imported before init_process_group and started MPI with this process alone. Start with gradiron-run, "
            "import torch.distributed first, or pass plugins=[LightningEnvironment()] to Lightning's Trainer"
        )
    if not is_mpich_like():
        return (
            f"{library()} starts ranks only by its own mpirun: use `mpirun -n 2 python -m gradiron train.py`, or pip install "
            "mpich"
        )
    return None


def initialize(started_by: str) -> None:
    """Starts MPI. Whoever calls it has looked at `find_problem`, and has set up the environment."""
    global _started_by
    mpi = _load()
    if not mpi.Is_initialized():
        mpi.Init_thread(mpi.THREAD_MULTIPLE)
    mpi.COMM_WORLD.Set_errhandler(mpi.ERRORS_RETURN)
    _started_by = started_by


def remove_shared_files() -> None:
    """Removes the names of the memory that ranks of this machine share: whoever has it keeps it, and nothing stays behind."""
    try:
        with open("/proc/self/maps") as file:
            paths = {line.split(maxsplit=5)[-1].strip() for line in file if "/dev/shm/mpich_shm_" in line}
    except OSError:
        return
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)


def describe() -> str:
    """What runs, in words."""
    import mpi4py

    return f"{library()} by mpi4py {mpi4py.__version__}, started by {_started_by}"


def shutdown() -> None:
    """Ends MPI; all ranks must do so."""
    if is_up():
        _MPI.Finalize()


def probe() -> None:
    """Lets MPI send what it still holds."""
    if is_up():
        _MPI.COMM_WORLD.Iprobe()


def world(order: int | None = None) -> MPICommunicator:
    """A communicator of all ranks, in the order of what each passes for `order`."""
    base = _MPI.COMM_WORLD
    return MPICommunicator(base.Dup() if order is None else base.Split(0, order))


class MPICommunicator:
    """The ranks of one group. Every operation takes dense host memory, as an address, and begins at once."""

    def __init__(self, comm: Any) -> None:
        # Messages between two ranks never meet collectives: they have a communicator of their own.
        self._comm, self._messages_comm = comm, comm.Dup()
        for each in (self._comm, self._messages_comm):
            each.Set_errhandler(_MPI.ERRORS_RETURN)
        self._collectives, self._messages = Channel(ordered=True), Channel(ordered=False)
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()
        self._memory = _MPI.buffer.fromaddress

    def _submit(self, count: int, unit: int, start: Callable[[int, int], Any]) -> Request:
        """Begins an operation on `count` elements of `unit` bytes, in pieces."""
        step = max(1, PIECE // unit)
        if count <= step:
            return self._collectives.submit([lambda: start(0, count)])
        return self._collectives.submit(
            [lambda at=at: start(at, min(step, count - at)) for at in range(0, count, step)]  # type: ignore[misc]
        )

    def all_reduce(self, address: int, count: int, dtype: str, op: str) -> Request:
        """Reduces in place, on every rank."""
        kind, operation = _datatypes[dtype], _operations[dtype == "bool", op]
        unit, memory = kind.Get_size(), self._memory
        return self._submit(
            count,
            unit,
            lambda at, n: self._comm.Iallreduce(_MPI.IN_PLACE, [memory(address + at * unit, n * unit), n, kind], operation),
        )

    def reduce(self, address: int, count: int, dtype: str, op: str, root: int) -> Request:
        """Reduces into the memory of `root`; the others' memory stays."""
        kind, operation = _datatypes[dtype], _operations[dtype == "bool", op]
        unit, memory = kind.Get_size(), self._memory

        def start(at: int, n: int) -> Any:
            part = [memory(address + at * unit, n * unit), n, kind]
            if self.rank == root:
                return self._comm.Ireduce(_MPI.IN_PLACE, part, operation, root)
            return self._comm.Ireduce(part, None, operation, root)

        return self._submit(count, unit, start)

    def broadcast(self, address: int, count: int, root: int) -> Request:
        """Sends the bytes of `root` to all."""
        memory, byte = self._memory, _MPI.BYTE
        return self._submit(count, 1, lambda at, n: self._comm.Ibcast([memory(address + at, n), n, byte], root))

    def all_gather(self, send: int, receive: int, count: int) -> Request:
        """Gathers `count` bytes of each rank on every rank."""
        memory, byte, whole = self._memory, _MPI.BYTE, count * self.size

        def start(at: int, n: int) -> Any:
            part = [memory(send + at, n), n, byte]
            if n == count:
                return self._comm.Iallgather(part, [memory(receive, whole), n, byte])
            places = [rank * count + at for rank in range(self.size)]
            return self._comm.Iallgatherv(part, [memory(receive, whole), [n] * self.size, places, byte])

        return self._submit(count, 1, start)

    def gather(self, send: int, receive: int, count: int, root: int) -> Request:
        """Gathers `count` bytes of each rank in the memory of `root`."""
        memory, byte, whole = self._memory, _MPI.BYTE, count * self.size

        def start(at: int, n: int) -> Any:
            places = [rank * count + at for rank in range(self.size)]
            into = [memory(receive, whole), [n] * self.size, places, byte] if self.rank == root else None
            return self._comm.Igatherv([memory(send + at, n), n, byte], into, root)

        return self._submit(count, 1, start)

    def scatter(self, send: int, receive: int, count: int, root: int) -> Request:
        """Gives each rank its `count` bytes of the memory of `root`."""
        memory, byte, whole = self._memory, _MPI.BYTE, count * self.size

        def start(at: int, n: int) -> Any:
            places = [rank * count + at for rank in range(self.size)]
            source = [memory(send, whole), [n] * self.size, places, byte] if self.rank == root else None
            return self._comm.Iscatterv(source, [memory(receive + at, n), n, byte], root)

        return self._submit(count, 1, start)

    def reduce_scatter(self, send: int, receive: int, count: int, dtype: str, itemsize: int, op: str) -> Request:
        """Reduces, and gives each rank its `count` elements of the result."""
        kind, operation = _datatypes[dtype], _operations[dtype == "bool", op]
        source = [self._memory(send, count * self.size * itemsize), count * self.size, kind]
        into = [self._memory(receive, count * itemsize), count, kind]
        return self._collectives.submit([lambda: self._comm.Ireduce_scatter(source, into, [count] * self.size, operation)])

    def all_to_all(self, send: int, send_counts: list[int], receive: int, receive_counts: list[int]) -> Request:
        """Sends every rank its bytes; blocks lie one after another on both sides."""
        memory, byte = self._memory, _MPI.BYTE

        def layout(address: int, counts: list[int]) -> list[Any]:
            places = [sum(counts[:i]) for i in range(len(counts))]
            return [memory(address, sum(counts)), counts, places, byte]

        source, into = layout(send, send_counts), layout(receive, receive_counts)
        return self._collectives.submit([lambda: self._comm.Ialltoallv(source, into)])

    def barrier(self) -> Request:
        """Is done when every rank has come."""
        return self._collectives.submit([self._comm.Ibarrier])

    def send(self, address: int, count: int, peer: int, tag: int) -> Request:
        """Sends bytes to one rank."""
        part = [self._memory(address, count), count, _MPI.BYTE]
        return self._messages.submit([lambda: self._messages_comm.Isend(part, peer, tag)])

    def receive(self, address: int, count: int, peer: int | None, tag: int) -> Request:
        """Receives bytes from one rank, or from any where `peer` is None."""
        part = [self._memory(address, count), count, _MPI.BYTE]
        source = _MPI.ANY_SOURCE if peer is None else peer
        return self._messages.submit([lambda: self._messages_comm.Irecv(part, source, tag)], _MPI.Status())

    def split(self, ranks: list[int], tag: int) -> MPICommunicator:
        """A communicator of some of the ranks, in this order; only these call it."""
        group = self._comm.Get_group()
        chosen = group.Incl(ranks)
        made = self._comm.Create_group(chosen, tag)
        chosen.Free()
        group.Free()
        return MPICommunicator(made)

    def exchange(self, text: str) -> list[str]:
        """The text of every rank."""
        return self._comm.allgather(text)

    def free(self) -> None:
        """Gives the communicators back; all ranks of the group must do so."""
        if is_up():
            self._comm.Free()
            self._messages_comm.Free()
