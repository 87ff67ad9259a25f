"""Stores of keys and values that processes share, by which they find each other."""

from __future__ import annotations

import errno
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NoReturn

from .. import _core

__all__ = [
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "HashStore",
    "PrefixStore",
    "QueueEmptyError",
    "Store",
    "TCPStore",
]

_DEFAULT_TIMEOUT = timedelta(seconds=300)


class DistError(RuntimeError):
    """Base class of errors of `torch.distributed`.

    Examples:
        >>> issubclass(torch.distributed.DistError, RuntimeError)
        True
    """


class DistBackendError(DistError):
    """Error of a backend, raised by a collective.

    Examples:
        >>> issubclass(torch.distributed.DistBackendError, torch.distributed.DistError)
        True
    """


class DistNetworkError(DistError):
    """Error of the network.

    Examples:
        >>> issubclass(torch.distributed.DistNetworkError, torch.distributed.DistError)
        True
    """


class DistStoreError(DistError):
    """Error of a store, such as a timeout.

    Examples:
        >>> issubclass(torch.distributed.DistStoreError, torch.distributed.DistError)
        True
    """


class QueueEmptyError(DistStoreError):
    """Raised by `Store.queue_pop` without blocking if the queue is empty.

    Examples:
        >>> torch.distributed.HashStore().queue_pop("jobs", block=False)
        Traceback (most recent call last):
        torch.distributed.QueueEmptyError: queue is empty
    """


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _error.__module__ = __package__


def _refuse(call: str, *arguments: object) -> NoReturn:
    shown = ", ".join(repr(argument) for argument in arguments)
    raise TypeError(f"{call}(): incompatible function arguments. Invoked with: {shown}")


def _text(call: str, key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bytes):
        return key.decode()
    _refuse(call, key)


def _texts(call: str, keys: object) -> list[str]:
    if isinstance(keys, (str, bytes)) or not isinstance(keys, Sequence):
        _refuse(call, keys)
    return [_text(call, key) for key in keys]


def _data(call: str, value: object) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    _refuse(call, value)


def _amount(call: str, amount: Any) -> int:
    try:
        number = amount.__index__()
    except AttributeError:
        _refuse(call, amount)
    if not -(2**63) <= number < 2**63:
        _refuse(call, amount)
    return int(number)


def _added(value: bytes | None, amount: int) -> int:
    """A sum as 64 bits hold it."""
    try:
        before = int(value or b"0")
    except ValueError:
        raise ValueError(f"add: {value!r} is no whole number") from None
    return (before + amount + 2**63) % 2**64 - 2**63


def _duration(call: str, timeout: object) -> timedelta:
    if isinstance(timeout, timedelta):
        return timeout
    _refuse(call, timeout)


def _milliseconds(timeout: timedelta) -> int:
    return timeout // timedelta(milliseconds=1)


