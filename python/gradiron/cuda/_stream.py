"""Streams and events. A GPU has a single queue that runs all work in order, so most of this does nothing."""

from __future__ import annotations

import time
from typing import Any

from .. import _streams
from .._core import device as Device
from ._gpu import checked_index, gpu


class Event(_streams.Event):
    """A point in the GPU's queue, to measure times or to wait for.

    With `enable_timing`, `record` waits for all earlier work and reads the clock of the CPU.

    Args:
        enable_timing: measure times. Default: `False`
        blocking, external: accepted for compatibility. Default: `False`
        interprocess: not supported. Default: `False`

    Examples:
        >>> start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        >>> if torch.cuda.is_available():
        ...     start.record()
        ...     end.record()
        ...     milliseconds = start.elapsed_time(end)
    """

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> Event:
        return object.__new__(cls)

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        if interprocess:
            raise RuntimeError("gradiron's events cannot be shared between processes")
        self.device = Device("cuda")
        self.recorded = False
        self._keeps_times = enable_timing
        self._seconds = 0.0

    def record(self, stream: _streams.Stream | None = None) -> None:
        """Record the event at this point."""
        self.recorded = True
        if self._keeps_times:
            gpu().synchronize()
            self._seconds = time.perf_counter()

    def wait(self, stream: _streams.Stream | None = None) -> None:
        """Do nothing: later work runs after earlier work anyway."""

    def synchronize(self) -> None:
        """Wait until the GPU has finished all work."""
        gpu().synchronize()

    def query(self) -> bool:
        """Wait for the work before the event and return `True`."""
        self.synchronize()
        return True

    def elapsed_time(self, end_event: _streams.Event) -> float:
        """Return the milliseconds between this event and a later one."""
        if not isinstance(end_event, Event):
            raise TypeError(f"elapsed_time() needs an event of the GPU, not {end_event}")
        if not (self._keeps_times and end_event._keeps_times):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self.recorded and end_event.recorded):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._seconds - self._seconds) * 1000

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {'0x0' if self.recorded else 'uninitialized'}>"


class Stream(_streams.Stream):
    """A stream of the GPU; all streams are the same queue.

    Args:
        device: a GPU; the current one if `None`.
        priority: accepted for compatibility. Default: `0`

    Examples:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.Stream().synchronize()
    """

    def __new__(cls, device: Any = None, priority: int = 0) -> Stream:
        return object.__new__(cls)

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self.device = Device("cuda", checked_index(device))
        self.priority = priority

    def synchronize(self) -> None:
        """Wait until the GPU has finished all work."""
        gpu().synchronize()

    def query(self) -> bool:
        """Wait until the GPU has finished all work and return `True`."""
        self.synchronize()
        return True

    def wait_event(self, event: Event) -> None:
        """Wait for an event, which takes no action."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Do nothing, as there is one queue."""

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, or a new one, and return it."""
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
    """Context manager that `stream` returns; work goes to the only queue.

    Args:
        stream: a stream, or `None`.

    Examples:
        >>> with torch.cuda.StreamContext(None):
        ...     x = torch.ones(1)
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        return None


def stream(stream: Stream | None) -> StreamContext:
    """Select a stream in a `with` block, which has no effect as there is one queue.

    Args:
        stream: a stream, or `None`.

    Examples:
        >>> with torch.cuda.stream(None):
        ...     x = torch.ones(1)
    """
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """Return the current stream.

    Args:
        device: a GPU; the current one if `None`.

    Examples:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.current_stream().synchronize()
    """
    return Stream(device)


def default_stream(device: Any = None) -> Stream:
    """Return the default stream.

    Args:
        device: a GPU; the current one if `None`.

    Examples:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.default_stream().synchronize()
    """
    return Stream(device)


def set_stream(stream: Stream) -> None:
    """Set the current stream, which has no effect as there is one queue.

    Args:
        stream: a stream.

    Examples:
        >>> if torch.cuda.is_available():
        ...     torch.cuda.set_stream(torch.cuda.current_stream())
    """
