"""The engine of a world of one rank: every collective is a copy."""

from __future__ import annotations

import ctypes
from typing import Any

from .requests import Request

__all__ = ["AloneCommunicator"]


class AloneCommunicator:
    """The communicator of a single rank; the interface is that of `MPICommunicator`."""

    rank = 0
    size = 1

    def all_reduce(self, address: int, count: int, dtype: str, op: str) -> Request:
        return Request.finished()

    def reduce(self, address: int, count: int, dtype: str, op: str, root: int) -> Request:
        return Request.finished()

    def broadcast(self, address: int, count: int, root: int) -> Request:
        return Request.finished()

    def all_gather(self, send: int, receive: int, count: int) -> Request:
        return self._copy(send, receive, count)

    def gather(self, send: int, receive: int, count: int, root: int) -> Request:
        return self._copy(send, receive, count)

    def scatter(self, send: int, receive: int, count: int, root: int) -> Request:
        return self._copy(send, receive, count)

    def reduce_scatter(self, send: int, receive: int, count: int, dtype: str, itemsize: int, op: str) -> Request:
        return self._copy(send, receive, count * itemsize)

    def all_to_all(self, send: int, send_counts: list[int], receive: int, receive_counts: list[int]) -> Request:
        return self._copy(send, receive, send_counts[0])

    def barrier(self) -> Request:
        return Request.finished()

    def send(self, address: int, count: int, peer: int, tag: int) -> Request:
        raise RuntimeError("a world of one rank has nobody to send to")

    def receive(self, address: int, count: int, peer: int | None, tag: int) -> Request:
        raise RuntimeError("a world of one rank has nobody to receive from")

    def split(self, ranks: list[int], tag: int) -> AloneCommunicator:
        return AloneCommunicator()

    def free(self) -> None:
        """Nothing is held."""

    @staticmethod
    def _copy(send: int, receive: int, count: int) -> Request:
        if count and send != receive:
            ctypes.memmove(receive, send, count)
        return Request.finished()


def describe() -> str:
    """What runs, in words."""
    return "one rank, without an engine"


def shutdown(*_: Any) -> None:
    """Nothing runs."""
