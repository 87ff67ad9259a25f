"""A session's memory over time. Whose it is (a parameter's, a gradient's) nobody knows here: all is of no category."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core

if TYPE_CHECKING:
    from ..autograd.profiler_util import EventList

# What PyTorch's files count apart: a leading zero, then unknown memory, then seven categories.
COLUMNS = 9
CREATE, DESTROY = 2, 4


def write(path: str, device: str | None, events: EventList, base: int) -> None:
    """Points `(time, action, bytes, category)` where `path` ends in `.raw.json.gz`, else times and sums in columns."""
    import gzip
    import json

    if path.endswith(".html"):
        raise NotImplementedError("a memory timeline is written as JSON; .html is not supported")
    changes = _changes(device, events, base)
    what: list[Any]
    if path.endswith(".raw.json.gz"):
        what = [[time, CREATE if count > 0 else DESTROY, count, 0] for time, count in changes]
    else:
        total, sums = 0, []
        for _, count in changes:
            total += count
            sums.append([0, total] + [0] * (COLUMNS - 2))
        what = [[time // 1000 for time, _ in changes], sums]
    with gzip.open(path, "wt") if path.endswith(".gz") else open(path, "w") as file:
        file.write(json.dumps(what))


def _changes(device: str | None, events: EventList, base: int) -> list[tuple[int, int]]:
    """When memory was taken or given back (nanoseconds since 1970), and how much."""
    if device is None:
        on_gpu = any(event.device_memory_usage for event in events)
    else:
        on_gpu = _core.device(device).type == "cuda"
    of = "self_device_memory_usage" if on_gpu else "self_cpu_memory_usage"
    found = ((base + int(event.time_range.end * 1000), getattr(event, of)) for event in events)
    return sorted((time, count) for time, count in found if count)
