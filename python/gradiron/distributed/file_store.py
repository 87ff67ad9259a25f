"""A store in a file, for processes that share a file system."""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import BinaryIO

from .store import DistStoreError, Store, _added, _amount, _data, _duration, _milliseconds, _refuse, _text, _texts

__all__ = ["FileStore"]


class FileStore(Store):
    """Store in a file, for processes that share a file system.

    The last of `world_size` processes removes the file.

    Args:
        file_name: path of the file.
        world_size: number of processes; unknown if negative. Default: `-1`

    Examples:
        >>> import os, tempfile
        >>> store = torch.distributed.FileStore(os.path.join(tempfile.mkdtemp(), "store"), 1)
        >>> store.set("key", "value")
        >>> store.get("key")
        b'value'
    """

    # Keys of users start with a slash.
    _USERS, _LEFT = "users", "left"
    _DELETED = 2**64 - 1

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self._path = os.fspath(file_name)
        if not isinstance(self._path, str):
            _refuse("FileStore", file_name)
        self._world_size = _amount("FileStore", world_size)
        self._values: dict[str, bytes] = {}
        self._position = 0
        self._lock = threading.Lock()
        self._add(self._USERS, 1)
        self._end = weakref.finalize(self, _leave_file, self._path, self._world_size, os.getpid())

    @contextlib.contextmanager
    def _opened(self, writes: bool) -> Iterator[BinaryIO]:
        """The file, locked, with all records read."""
        with self._lock, _locked(self._path, writes) as file:
            file.seek(self._position)
            self._position += _read_records(file.read(), self._values)
            yield file

    def _write(self, file: BinaryIO, key: str, value: bytes | None) -> None:
        name = key.encode()
        record = struct.pack("<QQ", len(name), self._DELETED if value is None else len(value)) + name + (value or b"")
        # An incomplete record of a killed process may follow.
        file.seek(self._position)
        file.truncate()
        file.write(record)
        file.flush()
        self._position += _read_records(record, self._values)

    def _add(self, key: str, amount: int) -> int:
        with self._opened(True) as file:
            return self._write_sum(file, key, amount)

    def _write_sum(self, file: BinaryIO, key: str, amount: int) -> int:
        total = _added(self._values.get(key), amount)
        self._write(file, key, str(total).encode())
        return total

    def _await(self, is_there: Callable[[], bool], timeout: timedelta, text: str) -> None:
        end = time.monotonic() + timeout.total_seconds()
        while True:
            with self._opened(False):
                if is_there():
                    return
            if time.monotonic() >= end:
                raise DistStoreError(text)
            time.sleep(0.01)

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._path

    def set(self, key: str, value: str | bytes) -> None:
        key, data = "/" + _text("set", key), _data("set", value)
        with self._opened(True) as file:
            self._write(file, key, data)

    def get(self, key: str) -> bytes:
        name = "/" + _text("get", key)
        text = f"Timeout waiting for key: {key} after {_milliseconds(self._timeout)} ms"
        self._await(lambda: name in self._values, self._timeout, text)
        return self._values[name]

    def add(self, key: str, amount: int) -> int:
        return self._add("/" + _text("add", key), _amount("add", amount))

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        key, before, after = "/" + _text("compare_set", key), _data("compare_set", expected), _data("compare_set", desired)
        with self._opened(True) as file:
            value = self._values.get(key)
            if value is None and before:
                return before
            if value is not None and value != before:
                return value
            self._write(file, key, after)
        return after

    def delete_key(self, key: str) -> bool:
        name = "/" + _text("delete_key", key)
        with self._opened(True) as file:
            was_there = name in self._values
            if was_there:
                self._write(file, name, None)
        return was_there

    def check(self, keys: Sequence[str]) -> bool:
        names = _texts("check", keys)
        with self._opened(False):
            return self._has(names)

    def _has(self, names: list[str]) -> bool:
        return all("/" + name in self._values for name in names)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        names = _texts("wait", keys)
        timeout = self._timeout if timeout is None else _duration("wait", timeout)
        self._await(lambda: self._has(names), timeout, "Wait timeout")

    def num_keys(self) -> int:
        """Return the number of keys, one of which counts the processes."""
        with self._opened(False):
            return len(self._values)

    def list_keys(self) -> list[str]:
        with self._opened(False):
            return [key[1:] for key in self._values if key.startswith("/")]

    def append(self, key: str, value: str | bytes) -> None:
        key, more = "/" + _text("append", key), _data("append", value)
        with self._opened(True) as file:
            self._write(file, key, self._values.get(key, b"") + more)

    def clone(self) -> FileStore:
        # Not one more user.
        other = FileStore.__new__(FileStore)
        other._path, other._world_size, other._timeout = self._path, self._world_size, self._timeout
        other._values, other._position, other._lock = {}, 0, threading.Lock()
        other._end = self._end
        return other


@contextlib.contextmanager
def _locked(path: str, writes: bool) -> Iterator[BinaryIO]:
    """The file, opened anew: a lock excludes other threads of this process, too."""
    try:
        import fcntl
    except ImportError:
        raise NotImplementedError("FileStore needs the file locks of Unix: use TCPStore") from None
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise DistStoreError(f"the store's file cannot be opened: {error}") from None
        with os.fdopen(descriptor, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX if writes else fcntl.LOCK_SH)
            # Somebody may have removed it since it was opened.
            try:
                is_current = os.path.samestat(os.fstat(descriptor), os.stat(path))
            except FileNotFoundError:
                is_current = False
            if is_current:
                yield file
                return


def _read_records(data: bytes, values: dict[str, bytes]) -> int:
    """Takes whole records over; gives their length."""
    position = 0
    while position + 16 <= len(data):
        length, size = struct.unpack_from("<QQ", data, position)
        start = position + 16 + length
        end = start if size == FileStore._DELETED else start + size
        if end > len(data):
            break
        key = data[position + 16 : start].decode()
        if size == FileStore._DELETED:
            values.pop(key, None)
        else:
            values[key] = data[start:end]
        position = end
    return position


def _leave_file(path: str, world_size: int, process: int) -> None:
    """A user's end; the last one removes the file."""
    if process != os.getpid() or not os.path.exists(path):
        return
    store = FileStore.__new__(FileStore)
    store._path, store._values, store._position, store._lock = path, {}, 0, threading.Lock()
    # One lock for both counts: with two, no process may see itself as the last.
    with store._opened(True) as file:
        left = store._write_sum(file, FileStore._LEFT, 1)
        if store._write_sum(file, FileStore._USERS, -1) == 0 and 0 <= world_size <= left:
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)
