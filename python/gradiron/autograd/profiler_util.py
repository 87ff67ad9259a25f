"""What a profiler recorded: one `FunctionEvent` per call, one `FunctionEventAvg` per kind of call, and lists of either."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, NamedTuple

from ._profiler_parts import DeviceType, Kernel, MemRecordsAcc, StringTable

__all__ = [
    "DeviceType",
    "EventList",
    "FormattedTimesMixin",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "MemRecordsAcc",
    "StringTable",
]


@contextmanager
def uncollected() -> Iterator[None]:
    """Holds the collector back: it would walk over all events again and again while they are made."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def format_time(us: float) -> str:
    """Format microseconds, such as `12.500us`, `1.250ms` or `2.000s`."""
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if us >= factor:
            return f"{us / factor:.3f}{unit}"
    return f"{us:.3f}us"


class Interval:
    """From `start` to `end`, in microseconds since the session's start."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        return self.end - self.start


def _text_of(name: str) -> Any:
    return property(lambda self: format_time(getattr(self, name)), doc=f"`{name}` for people.")


def _renamed(old: str, new: str, advice: str) -> Any:
    def get(self: Any) -> Any:
        warnings.warn(f"`{old}` is deprecated, {advice}.".replace(", Use", ". Use"), FutureWarning, stacklevel=2)
        return getattr(self, new)

    return property(get, doc=f"The older name of `{new}`.")


class FormattedTimesMixin:
    """Average times, and all times as text."""

    count: int
    cpu_time_total: float
    device_time_total: float = 0.0
    self_device_time_total: float = 0.0

    cpu_time_str = _text_of("cpu_time")
    cpu_time_total_str = _text_of("cpu_time_total")
    self_cpu_time_total_str = _text_of("self_cpu_time_total")
    device_time_str = _text_of("device_time")
    device_time_total_str = _text_of("device_time_total")
    self_device_time_total_str = _text_of("self_device_time_total")

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """The GPU runs behind the host's back and its time is not measured."""
        return self.device_time_total / self.count if self.count else 0.0

    cuda_time = _renamed("cuda_time", "device_time", "please use `device_time` instead")


