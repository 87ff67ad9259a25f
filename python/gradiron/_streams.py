"""Streams and events of any device."""

from __future__ import annotations

from typing import Any

import gradiron

from ._core import device as Device

__all__ = ["Event", "Stream"]


def _place(device: Any) -> Device:
    if device is None:
        found = gradiron.accelerator.current_accelerator()
        if found is None:
            raise RuntimeError("Cannot access accelerator device when none is available.")
        return found
    return device if isinstance(device, Device) else Device(device)


class Stream:
    """A queue of work: the GPU's, or the CPU's, which is always done.

    Args:
        device: device of the queue; the accelerator if `None`.
        priority: accepted for compatibility. Default: `0`

    Examples:
        >>> torch.Stream("cpu").query()
        True
    """

    device: Device
    stream_id = 0
    is_capturing = staticmethod(lambda: False)

    def __new__(cls, device: Any = None, *, priority: int = 0) -> Any:
        if cls is not Stream:
            return super().__new__(cls)
        place = _place(device)
        if place.type == "cuda":
            return gradiron.cuda.Stream(place, priority)
        if place.type != "cpu":
            raise RuntimeError(f"gradiron has no streams of the device {place}")
        made = super().__new__(cls)
        made.device = place
        return made

    @property
    def device_index(self) -> int:
        """The index of the device, -1 if it has none."""
        return -1 if self.device.index is None else self.device.index

    def query(self) -> bool:
        """Return whether all work is done."""
        return True

    def synchronize(self) -> None:
        """Wait until all work is done."""

    def record_event(self, event: Any = None) -> Any:
        """Record an event, which the CPU has not."""
        raise RuntimeError("cpu backend doesn't support events.")

    def wait_event(self, event: Any) -> None:
        """Do nothing, as there is one queue."""

    def wait_stream(self, stream: Any) -> None:
        """Do nothing: the CPU's work is done."""

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.device == self.device

    def __hash__(self) -> int:
        return hash(self.device)

    def __repr__(self) -> str:
        return f"torch.Stream device_type={self.device.type}, device_index={self.device_index}, stream_id={self.stream_id}"


class Event:
    """A point in a queue of work, to measure times or to wait for.

    Args:
        device: device of the queue; the accelerator if `None`.
        enable_timing: measure times. Default: `False`
        blocking: accepted for compatibility. Default: `False`
        interprocess: not supported. Default: `False`

    Examples:
        >>> torch.Event("cpu").query()
        True
    """

    device: Device
    event_id = 0

    def __new__(
        cls, device: Any = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> Any:
        place = _place(device)
        if place.type == "cuda":
            return gradiron.cuda.Event(enable_timing, blocking, interprocess)
        if place.type != "cpu":
            raise RuntimeError(f"gradiron has no events of the device {place}")
        made = super().__new__(cls)
        made.device, made._keeps_times = place, enable_timing
        return made

    _keeps_times: bool

    def record(self, stream: Stream | None = None) -> None:
        """Record the event, which the CPU does not."""
        raise RuntimeError("cpu backend doesn't support events.")

    def wait(self, stream: Stream | None = None) -> None:
        """Do nothing: nothing was recorded."""

    def synchronize(self) -> None:
        """Do nothing: nothing was recorded."""

    def query(self) -> bool:
        """Return whether all work before the event is done."""
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds between two events, which are not recorded on the CPU."""
        if not (self._keeps_times and end_event._keeps_times):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        raise ValueError("Both events must be recorded before calculating elapsed time.")

    def __repr__(self) -> str:
        index = -1 if self.device.index is None else self.device.index
        return f"torch.Event device_type={self.device.type}, device_index={index}, event_flag=0, event_id={self.event_id}"
