"""Profiler of operators: `profile` records a block, `record_function` marks a part of it.

Times are those of the CPU: for GPU operators, the time to submit them.
"""

from __future__ import annotations

import warnings
from contextlib import ContextDecorator
from typing import TYPE_CHECKING

from .. import _core
from ._profiler_parts import DeviceType, EnforceUnique, Kernel, KinetoStepTracker, MemRecordsAcc, StringTable
from .profiler_util import EventList, FunctionEvent, FunctionEventAvg, Wanted, events_from, uncollected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from ..profiler import ProfilerActivity
    from .profiler_util import Record

__all__ = [
    "DeviceType",
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Kernel",
    "KinetoStepTracker",
    "MemRecordsAcc",
    "StringTable",
    "emit_nvtx",
    "kineto_available",
    "profile",
    "record_function",
]


def kineto_available() -> bool:
    """Return whether PyTorch's tracing library Kineto is available, which it is not.

    Examples:
        >>> torch.autograd.profiler.kineto_available()
        False
    """
    return False


def refuse(**options: object) -> None:
    """Raise an error for an option that is not supported."""
    asked = next((name for name, value in options.items() if value), None)
    if asked is not None:
        raise NotImplementedError(f"gradiron's profiler does not have {asked}= yet")


def has_cpu(activities: Iterable[ProfilerActivity]) -> bool:
    """Return whether the CPU is among the activities."""
    from ..profiler import ProfilerActivity

    given = set(activities)
    for activity in given:
        if not isinstance(activity, ProfilerActivity):
            raise TypeError(f"Expected ProfilerActivity, got {type(activity)}")
    return ProfilerActivity.CPU in given


def _device(name: str | None) -> str | None:
    """The device besides the CPU, if it is one that is there."""
    if name is None:
        return None
    from ..cuda import is_available

    if name == "cuda" and is_available():
        return name
    unknown = f"The {name} is not a valid device option."
    warnings.warn("CUDA is not available, disabling CUDA profiling" if name == "cuda" else unknown, stacklevel=3)
    return None


class Session:
    """One recording, from `begin` to `end`, with pauses."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.running = self.paused = False
        self.base = 0
        self.records: list[Record] = []

    def begin(self) -> None:
        wanted = self.wanted
        if not _core.profiler_start(wanted.shapes or wanted.flops, wanted.memory, wanted.stacks):
            raise RuntimeError("Profiler is already enabled: gradiron records one session at a time, over all threads")
        self.running, self.paused = True, False

    def toggle(self, on: bool) -> None:
        """Pauses, or goes on, if it is not at that already."""
        if not self.running or on is not self.paused:
            return
        if on:
            self.begin()
        else:
            self.records += _core.profiler_stop()
            self.paused = True

    def end(self) -> EventList:
        self.toggle(False)
        self.running = False
        with uncollected():
            records, self.records = self.records, []
            start = min((record[3] for record in records), default=0)
            self.base = _core.profiler_clock() + start
            return events_from(records, start, self.wanted)

    def __del__(self) -> None:
        # Nobody can end it any more.
        if self.running and not self.paused:
            _core.profiler_stop()


class profile:
    """Record the operators and backward nodes of a `with` block, in all threads.

    Args:
        enabled: record anything at all. Default: `True`
        use_device: accepted for compatibility.
        record_shapes: record the shapes of inputs. Default: `False`
        with_flops: estimate floating point operations of matrix products and convolutions. Default: `False`
        profile_memory: record allocated memory. Default: `False`
        with_stack: record the Python stack. Default: `False`
        with_modules, use_kineto: accepted for compatibility. Default: `False`
        use_cpu: must be true. Default: `True`
        experimental_config: not supported.
        acc_events: accepted for compatibility. Default: `False`
        custom_trace_id_callback: function that names the trace.

    Examples:
        >>> with torch.autograd.profiler.profile() as prof:
        ...     y = torch.ones(2).exp()
        >>> text = prof.key_averages().table(sort_by="cpu_time_total")
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: object = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
    ) -> None:
        refuse(experimental_config=experimental_config)
        if not use_cpu:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        self.enabled, self.entered = enabled, False
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.use_device, self.use_cpu, self.acc_events = _device(use_device), use_cpu, acc_events
        # Modules show in PyTorch's records of scripts only, which do not exist here.
        self.with_flops, self.with_modules = with_flops, with_modules
        self._session = Session(Wanted(record_shapes, profile_memory, with_stack, with_flops))
        self.function_events: EventList = EventList(profile_memory=profile_memory)
        self.custom_trace_id_callback, self.trace_id = custom_trace_id_callback, ""

    def default_trace_id(self) -> str:
        import uuid

        return uuid.uuid4().hex.upper()

    def create_trace_id(self) -> str:
        """Return a name for a trace."""
        return (self.custom_trace_id_callback or self.default_trace_id)()

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.trace_id = self.create_trace_id()
        self._session.begin()
        self.entered = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._session.running:
            self.function_events = self._session.end()

    def __str__(self) -> str:
        if not self.entered or self._session.running:
            return "<unfinished torch.autograd.profile>"
        return str(self.function_events)

    __repr__ = __str__

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        return self.function_events.table(
            sort_by,
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
        )

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        return self.function_events.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name, include_python_functions
        )

    def total_average(self) -> FunctionEventAvg:
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The time in all events in microseconds."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path: str) -> None:
        from ._profiler_trace import write

        write(path, self.function_events, self._session.base)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write one line per event with its stack and a metric, for flame graph tools."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def toggle_collection_dynamic(self, enabled: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pause or resume recording inside of the block."""
        if has_cpu(activities):
            self._session.toggle(bool(enabled))

    for _method in (table, key_averages, total_average, export_chrome_trace):
        _method.__doc__ = getattr(EventList, _method.__name__).__doc__
    del _method


class record_function(ContextDecorator):
    """Mark a `with` block, or each call of a decorated function, as a named event of the profiler.

    Args:
        name: name of the event.
        args: accepted for compatibility.

    Examples:
        >>> with torch.autograd.profiler.profile() as prof:
        ...     with torch.autograd.profiler.record_function("my block"):
        ...         y = torch.ones(2).exp()
        >>> "my block" in [event.name for event in prof.function_events]
        True
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._marks: list[_core.ProfilerMark | None] = []

    def __enter__(self) -> record_function:
        self._marks.append(_core.profiler_mark(self.name))
        return self

    def __exit__(self, *exception: object) -> None:
        mark = self._marks.pop()
        if mark is not None:
            mark.end()

    def _recreate_cm(self) -> record_function:
        # Threads and nested calls of a decorated function have marks of their own.
        return record_function(self.name, self.args)


class emit_nvtx:
    """Emit ranges for NVIDIA's profilers, which is not supported.

    Args:
        enabled: raise an error; false does nothing. Default: `True`
        record_shapes: ignored. Default: `False`

    Examples:
        >>> torch.autograd.profiler.emit_nvtx()
        Traceback (most recent call last):
        NotImplementedError: torch.autograd.profiler.emit_nvtx: gradiron does not run on CUDA; profile() takes times
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        if enabled:
            raise NotImplementedError("torch.autograd.profiler.emit_nvtx: gradiron does not run on CUDA; profile() takes times")