class FunctionEvent(FormattedTimesMixin):
    """A recorded event: a call of an operator, a backward node, or a mark of `record_function`."""

    # Shares of a table, which are worked out there.
    self_cpu_percent = total_cpu_percent = total_device_percent = -1

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: list[list[int]] | None = None,
        stack: list[str] | None = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: DeviceType = DeviceType.CPU,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = None,
        trace_name: str | None = None,
        concrete_inputs: list[Any] | None = None,
        kwinputs: dict[str, Any] | None = None,
        is_user_annotation: bool = False,
        is_python_function: bool = False,
        activity_type: str | None = None,
        flow_id: int | None = None,
        flow_type: int | None = None,
        flow_start: bool | None = None,
        external_id: int = 0,
        linked_correlation_id: int = 0,
        structured_input_shapes: list[Any] | None = None,
        structured_input_strides: list[Any] | None = None,
        input_dtypes: list[str] | None = None,
        python_id: int = -1,
        python_parent_id: int = -1,
        python_module_id: int = -1,
        typed_metadata: dict[str, Any] | None = None,
    ) -> None:
        self.id, self.thread, self.fwd_thread = id, thread, fwd_thread
        self.trace_name = name if trace_name is None else trace_name
        # The steps of a training loop are counted together.
        self.name = "ProfilerStep*" if name.startswith("ProfilerStep#") else name
        self.overload_name = overload_name or ""
        self.time_range = Interval(start_us, end_us)
        self.input_shapes, self.stack = input_shapes or [], stack or []
        self.scope, self.sequence_nr, self.is_user_annotation = scope, sequence_nr, is_user_annotation
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.node_id, self.device_type, self.device_index = node_id, device_type, device_index
        self.use_device, self.device_resource_id = use_device, thread if device_resource_id is None else device_resource_id
        self.is_async, self.is_remote, self.is_legacy = is_async, is_remote, is_legacy
        self.is_python_function, self.activity_type = is_python_function, activity_type
        self.concrete_inputs, self.kwinputs = concrete_inputs or [], kwinputs or {}
        self.flow_id, self.flow_type, self.flow_start = flow_id, flow_type, flow_start
        self.external_id, self.linked_correlation_id = external_id, linked_correlation_id
        self.structured_input_shapes, self.structured_input_strides = structured_input_shapes, structured_input_strides
        self.input_dtypes, self.metadata = input_dtypes, typed_metadata
        self.python_id, self.python_parent_id, self.python_module_id = python_id, python_parent_id, python_module_id
        self.kernels: list[Kernel] = []
        self.count, self.flops = 1, flops or 0
        self.cpu_children: list[FunctionEvent] = []
        self._parent: weakref.ref[FunctionEvent] | None = None

    @property
    def key(self) -> str:
        return self.name

    cuda_time_total = _renamed("cuda_time_total", "device_time_total", "Use `device_time_total` instead")
    self_cuda_time_total = _renamed("self_cuda_time_total", "self_device_time_total", "Use `self_device_time_total` instead")
    self_cuda_memory_usage = _renamed(
        "self_cuda_memory_usage", "self_device_memory_usage", "Use `self_device_memory_usage` instead"
    )

    @property
    def cpu_parent(self) -> FunctionEvent | None:
        """The event that contains this one."""
        return self._parent() if self._parent else None

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        self._parent = weakref.ref(parent)

    def append_kernel(self, name: str, device: int, duration: int) -> None:
        """Notes a piece of a GPU's work that this event began."""
        if self.device_type != DeviceType.CPU:
            raise AssertionError("Expected device_type to be CPU")
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        self.cpu_children.append(child)

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        return self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} device_type={self.device_type} "
            f"node_id={self.node_id} cpu_time={self.cpu_time_str} start_us={self.time_range.start:.3f} "
            f"end_us={self.time_range.end:.3f} cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"device_memory_usage={self.device_memory_usage} is_async={self.is_async} is_remote={self.is_remote} "
            f"seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """Sum of the events of one key."""

    # What is added up.
    _SUMS = (
        "count",
        "cpu_time_total",
        "self_cpu_time_total",
        "cpu_memory_usage",
        "self_cpu_memory_usage",
        "device_memory_usage",
        "self_device_memory_usage",
        "flops",
    )

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.input_shapes: Any = None
        self.stack: list[str] | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.node_id, self.scope, self.is_user_annotation = -1, 0, False
        self.device_type, self.use_device, self.overload_name = DeviceType.CPU, None, ""
        self.is_async = self.is_remote = self.is_legacy = False
        self.flops = 0

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Add an event or another sum of the same key."""
        if self.key is None:
            self.key, self.input_shapes, self.stack = other.key, other.input_shapes, other.stack
            self.scope, self.is_user_annotation = other.scope, other.is_user_annotation
            self.cpu_children, self.cpu_parent = other.cpu_children, other.cpu_parent
        for name in self._SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f" self_cuda_time={self.self_device_time_total_str} cuda_time={self.device_time_str} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"cuda_memory_usage={self.device_memory_usage}>"
        )


def _tables() -> Any:
    """What draws tables, which is loaded when the first is drawn."""
    from . import _profiler_table

    return _profiler_table


