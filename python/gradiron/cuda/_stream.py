"""Streams and events. One queue runs all work in the order in which it was given, so most of this needs nothing done."""

from __future__ import annotations

import time
from typing import Any

from .._core import device as Device
from ._gpu import checked_index, gpu


class Event:
    """A point in the queue. One that keeps times waits for the work before it, and then reads the host's clock."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        if interprocess:
            raise RuntimeError("gradiron's events cannot be shared between processes")
        self.recorded = False
        self._keeps_times = enable_timing
        self._seconds = 0.0

    def record(self, stream: Stream | None = None) -> None:
        self.recorded = True
        if self._keeps_times:
            gpu().synchronize()
            self._seconds = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Nothing to do: later work comes after earlier work."""

    def synchronize(self) -> None:
        gpu().synchronize()

    def query(self) -> bool:
        """Whether the work before this point is done; it waits, and then it is."""
        self.synchronize()
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two events."""
        if not (self._keeps_times and end_event._keeps_times):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self.recorded and end_event.recorded):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._seconds - self._seconds) * 1000


class Stream:
    """The queue. Every stream is the same one."""

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self.device = Device("cuda", checked_index(device))
        self.priority = priority

    def synchronize(self) -> None:
        gpu().synchronize()

    def query(self) -> bool:
        self.synchronize()
        return True

    def wait_event(self, event: Event) -> None:
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Nothing to do: there is one queue."""

    def record_event(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.device == self.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream=0x0>"


class StreamContext:
    """Work under `with` goes to the stream, as all work does."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        return None


def stream(stream: Stream | None) -> StreamContext:
    """Work under `with` goes to `stream`, as all work does."""
    return StreamContext(stream)


class CUDAGraph:
    """Refused: work is not written down to be done again."""

    def __init__(self, *args: Any, **options: Any) -> None:
        raise NotImplementedError(f"torch.cuda.{type(self).__name__}: gradiron submits work each time; it records none")


def is_current_stream_capturing() -> bool:
    """Whether work is written down at the moment: it never is."""
    return False


class graph(CUDAGraph):
    """Refused as well."""


def current_stream(device: Any = None) -> Stream:
    return Stream(device)


def default_stream(device: Any = None) -> Stream:
    return Stream(device)


def set_stream(stream: Stream) -> None:
    """Nothing to do: there is one queue."""
