"""How processes find each other: a URL names their store, their ranks and the world size."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NoReturn

from .constants import default_pg_timeout
from .file_store import FileStore
from .store import PrefixStore, Store, TCPStore

__all__ = ["register_rendezvous_handler", "rendezvous"]

Met = tuple[Store, int, int]

_handlers: dict[str, Callable[..., Iterator[Met]]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[Met]]) -> None:
    """Register a handler for the rendezvous URLs of a scheme.

    Args:
        scheme: scheme, the part of the URL before `://`.
        handler: generator function of the URL that yields `(store, rank, world_size)`.

    Examples:
        >>> def meet(url, **options):
        ...     yield torch.distributed.HashStore(), 0, 1
        >>> torch.distributed.register_rendezvous_handler("alone", meet)
        >>> torch.distributed.init_process_group("gloo", "alone://")
        >>> torch.distributed.destroy_process_group()
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[Met]:
    """Return an iterator over `(store, rank, world_size)` for a rendezvous URL.

    Args:
        url: URL such as `"env://"`, `"tcp://host:port"` or `"file:///path"`.
        rank: rank of this process, if the URL does not say it. Default: `-1`
        world_size: number of processes, if the URL does not say it. Default: `-1`
        kwargs: options of the handler, such as `timeout`.

    Examples:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "store")
        >>> store, rank, world_size = next(torch.distributed.rendezvous(f"file://{path}", 0, 1))
        >>> rank, world_size
        (0, 1)
    """
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    for name, number in (("rank", rank), ("world_size", world_size)):
        if not isinstance(number, int):
            raise RuntimeError(f"`{name}` must be an integer. {number}")
    whole = url if isinstance(url, str) else url.decode()
    parts = urllib.parse.urlparse(whole)
    given = {name: number for name, number in (("rank", rank), ("world_size", world_size)) if number != -1}
    if given:
        asked = _query(parts)
        if asked.keys() & {"rank", "world_size"}:
            raise AssertionError(f"The url: {whole} has node-specific arguments(rank, world_size) already.")
        query = "&".join(f"{name}={value}" for name, value in {**asked, **given}.items())
        whole = f"{whole.partition('?')[0]}?{query}"
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    return _handlers[parts.scheme](whole, **kwargs)


def _query(parts: urllib.parse.ParseResult) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in filter(None, parts.query.split("&")))


def _error(scheme: str, text: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {text}")


def _numbers(scheme: str, query: dict[str, str]) -> tuple[int, int]:
    for name, words in (("rank", "rank parameter"), ("world_size", "world size parameter")):
        if name not in query:
            raise _error(scheme, f"{words} missing")
    return int(query["rank"]), int(query["world_size"])


def _again(scheme: str) -> NoReturn:
    raise RuntimeError(f"Unable to perform re-rendezvous using {scheme}:// method")


def _meet_by_file(url: str, **kwargs: Any) -> Iterator[Met]:
    parts = urllib.parse.urlparse(url)
    path = urllib.parse.unquote(parts.netloc + parts.path)
    if not path:
        raise _error("file", "path missing")
    rank, world_size = _numbers("file", _query(parts))
    yield FileStore(path, world_size), rank, world_size
    _again("file")


def _is_hosted() -> bool:
    """Whether the launcher hosts the store."""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == str(True)


def _store(host: str, port: int, rank: int, world_size: int, timeout: timedelta) -> Store:
    return TCPStore(host, port, world_size, rank == 0, timeout, multi_tenant=True)


def _meet_by_tcp(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any) -> Iterator[Met]:
    parts = urllib.parse.urlparse(url)
    if parts.port is None:
        raise _error("tcp", "port number missing")
    rank, world_size = _numbers("tcp", _query(parts))
    if not parts.hostname:
        raise AssertionError("hostname cannot be None")
    yield _store(parts.hostname, parts.port, rank, world_size, timeout), rank, world_size
    _again("tcp")


def _meet_by_environment(url: str, timeout: timedelta = default_pg_timeout, **kwargs: Any) -> Iterator[Met]:
    query = _query(urllib.parse.urlparse(url))

    def variable(name: str) -> str:
        value = os.environ.get(name)
        if not value:
            raise _error("env", f"environment variable {name} expected, but not set")
        return value

    rank = int(query["rank"] if "rank" in query else variable("RANK"))
    world_size = int(query["world_size"] if "world_size" in query else variable("WORLD_SIZE"))
    host, port = variable("MASTER_ADDR"), int(variable("MASTER_PORT"))
    if not 0 <= port < 2**16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    if _is_hosted():
        # Restarted ranks use the same store under another prefix.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store: Store = PrefixStore(f"/worker/attempt_{attempt}", TCPStore(host, port, world_size, False, timeout))
    else:
        store = _store(host, port, rank, world_size, timeout)
    yield store, rank, world_size
    _again("env")


register_rendezvous_handler("tcp", _meet_by_tcp)
register_rendezvous_handler("env", _meet_by_environment)
register_rendezvous_handler("file", _meet_by_file)