class EventList(list[Any]):
    """List of events or of their sums, which prints as a table.

    Args:
        events: events. Default: `()`
        use_device: accepted for compatibility. Default: `None`
        profile_memory: show columns for memory. Default: `False`
        with_flops: show a column for floating point operations. Default: `False`

    Examples:
        >>> with torch.profiler.profile() as prof:
        ...     y = torch.ones(2).exp()
        >>> len(prof.events()) == len(list(prof.events()))
        True
    """

    def __init__(
        self,
        events: Iterable[Any] = (),
        *,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
    ) -> None:
        super().__init__(events)
        self._use_device, self._profile_memory, self._with_flops = use_device, profile_memory, with_flops

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """A notebook shows the table, the most expensive first."""
        tables = _tables()
        layout = tables.Layout(100, 1000, 1000, 1000, None, False, None, self._profile_memory, self._with_flops)
        return str(tables.render_html(self, "self_cpu_time_total", layout))

    @property
    def self_cpu_time_total(self) -> float:
        """The time in all events in microseconds, without counting nested ones twice."""
        return float(sum(event.self_cpu_time_total for event in self))

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Return a table of the events, the most expensive first if `sort_by` names an attribute."""
        tables = _tables()
        layout = tables.Layout(
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
            time_unit,
            self._profile_memory,
            self._with_flops,
        )
        return str(tables.render(self, sort_by, layout))

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """Sum the events of equal names, and of equal shapes or stacks if asked for."""
        sums: dict[object, FunctionEventAvg] = {}
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shapes else None
            stack = tuple(event.stack[:group_by_stack_n])
            sums.setdefault((event.key, event.is_user_annotation, shapes, stack), FunctionEventAvg()).add(event)
        for total in sums.values():
            total.stack = (total.stack or [])[:group_by_stack_n]
            if not group_by_input_shapes:
                total.input_shapes = ""
        return EventList(
            sums.values(), use_device=self._use_device, profile_memory=self._profile_memory, with_flops=self._with_flops
        )

    def total_average(self) -> FunctionEventAvg:
        """Sum all events."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = "Total"
        return total

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for chrome://tracing or Perfetto."""
        from ._profiler_trace import write

        write(path, self)

    def supported_export_stacks_metrics(self) -> list[str]:
        return ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write one line per event with its stack and a metric, for flame graph tools."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        # Only the host's time is measured.
        measured = metric == "self_cpu_time_total"
        with open(path, "w") as file:
            for event in self:
                value = int(event.self_cpu_time_total) if measured else 0
                if event.stack and value > 0:
                    lines = [line.translate(_SEPARATORS) for line in reversed(event.stack)]
                    file.write(f"{';'.join(lines)} {value}\n")


_SEPARATORS = str.maketrans(" ;\t\n", "____")

# PyTorch's numbers for what kind of thing an event is.
_SCOPES = {"derivative": 1, "turn": 1, "mark": 7}

Sizes = list[list[int]] | None
Facts = tuple[int | None, Sizes, int, list[str]]
Record = tuple[str, str, int, int, int, int, int, int, Facts]


class Wanted(NamedTuple):
    """What a session is to record beside names and times."""

    shapes: bool = False
    memory: bool = False
    stacks: bool = False
    flops: bool = False


def events_from(records: list[Record], start: int, wanted: Wanted) -> EventList:
    """The core's records as events in the order of their starts, each with the events that lie in it."""
    records.sort(key=itemgetter(3, 5))
    events = EventList(profile_memory=wanted.memory, with_flops=wanted.flops)
    open_events: dict[int, list[FunctionEvent]] = {}
    for number, record in enumerate(records, 1):
        name, kind, thread, begin, end, _, here, there, (sequence, shapes, flops, stack) = record
        event = FunctionEvent(
            number,
            name,
            thread,
            (begin - start) / 1e3,
            (end - start) / 1e3,
            input_shapes=shapes,
            stack=stack,
            scope=_SCOPES.get(kind, 0),
            cpu_memory_usage=here,
            device_memory_usage=there,
            sequence_nr=-1 if sequence is None else sequence,
            is_user_annotation=kind == "mark",
            flops=flops if wanted.flops else 0,
            activity_type="user_annotation" if kind == "mark" else "cpu_op",
        )
        outer = open_events.setdefault(event.thread, [])
        # What ended before does not hold what comes now; marks need not be nested.
        while outer and outer[-1].time_range.end < event.time_range.end:
            outer.pop()
        if outer:
            outer[-1].append_cpu_child(event)
            event.set_cpu_parent(outer[-1])
        outer.append(event)
        events.append(event)
    _tell_nodes_where_they_were_made(events)
    merged = {id(event) for event in events if _merge(event)}
    events[:] = [event for event in events if id(event) not in merged]
    return events


def _tell_nodes_where_they_were_made(events: EventList) -> None:
    """A backward node shows the stack of the call that made it."""
    made: dict[int, list[str]] = {}
    for event in events:
        if event.scope == 0 and event.stack:
            made[event.sequence_nr] = event.stack
        elif event.scope == 1 and event.sequence_nr in made:
            event.stack = made[event.sequence_nr]


def _merge(event: FunctionEvent) -> bool:
    """Merges an event into the one around it if that has the same name and nothing else inside."""
    parent = event.cpu_parent
    if parent is None or parent.name != event.name or len(parent.cpu_children) != 1:
        return False
    parent.cpu_children = event.cpu_children
    for child in event.cpu_children:
        child.set_cpu_parent(parent)
    return True
