"""Batches from process to process: one piece of shared memory holds what is large in a message, and its handle is sent."""

from __future__ import annotations

import errno
import io
import os
import pickle
import socket
import struct
from collections import deque
from typing import Any

from .. import _core
from .._core import Tensor
from .._parameter import Parameter
from .._storage import UntypedStorage
from . import _memory
from .reductions import check_sent

# What is smaller goes through the pipe itself.
_INLINE = 4096
_ALIGN = 64
# The most files that one message may carry.
_MOST = 200


class _Pickler(pickle.Pickler):
    """Leaves the bytes of storages and of arrays out; of a storage only what its tensors reach is wanted."""

    def __init__(self, target: io.BytesIO) -> None:
        self.parts: list[memoryview] = []
        self.storages: list[UntypedStorage] = []
        self.reach: list[tuple[int, int]] = []
        self._numbers: dict[int, int] = {}
        self._tensors: dict[int, int] = {}
        parts = self.parts
        # Not a method: the pickler, and all memory that it knows, must go when it is done, and not when a cycle is found.
        super().__init__(target, protocol=5, buffer_callback=lambda buffer: parts.append(buffer.raw()))

    def _number(self, storage: UntypedStorage, start: int, end: int) -> int:
        number = self._numbers.setdefault(storage._seen._storage_id(), len(self.storages))
        if number == len(self.storages):
            self.storages.append(storage)
            self.reach.append((start, end))
        known = self.reach[number]
        self.reach[number] = min(known[0], start), max(known[1], end)
        return number

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, UntypedStorage):
            return None if obj.is_cuda else (self._number(obj, 0, len(obj)),)
        if not isinstance(obj, Tensor):
            return None
        check_sent(obj)
        plain = type(obj) is Tensor or type(obj) is Parameter
        if not plain or obj.is_cuda or obj.is_conj() or obj.is_neg() or obj.__dict__:
            return None
        size, shape, stride = obj.element_size(), tuple(obj.shape), obj.stride()
        start = obj.storage_offset() * size
        reach = 0 if 0 in shape else 1 + sum((n - 1) * step for n, step in zip(shape, stride, strict=True))
        number = self._number(obj.untyped_storage(), start, start + reach * size)
        # The same tensor again is the same one there.
        which = self._tensors.setdefault(id(obj), len(self._tensors))
        kind = str(obj.dtype).removeprefix("torch.")
        return number, which, kind, start, shape, stride, obj.requires_grad, type(obj) is Parameter


