"""How much memory the GPU's tensors take, and giving back what none of them uses."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ._gpu import checked_index, core, gpu

_NOTHING = dict.fromkeys(("allocated", "max_allocated", "reserved", "max_reserved", "requests", "creations"), 0)


def _figures() -> dict[str, int]:
    return _NOTHING if core is None else core.memory()


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors take now."""
    return _figures()["allocated"]


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors took since the start, or since `reset_peak_memory_stats`."""
    return _figures()["max_allocated"]


def memory_reserved(device: Any = None) -> int:
    """Bytes held: those that tensors take, and those kept for the next."""
    return _figures()["reserved"]


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes held since the start, or since `reset_peak_memory_stats`."""
    return _figures()["max_reserved"]


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """All figures, under PyTorch's names; empty while no GPU was used."""
    if core is None or not core.is_open():
        return OrderedDict()
    figures = _figures()
    return OrderedDict(
        {
            "allocated_bytes.all.current": figures["allocated"],
            "allocated_bytes.all.peak": figures["max_allocated"],
            "allocation.all.allocated": figures["requests"],
            "num_device_alloc": figures["creations"],
            "reserved_bytes.all.current": figures["reserved"],
            "reserved_bytes.all.peak": figures["max_reserved"],
        }
    )


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The figures as text."""
    lines = [f"{name:<32}{value:>16,}" for name, value in memory_stats(device).items()]
    return "\n".join(lines)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Start the peaks afresh, from what is in use now."""
    if core is not None:
        core.reset_peak()


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def ipc_collect() -> None:
    """Nothing: no memory of the GPU is shared with other processes."""


def empty_cache() -> None:
    """Give memory that no tensor uses back to the driver."""
    if core is not None:
        core.empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of the GPU's memory, as far as this process knows: others may use some of it, too."""
    checked_index(device)
    total = gpu().properties()["total_memory"]
    return max(total - memory_reserved(), 0), total
