"""Requests: operations that an engine has begun, and the order in which their pieces start."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

__all__ = ["Channel", "Request"]

# How many pieces of a communicator's messages are under way at once; all ranks must agree.
PIECES_UNDER_WAY = 2

# Several threads may test the same request, and MPI allows one at a time.
_lock = threading.RLock()


class Request:
    """An operation under way: it is done when all of its pieces are."""

    __slots__ = ("_channel", "error", "progress", "remaining", "status")

    def __init__(self, channel: Channel | None, pieces: int, status: Any = None) -> None:
        self._channel = channel
        self.remaining = pieces
        self.progress = 0  # Grows with every piece that is done.
        self.error: BaseException | None = None
        self.status = status  # Who sent a message, and how long it was.

    @classmethod
    def finished(cls) -> Request:
        """A request that is done already."""
        return cls(None, 0)

    def test(self) -> bool:
        """Tells whether the operation is done, after moving it along."""
        if self.remaining:
            assert self._channel is not None
            self._channel.advance()
        return self.remaining == 0

    def cancel(self) -> None:
        """Gives up a message that has not come."""
        if self._channel is not None:
            self._channel.cancel(self)


class Channel:
    """The operations of one communicator, which start in the order in which they were asked for.

    A long message goes in pieces, a few at a time. Every rank must start the pieces of one communicator in the same order, so
    that a later operation waits until all pieces of an earlier one have started. Messages between two ranks need no order.
    """

    def __init__(self, ordered: bool) -> None:
        self._limit = PIECES_UNDER_WAY if ordered else 1 << 62
        self._waiting: deque[tuple[Request, Callable[[], Any]]] = deque()
        self._under_way: list[tuple[Request, Any]] = []

    def submit(self, starts: list[Callable[[], Any]], status: Any = None) -> Request:
        """Begins an operation: each of `starts` begins a piece, and returns MPI's request of it."""
        request = Request(self, len(starts), status)
        with _lock:
            if not self._waiting and len(starts) == 1 and len(self._under_way) < self._limit:
                self._under_way.append((request, starts[0]()))
            else:
                self._waiting.extend((request, start) for start in starts)
                self._fill()
        return request

    def _fill(self) -> None:
        while self._waiting and len(self._under_way) < self._limit:
            request, start = self._waiting.popleft()
            try:
                self._under_way.append((request, start()))
            except Exception as error:
                request.error, request.remaining = error, request.remaining - 1

    def advance(self) -> None:
        """Moves what is under way along, and starts what may start next."""
        with _lock:
            left = []
            for entry in self._under_way:
                request, piece = entry
                try:
                    if not piece.Test(request.status):
                        left.append(entry)
                        continue
                except Exception as error:
                    request.error = error
                request.remaining -= 1
                request.progress += 1
            if len(left) < len(self._under_way):
                self._under_way = left
                self._fill()

    def cancel(self, request: Request) -> None:
        """Cancels the pieces of an operation; what has come meanwhile is done."""
        with _lock:
            for owner, piece in self._under_way:
                if owner is request:
                    piece.Cancel()