class _Unpickler(pickle.Unpickler):
    """Puts tensors over the bytes that came apart."""

    def __init__(self, data: Any, buffers: list[memoryview], storages: list[tuple[Tensor, int]]) -> None:
        super().__init__(io.BytesIO(data), buffers=buffers)
        self._storages = storages
        self._whole: dict[int, UntypedStorage] = {}
        self._tensors: dict[int, Tensor] = {}

    def persistent_load(self, pid: Any) -> Any:
        data, first = self._storages[pid[0]]
        if len(pid) == 1:
            return self._whole.setdefault(pid[0], UntypedStorage(data))
        _, which, name, start, shape, stride, requires_grad, is_parameter = pid
        if which not in self._tensors:
            kind = getattr(_core, name)
            made = _core.storage_view(data, kind, (start - first) // kind.itemsize, shape, stride)
            if is_parameter:
                made = Parameter(made, requires_grad)
            self._tensors[which] = made.requires_grad_(requires_grad)
        return self._tensors[which]


def _places(sizes: list[int]) -> tuple[list[int], int]:
    """Where parts of these sizes begin, and how long all is."""
    starts, end = [], 0
    for size in sizes:
        starts.append(end)
        end += -(-size // _ALIGN) * _ALIGN
    return starts, end


class Channel:
    """One end of a connection between two processes."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        # By number: what was handed over, and what was not kept when it came back.
        self._lent: dict[int, _memory.Segment] = {}
        self._dropped: list[int] = []
        self._count = 0
        # By number: what the other end has handed over, and what of that nobody here holds any more.
        self._maps: dict[int, _memory.Segment] = {}
        self.released: deque[int] = deque()

    def take_released(self) -> tuple[int, ...]:
        """What the other end may use again: to be sent to it."""
        return tuple(self.released.popleft() for _ in range(len(self.released)))

    def reclaim(self, numbers: tuple[int, ...]) -> None:
        """What was handed over comes back."""
        for number in numbers:
            gone = _memory.come_back(self._lent.pop(number))
            if gone is not None and gone.number is not None:
                self._dropped.append(gone.number)

    def _lend(self, segment: _memory.Segment) -> tuple[int, bool]:
        """A segment's number, and whether the other end has its handle already."""
        known = segment.number is not None
        if segment.number is None:
            segment.number = self._count
            self._count += 1
        self._lent[segment.number] = segment
        return segment.number, known

    def _socket(self) -> socket.socket:
        """What the connection is at the bottom, for files can be handed through it."""
        return socket.fromfd(self.connection.fileno(), socket.AF_UNIX, socket.SOCK_STREAM)

    def send(self, obj: Any) -> None:
        """Sends an object; what it holds may be written to at once."""
        target = io.BytesIO()
        pickler = _Pickler(target)
        pickler.dump(obj)
        ranges = [(start // _ALIGN * _ALIGN, end) for start, end in pickler.reach]
        handed: dict[int, _memory.Segment] = {}
        parts = []
        for i, (held, (start, end)) in enumerate(zip(pickler.storages, ranges, strict=True)):
            own = _memory.segment_of(held) if len(handed) < _MOST else None
            if own is not None and own.handed and own.size == len(held):
                handed[i] = own
                ranges[i] = (0, 0)
            parts.append(held._memory()[start:end] if i not in handed else memoryview(b""))
        parts += [*pickler.parts, target.getbuffer()]
        sizes = [len(part) for part in parts]
        starts, total = _places(sizes)
        large = total > _INLINE and _memory.can_share()
        table = struct.pack(f"<?I{len(ranges)}q", large, len(ranges), *(start for start, _ in ranges))
        # For files that are handed over as they are: the size and the number; the size is below zero if the handle is known.
        files = []
        for i in range(len(ranges)):
            number, known = self._lend(handed[i]) if i in handed else (0, True)
            table += struct.pack("<qq", handed[i].size * (-1 if known else 1) if i in handed else 0, number)
            if not known:
                files.append(handed[i].handle())
        dropped, self._dropped = self._dropped, []
        table += struct.pack(f"<I{len(dropped)}q", len(dropped), *dropped)
        table += struct.pack(f"<{len(sizes)}q", *sizes)
        whole: Any = b""
        if large:
            segment = _memory.Segment(total)
            _fill(segment.memory(), starts, parts)
            files.append(segment.handle())
        else:
            whole = bytearray(total)
            _fill(memoryview(whole), starts, parts)
        self.connection.send_bytes(struct.pack("<I", len(table)) + table + whole)
        if files:
            with self._socket() as raw:
                socket.send_fds(raw, [b"f"], files)

    def receive(self) -> Any:
        """What the other end has sent."""
        message = memoryview(self.connection.recv_bytes())
        (length,) = struct.unpack_from("<I", message)
        large, count = struct.unpack_from("<?I", message, 4)
        firsts = struct.unpack_from(f"<{count}q", message, 9)
        handed = list(struct.iter_unpack("<qq", message[9 + 8 * count : 9 + 24 * count]))
        at = 9 + 24 * count
        (gone,) = struct.unpack_from("<I", message, at)
        for number in struct.unpack_from(f"<{gone}q", message, at + 4):
            self._maps.pop(number, None)
        at += 4 + 8 * gone
        sizes = list(struct.unpack_from(f"<{(4 + length - at) // 8}q", message, at))
        starts, total = _places(sizes)
        made = self._segments([size for size, _ in handed if size > 0] + [total] * large)
        if large:
            segment = made.pop()
            memory, whole = segment.memory(), segment.tensor
        else:
            memory = message[4 + length :]
            whole = None
        storages = []
        for start, size, first, (alone, number) in zip(starts, sizes, firsts, handed, strict=False):
            if alone > 0:
                self._maps[number] = made.pop(0)
                self._maps[number].number = number
            if alone:
                storages.append((_core.from_numpy(_memory.Lease(self._maps[number], self.released)), 0))
                continue
            part = whole(start, size) if whole is not None else _core.from_bytes(bytes(memory[start : start + size]))
            storages.append((part, first))
        buffers = [memory[start : start + size] for start, size in zip(starts[count:-1], sizes[count:-1], strict=True)]
        if whole is None:
            buffers = [memoryview(bytearray(buffer)) for buffer in buffers]
        return _Unpickler(memory[starts[-1] : starts[-1] + sizes[-1]], buffers, storages).load()

    def _segments(self, sizes: list[int]) -> list[_memory.Segment]:
        """The pieces of memory that come with a message."""
        if not sizes:
            return []
        with self._socket() as raw:
            _, files, _, _ = socket.recv_fds(raw, 1, len(sizes))
        if len(files) < len(sizes):
            for file in files:
                os.close(file)
            # The system gives as many as the process may open.
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE)) if files else EOFError
        made = [_memory.Segment(size, file) for size, file in zip(sizes, files, strict=True)]
        for segment in made:
            # There may be more of these than files that a process may open.
            segment.close()
        return made


def _fill(target: memoryview, starts: list[int], parts: list[memoryview]) -> None:
    for start, part in zip(starts, parts, strict=True):
        target[start : start + len(part)] = part
