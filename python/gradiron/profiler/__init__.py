"""`torch.profiler`: a profiler that can record chosen steps of a training loop.

Times are those of the CPU: for GPU operators, the time to submit them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from ..autograd import _profiler_trace
from ..autograd.profiler import Session, has_cpu, record_function, refuse
from ..autograd.profiler_util import DeviceType, EventList, Wanted
from . import _timeline
from ._schedule import RECORDING, ProfilerAction, ProfilerActivity, always, schedule

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("_"))})


def supported_activities() -> set[ProfilerActivity]:
    """Return the activities that `profile` can record: those of the CPU.

    Examples:
        >>> torch.profiler.supported_activities()
        {<ProfilerActivity.CPU: 0>}
    """
    return {ProfilerActivity.CPU}


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """Return a handler for `profile(on_trace_ready=...)` that writes each trace to a file.

    Args:
        dir_name: directory of the files.
        worker_name: first part of the file names; host name and process id if `None`.
        use_gzip: compress the files. Default: `False`

    Examples:
        >>> handler = torch.profiler.tensorboard_trace_handler("traces")
    """
    import os
    import socket
    import time

    worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"

    def handle(profiler: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        profiler.export_chrome_trace(os.path.join(dir_name, name))

    return handle


class profile:
    """Record the operators of a `with` block, or of chosen steps of a loop that calls `step()`.

    Args:
        activities: activities to record; `ProfilerActivity.CUDA` warns, as times of the GPU are not measured.
        schedule: function from a step to a `ProfilerAction`, such as `schedule(...)`; records all if `None`.
        on_trace_ready: function that is called with the profiler when a recording ends.
        record_shapes: record the shapes of inputs. Default: `False`
        profile_memory: record allocated memory. Default: `False`
        with_stack: record the Python stack. Default: `False`
        with_flops: estimate floating point operations of matrix products and convolutions. Default: `False`
        with_modules: accepted for compatibility. Default: `False`
        experimental_config, execution_trace_observer: not supported.
        acc_events: keep the events of earlier recordings. Default: `False`
        custom_trace_id_callback: function that names traces.

    Examples:
        >>> with torch.profiler.profile() as prof:
        ...     y = torch.ones(2).exp()
        >>> [event.name for event in prof.events()][-1]
        'aten::exp'
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: object = None,
        execution_trace_observer: object = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
    ) -> None:
        refuse(experimental_config=experimental_config, execution_trace_observer=execution_trace_observer)
        self.activities = set(activities) if activities is not None else supported_activities()
        for activity in self.activities:
            if not isinstance(activity, ProfilerActivity):
                raise TypeError(f"Expected ProfilerActivity or dict, got {type(activity)}")
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        if ProfilerActivity.CUDA in self.activities:
            warnings.warn(
                "The GPU's own time is not measured: its operators show the host's time to hand them over", stacklevel=2
            )
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.schedule, self.record_steps = schedule or always, schedule is not None
        self.on_trace_ready, self.acc_events = on_trace_ready, acc_events
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.metadata: dict[str, str] = {}
        # Modules show in PyTorch's records of scripts only, which do not exist here.
        self.with_flops, self.with_modules = with_flops, with_modules
        self.custom_trace_id_callback, self._trace_id = custom_trace_id_callback, ""
        self._session = Session(Wanted(record_shapes, profile_memory, with_stack, with_flops))
        self._events: EventList | None = None
        self._started = self._stopped = False
        self._step_mark: record_function | None = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the profiler with step 0 of the schedule."""
        self._started, self._stopped = True, False
        if self.current_action in RECORDING:
            self._begin()
        self._mark_step()

    def step(self) -> None:
        """Tell that the next step of the loop begins."""
        if not self._started or self._stopped:
            return
        self._end_mark()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        goes_on = self.current_action in RECORDING
        if self._session.running and (before is ProfilerAction.RECORD_AND_SAVE or not goes_on):
            self._finish()
        if goes_on and not self._session.running:
            self._begin()
        self._mark_step()

    def stop(self) -> None:
        """Stop the profiler and hand the current recording to `on_trace_ready`."""
        if not self._started:
            raise AssertionError("Profiler must be initialized before stopping trace")
        self._stopped = True
        self._end_mark()
        if self._session.running:
            self._finish()

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pause or resume recording inside of the block."""
        if has_cpu(activities):
            self._session.toggle(bool(enable))

    def prepare_trace(self) -> None:
        """Prepare `start_trace` by naming the trace."""
        import uuid

        callback = self.custom_trace_id_callback
        self._trace_id = callback() if callback is not None else uuid.uuid4().hex.upper()

    def start_trace(self) -> None:
        """Start recording regardless of the schedule."""
        if not self._trace_id:
            raise AssertionError("Profiler must be initialized before starting trace")
        self._session.begin()

    def stop_trace(self) -> None:
        """Stop what `start_trace` started."""
        if not self._session.running:
            raise AssertionError("Profiler must be initialized before stopping trace")
        self._keep(self._session.end())

    def get_trace_id(self) -> str | None:
        """Return the name of the last trace."""
        return self._trace_id or None

    def set_custom_trace_id_callback(self, callback: Callable[[], str] | None) -> None:
        """Set the function that names later traces."""
        self.custom_trace_id_callback = callback

    def _begin(self) -> None:
        self.prepare_trace()
        self._session.begin()

    def _mark_step(self) -> None:
        if self.record_steps and self._session.running:
            self._step_mark = record_function(f"ProfilerStep#{self.step_num}")
            self._step_mark.__enter__()

    def _end_mark(self) -> None:
        if self._step_mark is not None:
            self._step_mark.__exit__(None, None, None)
            self._step_mark = None

    def _finish(self) -> None:
        self._keep(self._session.end())
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _keep(self, found: EventList) -> None:
        if self.acc_events and self._events is not None:
            found[:0] = self._events
        self._events = found

    def _recorded(self, purpose: str) -> EventList:
        if self._events is None:
            raise AssertionError(f"Profiler must be initialized before {purpose}")
        return self._events

    def events(self) -> EventList:
        """Return all events in the order of their starts."""
        return self._recorded("accessing events")

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """Sum the events of equal names, and of equal shapes or stacks if asked for.

        Args:
            group_by_input_shape: keep different shapes apart. Default: `False`
            group_by_stack_n: keep events apart that differ in this many lines of the stack. Default: `0`
            group_by_overload_name: keep overloads apart. Default: `False`
            include_python_functions: include Python functions. Default: `False`
        """
        events = self._recorded("getting key averages")
        return events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name, include_python_functions)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for chrome://tracing or Perfetto, compressed if the name ends in `.gz`."""
        _profiler_trace.write(path, self._recorded("exporting chrome trace"), self._session.base, self.metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the stacks of the events for flame graph tools."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._recorded("exporting stacks").export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Write the memory in use over time as JSON, compressed if the name ends in `.gz`.

        A name that ends in `.raw.json.gz` gives each change by itself.
        """
        warnings.warn("`export_memory_timeline` is deprecated in PyTorch", FutureWarning, stacklevel=2)
        needed = {"record_shapes": self.record_shapes, "profile_memory": self.profile_memory, "with_stack": self.with_stack}
        missing = [f"{name}=True" for name, given in needed.items() if not given]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")
        _timeline.write(path, device, self._recorded("exporting memory timeline"), self._session.base)

    def add_metadata(self, key: str, value: str) -> None:
        """Add a text to the trace."""
        import json

        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add a JSON value to the trace."""
        self.metadata[key] = value

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Add a JSON value to later traces."""
        self.metadata[key] = value


def kineto_available() -> bool:
    """Return whether PyTorch's tracing library Kineto is available, which it is not.

    Examples:
        >>> torch.profiler.kineto_available()
        False
    """
    return False
