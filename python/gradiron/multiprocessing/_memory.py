"""Memory that processes share. It has no name that could be left behind, and goes when the last process lets go of it."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import tempfile
import weakref
from collections import deque
from typing import Any
from weakref import WeakSet, WeakValueDictionary

from .. import _core
from .._core import Tensor
from .._storage import UntypedStorage

# By their addresses.
_segments: WeakValueDictionary[int, Segment] = WeakValueDictionary()


def _libc() -> Any:
    made = ctypes.CDLL(None, use_errno=True)
    made.mmap.restype = ctypes.c_void_p
    made.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    made.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return made


_system: Any = None


def can_share() -> bool:
    """Whether this system hands memory from process to process."""
    return sys.platform != "win32"


def _nameless(size: int) -> int:
    """A file without a name, in memory if there is such a thing."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("gradiron", os.MFD_CLOEXEC)
    else:
        file, path = tempfile.mkstemp()
        os.unlink(path)
    try:
        os.ftruncate(file, size)
    except BaseException:
        os.close(file)
        raise
    return file


class Segment:
    """A piece of such memory in this process. The map is made by hand: Python's own keeps a file open for each."""

    def __init__(self, size: int, file: int | None = None) -> None:
        global _system
        _system = _system or _libc()
        self.size = size
        self.address = 0
        # Whether it goes to another process as it is; by which number that knows it; and the tensor's hold on it here.
        self.handed = False
        self.number: int | None = None
        self.hold: Any = lambda: None
        self.file: int | None = _nameless(size) if file is None else file
        # All of it is going to be used: its pages come at once, which is cheaper than one by one.
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        found = _system.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, self.file, 0)
        if found in (None, ctypes.c_void_p(-1).value):
            number = ctypes.get_errno()
            self.close()
            raise RuntimeError(f"unable to map {size} bytes of shared memory: {os.strerror(number)} ({number})")
        self.address = int(found)
        _segments[self.address] = self

    def handle(self) -> int:
        """The file, to be handed on."""
        if self.file is None:
            raise RuntimeError("this memory can no longer be handed on")
        return self.file

    def close(self) -> None:
        """Lets go of the file. The memory stays, and can no longer be handed on."""
        if self.file is not None:
            os.close(self.file)
            self.file = None

    def __del__(self) -> None:
        self.close()
        if self.address:
            _system.munmap(self.address, self.size)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "typestr": "|u1", "shape": (self.size,), "data": (self.address, False)}

    def memory(self) -> memoryview:
        """The bytes, to read and to write."""
        array: Any = (ctypes.c_ubyte * self.size).from_address(self.address)
        array.kept = self
        return memoryview(array).cast("B")

    def tensor(self, start: int = 0, size: int | None = None) -> Tensor:
        """Some of the bytes as a tensor with a storage of its own, which keeps all of them."""
        return _core.from_numpy(_Part(self, start, self.size if size is None else size))


class _Part:
    """Some bytes of a segment: what a tensor over them holds."""

    def __init__(self, segment: Segment, start: int, size: int) -> None:
        self._segment = segment
        data = (segment.address + start, False)
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": data}


def segment_of(storage: UntypedStorage) -> Segment | None:
    """The shared memory that a storage lies in."""
    if storage.is_cuda or not len(storage):
        return None
    at = storage.data_ptr()
    for start, segment in list(_segments.items()):
        if start <= at < start + segment.size:
            return segment
    return None


class Lease(_Part):
    """All bytes of a segment that another process wants back: it is told when nobody here holds them any more."""

    def __init__(self, segment: Segment, released: deque[int]) -> None:
        super().__init__(segment, 0, segment.size)
        self._released = released
        self.final = False
        _leases.add(self)

    def __del__(self) -> None:
        if not self.final and self._segment.number is not None:
            self._released.append(self._segment.number)


_leases: WeakSet[Lease] = WeakSet()


def _keep_leased() -> None:
    """A fork sees what is leased now, and goes on seeing it: it is not used again."""
    for lease in list(_leases):
        lease.final = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_keep_leased)

# What came back, oldest first: its pages are there already, which is most of what memory costs.
_free: deque[Segment] = deque()
_FREE = 8


def come_back(segment: Segment) -> Segment | None:
    """Keeps a segment for the next result of its size; what is too many then. One that is still held here is not used again."""
    if segment.hold() is not None:
        return segment
    _free.append(segment)
    return _free.popleft() if len(_free) > _FREE else None


def to_hand_on(kind: Any, shape: tuple[int, ...]) -> Tensor:
    """A tensor for a result that goes to another process, and nowhere else."""
    count = 1
    for n in shape:
        count *= n
    segment = next((one for one in _free if one.size == count * kind.itemsize), None)
    if segment is None:
        segment = Segment(count * kind.itemsize)
        segment.handed = True
    else:
        _free.remove(segment)
    part = _Part(segment, 0, segment.size)
    segment.hold = weakref.ref(part)
    whole = _core.from_numpy(part)
    stride: list[int] = []
    step = 1
    for n in reversed(shape):
        stride.insert(0, step)
        step *= n
    return _core.storage_view(whole, kind, 0, shape, tuple(stride))


def share(storage: UntypedStorage) -> Segment | None:
    """Moves a storage into shared memory, for all tensors over it; nothing where there are no bytes or the GPU has them."""
    if storage.is_cuda or not len(storage):
        return None
    found = segment_of(storage)
    if found is None:
        if not can_share():
            raise NotImplementedError("memory is not shared between processes on this system")
        found = Segment(len(storage))
        found.memory()[:] = storage._memory()
        _core.move_storage(storage._seen, found.tensor())
    return found