class Store:
    """Base class of the stores of keys and values that processes share.

    A subclass of one's own writes `set`, `get`, `add` and what else it needs.

    Examples:
        >>> isinstance(torch.distributed.HashStore(), torch.distributed.Store)
        True
    """

    _timeout = _DEFAULT_TIMEOUT

    @property
    def timeout(self) -> timedelta:
        """How long calls wait for missing keys."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long calls wait for missing keys."""
        self._timeout = _duration("set_timeout", timeout)

    def _missing(self, name: str) -> NoReturn:
        raise NotImplementedError(f"{name} is not implemented for {type(self).__name__}.")

    def set(self, key: str, value: str | bytes) -> None:
        """Set the value of a key."""
        self._missing("set")

    def get(self, key: str) -> bytes:
        """Wait for a key and return its value."""
        self._missing("get")

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which starts at 0, and return the sum."""
        self._missing("add")

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        """Set a value if it equals `expected`, or if the key is missing and `expected` is empty; return the value."""
        self._missing("compare_set")

    def delete_key(self, key: str) -> bool:
        """Delete a key and return whether it existed."""
        self._missing("delete_key")

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all keys exist."""
        self._missing("check")

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys exist."""
        self._missing("wait")

    def num_keys(self) -> int:
        """Return the number of keys."""
        self._missing("num_keys")

    def list_keys(self) -> list[str]:
        """Return all keys."""
        self._missing("list_keys")

    def append(self, key: str, value: str | bytes) -> None:
        """Append to the value of a key."""
        self._missing("append")

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Append a value to a queue."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Remove the first value of a queue and return it; wait for it, or raise QueueEmptyError."""
        raise NotImplementedError("queue support is not implemented.")

    def queue_len(self, key: str) -> int:
        """Return the length of a queue."""
        raise NotImplementedError("queue support is not implemented.")

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Wait for several keys and return their values."""
        return [self.get(key) for key in _texts("multi_get", keys)]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set the values of several keys."""
        for key, value in self._pairs(keys, values):
            self.set(key, value)

    @staticmethod
    def _pairs(keys: Sequence[str], values: Sequence[str | bytes]) -> list[tuple[str, bytes]]:
        if len(keys) != len(values):
            raise DistStoreError("multiSet keys and values vectors must be of same size")
        return [(key, _data("multi_set", value)) for key, value in zip(_texts("multi_set", keys), values, strict=True)]

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Wait until `world_size` processes have called this with the same key, which can be used once."""
        if self.add(key, 1) >= world_size:
            self.set(f"{key}/done", b"")
        self.wait([f"{key}/done"], self.timeout if timeout is None else timeout)

    def has_extended_api(self) -> bool:
        """Return whether `append`, `multi_get` and `multi_set` are native."""
        return False

    def clone(self) -> Store:
        """Return another handle to the same keys."""
        self._missing("clone")

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")


# The servers of this process: a forked child has copies of their sockets, and would keep them open.
_servers: weakref.WeakSet[Any] = weakref.WeakSet()
_shared: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def _abandon_servers() -> None:
    for server in list(_servers):
        server.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_servers)


def _serve(host: str, port: int, multi_tenant: bool, listen_fd: int | None) -> Any:
    if multi_tenant and (server := _shared.get(port)) is not None:
        return server
    try:
        server = _core._distributed.StoreServer(host, port, listen_fd)
    except OSError as error:
        code = f"code: -{error.errno}, name: {errno.errorcode.get(error.errno)}, " if error.errno else ""
        raise DistNetworkError(
            f"The server socket has failed to listen on any local network address. port: {port}, useIpv6: {':' in host}, "
            f"{code}message: {error.strerror or error}"
        ) from None
    _servers.add(server)
    if multi_tenant:
        _shared[server.port] = server
    return server


class TCPStore(Store):
    """Store that one process, the master, serves to all by TCP.

    Args:
        host_name: name or address of the master.
        port: port of the master; 0 lets the master choose a free one, see `port`.
        world_size: number of processes that use the store; any if `None`.
        is_master: whether this process is the master. Default: `False`
        timeout: how long calls wait. Default: 5 minutes
        wait_for_workers: let the master wait until all processes are connected. Default: `True`
        multi_tenant: let several stores of one process share a server. Default: `False`
        master_listen_fd: file descriptor of a listening socket for the master.
        use_libuv: accepted for compatibility. Default: `True`

    Examples:
        >>> store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True)
        >>> store.set("key", "value")
        >>> store.get("key")
        b'value'
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = _DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        self._host = _text("TCPStore", host_name)
        port = _amount("TCPStore", port)
        if not 0 <= port < 2**16:
            _refuse("TCPStore", host_name, port)
        if world_size is not None and (world_size := _amount("TCPStore", world_size)) == 0:
            raise ValueError("TCPStore world size cannot be 0")
        self._timeout = _duration("TCPStore", timeout)
        self._uses_libuv = bool(use_libuv)
        self._server = _serve(self._host, port, multi_tenant, master_listen_fd) if is_master else None
        if self._server is not None:
            # The host name may not resolve on the host itself.
            self._connect(self._server.address, self._server.port)
        else:
            self._connect(self._host, port)
        if wait_for_workers and world_size is not None and world_size > 0:
            if self._ask("add", "init/", 1) >= world_size:
                self._ask("set", "ready/", b"")
            if is_master:
                self._await_workers(world_size)

    def _connect(self, host: str, port: int) -> None:
        try:
            self._client = _core._distributed.StoreClient(host, port, self._timeout.total_seconds())
        except (OSError, TimeoutError) as error:
            raise DistNetworkError(str(error)) from None

    def _await_workers(self, world_size: int) -> None:
        try:
            self._client.wait(["ready/"], self._timeout.total_seconds())
        except TimeoutError:
            joined = self._ask("add", "init/", 0)
            raise DistStoreError(
                f"Timed out after {self._timeout.total_seconds():.0f} seconds waiting for clients. "
                f"{joined}/{world_size} clients joined."
            ) from None

    def _ask(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self._client, name)(*arguments)
        except (OSError, TimeoutError) as error:
            raise DistNetworkError(str(error)) from None
        except ValueError as error:
            raise (DistNetworkError if name == "add" else DistStoreError)(str(error)) from None

    def _ask_in_time(self, name: str, keys: list[str], timeout: timedelta, *arguments: Any) -> Any:
        try:
            return getattr(self._client, name)(*arguments, timeout=timeout.total_seconds())
        except TimeoutError as error:
            if str(error).startswith("wait timeout"):
                raise DistStoreError(f"wait timeout after {_milliseconds(timeout)}ms, keys: {', '.join(keys)}") from None
            raise DistNetworkError(str(error)) from None
        except OSError as error:
            raise DistNetworkError(str(error)) from None
        except ValueError as error:
            raise DistStoreError(str(error)) from None

    @staticmethod
    def _key(call: str, key: object) -> str:
        # Internal keys have no leading slash.
        return "/" + _text(call, key)

    @property
    def host(self) -> str:
        """The host name of the master."""
        return self._host

    @property
    def port(self) -> int:
        """The port of the master."""
        return self._client.port

    @property
    def libuvBackend(self) -> bool:
        return self._uses_libuv

    def set(self, key: str, value: str | bytes) -> None:
        self._ask("set", self._key("set", key), _data("set", value))

    def get(self, key: str) -> bytes:
        key = self._key("get", key)
        return self._ask_in_time("get", [key], self._timeout, key)

    def add(self, key: str, amount: int) -> int:
        return self._ask("add", self._key("add", key), _amount("add", amount))

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        values = _data("compare_set", expected), _data("compare_set", desired)
        return self._ask("compare_set", self._key("compare_set", key), *values)

    def delete_key(self, key: str) -> bool:
        return self._ask("delete_key", self._key("delete_key", key))

    def check(self, keys: Sequence[str]) -> bool:
        return self._ask("check", ["/" + key for key in _texts("check", keys)])

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        timeout = self._timeout if timeout is None else _duration("wait", timeout)
        names = ["/" + key for key in _texts("wait", keys)]
        self._ask_in_time("wait", names, timeout, names)

    def num_keys(self) -> int:
        return sum(key.startswith("/") or key == "init/" for key in self._ask("list_keys"))

    def list_keys(self) -> list[str]:
        return [key[1:] for key in self._ask("list_keys") if key.startswith("/")]

    def append(self, key: str, value: str | bytes) -> None:
        self._ask("append", self._key("append", key), _data("append", value))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        names = ["/" + key for key in _texts("multi_get", keys)]
        return self._ask_in_time("multi_get", names, self._timeout, names)

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        pairs = self._pairs(keys, values)
        self._ask("multi_set", ["/" + key for key, _ in pairs], [value for _, value in pairs])

    def queue_push(self, key: str, value: str | bytes) -> None:
        self._ask("queue_push", self._key("queue_push", key), _data("queue_push", value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        key = self._key("queue_pop", key)
        try:
            return self._ask_in_time("queue_pop", [key], self._timeout, key, block)
        except IndexError:
            raise QueueEmptyError("queue is empty") from None

    def queue_len(self, key: str) -> int:
        return self._ask("queue_len", self._key("queue_len", key))

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        timeout = self._timeout if timeout is None else _duration("barrier", timeout)
        try:
            super().barrier(key, world_size, timeout)
        except DistStoreError:
            raise DistStoreError(f"barrier timeout after {_milliseconds(timeout)}ms, key: {key}") from None

    def has_extended_api(self) -> bool:
        return True

    def clone(self) -> TCPStore:
        other = TCPStore.__new__(TCPStore)
        other._host, other._timeout, other._uses_libuv, other._server = self._host, self._timeout, self._uses_libuv, None
        other._connect(self._client.host, self._client.port)
        return other

    def __repr__(self) -> str:
        server = "<nullptr>" if self._server is None else f"TCPServer(port={self._server.port})"
        return f"TCPStore(client=TCPClient({self._client.host}:{self._client.port}), server={server})"


class HashStore(Store):
    """Store in the memory of one process, for its threads.

    Examples:
        >>> store = torch.distributed.HashStore()
        >>> store.set("key", "value")
        >>> store.get("key")
        b'value'
    """

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._queues: dict[str, deque[bytes]] = {}
        self._changed = threading.Condition()

    def _put(self, key: str, value: bytes) -> None:
        self._values[key] = value
        self._changed.notify_all()

    def _await(self, is_there: Callable[[], bool], timeout: timedelta) -> None:
        if not self._changed.wait_for(is_there, timeout.total_seconds()):
            raise DistStoreError("Wait timeout")

    def set(self, key: str, value: str | bytes) -> None:
        with self._changed:
            self._put(_text("set", key), _data("set", value))

    def get(self, key: str) -> bytes:
        key = _text("get", key)
        with self._changed:
            self._await(lambda: key in self._values, self._timeout)
            return self._values[key]

    def add(self, key: str, amount: int) -> int:
        key, amount = _text("add", key), _amount("add", amount)
        with self._changed:
            total = _added(self._values.get(key), amount)
            self._put(key, str(total).encode())
        return total

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        key, before, after = _text("compare_set", key), _data("compare_set", expected), _data("compare_set", desired)
        with self._changed:
            value = self._values.get(key)
            if value is None and before:
                return before
            if value is not None and value != before:
                return value
            self._put(key, after)
        return after

    def delete_key(self, key: str) -> bool:
        with self._changed:
            return self._values.pop(_text("delete_key", key), None) is not None

    def check(self, keys: Sequence[str]) -> bool:
        names = _texts("check", keys)
        with self._changed:
            return self._has(names)

    def _has(self, names: list[str]) -> bool:
        return all(name in self._values or name in self._queues for name in names)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        names = _texts("wait", keys)
        with self._changed:
            self._await(lambda: self._has(names), self._timeout if timeout is None else _duration("wait", timeout))

    def num_keys(self) -> int:
        return len(self._values)

    def list_keys(self) -> list[str]:
        with self._changed:
            return list(self._values)

    def append(self, key: str, value: str | bytes) -> None:
        key, more = _text("append", key), _data("append", value)
        with self._changed:
            self._put(key, self._values.get(key, b"") + more)

    def queue_push(self, key: str, value: str | bytes) -> None:
        key, item = _text("queue_push", key), _data("queue_push", value)
        with self._changed:
            self._queues.setdefault(key, deque()).append(item)
            self._changed.notify_all()

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        key = _text("queue_pop", key)
        with self._changed:
            if not block and key not in self._queues:
                raise QueueEmptyError("queue is empty")
            self._await(lambda: key in self._queues, self._timeout)
            queue = self._queues[key]
            item = queue.popleft()
            if not queue:
                del self._queues[key]
        return item

    def queue_len(self, key: str) -> int:
        with self._changed:
            return len(self._queues.get(_text("queue_len", key), ()))

    def has_extended_api(self) -> bool:
        return True

    def clone(self) -> HashStore:
        other = HashStore()
        other._values, other._queues, other._changed = self._values, self._queues, self._changed
        other._timeout = self._timeout
        return other


class PrefixStore(Store):
    """View of a store that puts a prefix before all keys.

    Args:
        prefix: prefix.
        store: store to use.

    Examples:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.PrefixStore("a", store).set("key", "value")
        >>> store.get("a/key")
        b'value'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        if store is None:
            raise ValueError("store argument cannot be None")
        if not isinstance(store, Store):
            _refuse("PrefixStore", prefix, store)
        self._prefix, self._store = _text("PrefixStore", prefix), store

    @property
    def underlying_store(self) -> Store:
        """The store behind the prefix."""
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self._store
        while isinstance(store, PrefixStore):
            store = store._store
        return store

    @property
    def timeout(self) -> timedelta:
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self._store.set_timeout(timeout)

    def _key(self, call: str, key: object) -> str:
        return f"{self._prefix}/{_text(call, key)}"

    def _keys(self, call: str, keys: object) -> list[str]:
        return [f"{self._prefix}/{key}" for key in _texts(call, keys)]

    def set(self, key: str, value: str | bytes) -> None:
        self._store.set(self._key("set", key), _data("set", value))

    def get(self, key: str) -> bytes:
        return self._store.get(self._key("get", key))

    def add(self, key: str, amount: int) -> int:
        return self._store.add(self._key("add", key), amount)

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        return self._store.compare_set(self._key("compare_set", key), expected, desired)

    def delete_key(self, key: str) -> bool:
        return self._store.delete_key(self._key("delete_key", key))

    def check(self, keys: Sequence[str]) -> bool:
        return self._store.check(self._keys("check", keys))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        names = self._keys("wait", keys)
        # A store written in Python may have no timeout.
        self._store.wait(names) if timeout is None else self._store.wait(names, timeout)

    def num_keys(self) -> int:
        return self._store.num_keys()

    def list_keys(self) -> list[str]:
        start = f"{self._prefix}/"
        return [key[len(start) :] for key in self._store.list_keys() if key.startswith(start)]

    def append(self, key: str, value: str | bytes) -> None:
        self._store.append(self._key("append", key), value)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self._store.multi_get(self._keys("multi_get", keys))

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        self._store.multi_set(self._keys("multi_set", keys), values)

    def queue_push(self, key: str, value: str | bytes) -> None:
        self._store.queue_push(self._key("queue_push", key), value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self._store.queue_pop(self._key("queue_pop", key), block)

    def queue_len(self, key: str) -> int:
        return self._store.queue_len(self._key("queue_len", key))

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        self._store.barrier(self._key("barrier", key), world_size, timeout)

    def has_extended_api(self) -> bool:
        return self._store.has_extended_api()

    def clone(self) -> PrefixStore:
        return PrefixStore(self._prefix, self._store.clone())
