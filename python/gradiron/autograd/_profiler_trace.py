"""A session as a Chrome trace: complete events by thread, with an arrow from each forward call to its node's turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .profiler_util import uncollected

if TYPE_CHECKING:
    from .profiler_util import EventList, FunctionEvent


def write(path: str, events: EventList, base: int = 0, metadata: dict[str, str] | None = None) -> None:
    """`base` is the session's start in nanoseconds since 1970, `metadata` JSON text by name."""
    import gzip
    import json

    trace = {"schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": base}
    extra = {name: json.loads(text) for name, text in (metadata or {}).items()}
    with uncollected():
        text = json.dumps({**trace, **extra, "traceEvents": _entries(events), "traceName": path})
    if path.endswith(".gz"):
        with gzip.open(path, "wt") as packed:
            packed.write(text)
    else:
        with open(path, "w") as file:
            file.write(text)


def _entries(events: EventList) -> list[dict[str, Any]]:
    import os

    process = os.getpid()
    entries: list[dict[str, Any]] = [_name("process_name", process, 0, "python")]
    for thread in sorted({event.thread for event in events}):
        entries.append(_name("thread_name", process, thread, f"thread {thread}"))
    made: dict[int, FunctionEvent] = {}
    for event in events:
        entries.append(_entry(event, process))
        if event.sequence_nr < 0 or event.is_user_annotation:
            continue
        if event.scope == 0:
            made[event.sequence_nr] = event
        elif event.name.startswith("autograd::engine") and event.sequence_nr in made:
            entries += _arrow(made[event.sequence_nr], event, process)
    return entries


def _name(kind: str, process: int, thread: int, text: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "ts": 0, "args": {"name": text}}


def _entry(event: FunctionEvent, process: int) -> dict[str, Any]:
    span = event.time_range
    where = {"pid": process, "tid": event.thread, "ts": span.start}
    if event.name == "[memory]":
        count = {"Bytes": event.cpu_memory_usage, "Device Bytes": event.device_memory_usage}
        return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": event.name, **where, "args": count}
    args: dict[str, Any] = {"Ev Idx": event.id}
    if event.sequence_nr >= 0:
        args["Sequence number"] = event.sequence_nr
    if event.input_shapes:
        args["Input Dims"] = event.input_shapes
    if event.stack:
        args["Call stack"] = ";".join(event.stack)
    if event.cpu_memory_usage or event.device_memory_usage:
        args |= {"Bytes": event.cpu_memory_usage, "Device Bytes": event.device_memory_usage}
    kind = "user_annotation" if event.is_user_annotation else "cpu_op"
    return {"ph": "X", "cat": kind, "name": event.trace_name, **where, "dur": span.elapsed_us(), "args": args}


def _arrow(forward: FunctionEvent, backward: FunctionEvent, process: int) -> list[dict[str, Any]]:
    def end(phase: str, event: FunctionEvent) -> dict[str, Any]:
        at = {"id": backward.id, "pid": process, "tid": event.thread, "ts": event.time_range.start}
        return {"ph": phase, "cat": "fwdbwd", "name": "fwdbwd", **at}

    return [end("s", forward), {**end("f", backward), "bp": "e"}]
