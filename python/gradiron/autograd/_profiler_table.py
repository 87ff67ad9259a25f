"""The profiler's table, in PyTorch's columns."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from .profiler_util import format_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from .profiler_util import EventList

_WIDTH = 12
_GAP = "  "
_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def _scale(least: int) -> tuple[float, str]:
    """The factor and the unit in which the smallest of some counts reads well."""
    units = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
    power = max(0, min(int(math.log10(least) / 3), len(units) - 1))
    return 1000.0**-power, units[power]


class Layout(NamedTuple):
    """How a table is to look."""

    row_limit: int
    max_source_width: int
    max_name_width: int
    max_shapes_width: int
    header: str | None
    top_level_only: bool
    time_unit: str | None
    memory: bool
    flops: bool


class Column(NamedTuple):
    title: str
    width: int
    cell: Callable[[Any], str]
    left: bool = False

    def pad(self, text: str) -> str:
        return text.ljust(self.width) if self.left else text.rjust(self.width)


def format_memory(count: int) -> str:
    """Bytes for people: `12 B`, `1.50 KB`, `-3.00 MB`."""
    for power, unit in ((30, "GB"), (20, "MB"), (10, "KB")):
        if abs(count) >= 1 << power:
            return f"{count / (1 << power):.2f} {unit}"
    return f"{count} B"


def _chosen(events: EventList, sort_by: str | None, layout: Layout) -> list[Any]:
    """The events that a table shows, in its order."""
    shown = list(events)
    if sort_by is not None:
        # PyTorch's older names for a GPU's columns.
        attribute = sort_by.replace("cuda", "device")
        shown.sort(key=lambda event: getattr(event, attribute), reverse=True)
    if layout.top_level_only:
        shown = [event for event in shown if event.cpu_parent is None]
    return shown[: layout.row_limit] if layout.row_limit >= 0 else shown


def render(events: EventList, sort_by: str | None, layout: Layout) -> str:
    if not events:
        return ""
    columns = _columns(events, layout)
    rule = "".join("-" * column.width + _GAP for column in columns)
    ruler = "=" * (len(rule) - len(_GAP))
    lines = []
    if layout.header is not None:
        lines += [ruler, layout.header]
    if layout.top_level_only:
        lines += [ruler, "This report only display top-level ops statistics"]
    lines += [rule, "".join(column.pad(column.title) + _GAP for column in columns), rule]
    for event in _chosen(events, sort_by, layout):
        lines.append("".join(column.pad(column.cell(event)) + _GAP for column in columns))
        lines += _rest_of_stack(event, columns, layout)
    lines += [rule, f"Self CPU time total: {_time(events.self_cpu_time_total, layout.time_unit)}", ""]
    return "\n".join(lines)


def render_html(events: EventList, sort_by: str, layout: Layout) -> str:
    """The table for a notebook, where a wide one scrolls instead of wrapping."""
    columns = _columns(events, layout) if events else []

    def row(kind: str, cells: list[str]) -> str:
        shown = (
            f'<{kind} style="text-align: {"right" if i else "left"}">{html.escape(cell)}</{kind}>'
            for i, cell in enumerate(cells)
        )
        return f"<tr>{''.join(shown)}</tr>"

    rows = [row("th", [column.title for column in columns])]
    rows += [row("td", [column.cell(event) for column in columns]) for event in _chosen(events, sort_by, layout)]
    total = f"Self CPU time total: {_time(events.self_cpu_time_total, layout.time_unit)}"
    table = f'<table style="white-space: nowrap">{"".join(rows)}</table>'
    return f'<div style="overflow-x: auto">{table}<p>{total}</p></div>'


def _time(us: float, unit: str | None) -> str:
    if unit is None:
        return format_time(us)
    unit = unit if unit in _UNITS else "us"
    return f"{us / _UNITS[unit]:.3f}{unit}"


def _columns(events: EventList, layout: Layout) -> list[Column]:
    total = events.self_cpu_time_total

    def share(of: str) -> Callable[[Any], str]:
        return lambda event: f"{100 * getattr(event, of) / total:.2f}%" if total else "NaN"

    def time(of: str) -> Callable[[Any], str]:
        return lambda event: _time(getattr(event, of), layout.time_unit)

    def memory(of: str) -> Callable[[Any], str]:
        return lambda event: format_memory(getattr(event, of))

    def width(texts: list[str], most: int) -> int:
        return min(max(map(len, texts)) + 4, most)

    name_width = width([event.key for event in events], layout.max_name_width)
    columns = [
        Column("Name", name_width, lambda event: _cut(event.key, name_width)),
        Column("Self CPU %", _WIDTH, share("self_cpu_time_total")),
        Column("Self CPU", _WIDTH, time("self_cpu_time_total")),
        Column("CPU total %", _WIDTH, share("cpu_time_total")),
        Column("CPU total", _WIDTH, time("cpu_time_total")),
        Column("CPU time avg", _WIDTH, time("cpu_time")),
    ]
    if layout.memory:
        columns.append(Column("CPU Mem", _WIDTH, memory("cpu_memory_usage")))
        columns.append(Column("Self CPU Mem", _WIDTH, memory("self_cpu_memory_usage")))
        if any(event.device_memory_usage for event in events):
            columns.append(Column("CUDA Mem", _WIDTH, memory("device_memory_usage")))
            columns.append(Column("Self CUDA Mem", _WIDTH + 1, memory("self_device_memory_usage")))
    columns.append(Column("# of Calls", _WIDTH, lambda event: str(event.count)))
    if any(event.input_shapes for event in events):
        shapes_width = width([str(event.input_shapes) for event in events], layout.max_shapes_width)
        columns.append(Column("Input Shapes", shapes_width, lambda event: str(event.input_shapes)[:shapes_width]))
    if any(event.stack for event in events):
        source_width = max(width([line for event in events for line in event.stack], layout.max_source_width), 15)
        columns.append(
            Column("Source Location", source_width, lambda e: _tail(e.stack[0] if e.stack else "", source_width), True)
        )
    counts = [event.flops for event in events if event.flops > 0]
    if layout.flops and counts:
        factor, unit = _scale(min(counts))
        columns.append(Column(f"Total {unit}", _WIDTH, lambda e: f"{e.flops * factor:8.3f}" if e.flops > 0 else "--"))
    return columns


def _cut(text: str, width: int) -> str:
    return f"{text[: width - 3]}..." if len(text) >= width - 3 else text


def _tail(text: str, width: int) -> str:
    """A long path loses its beginning."""
    return text if len(text) <= width else f"...{text[3 - width :]}"


def _rest_of_stack(event: Any, columns: list[Column], layout: Layout) -> list[str]:
    """The stack's further lines, each below the first."""
    at = next((i for i, column in enumerate(columns) if column.title == "Source Location"), None)
    if not event.stack or at is None:
        return []

    def row(text: str) -> str:
        return "".join(column.pad(text if i == at else "") + _GAP for i, column in enumerate(columns))

    return [*(row(_tail(line, columns[at].width)) for line in event.stack[1:]), row("")]
