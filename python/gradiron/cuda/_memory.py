"""Memory statistics of the GPU."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ._gpu import checked_index, core, gpu

_NOTHING = dict.fromkeys(("allocated", "max_allocated", "reserved", "max_reserved", "requests", "creations"), 0)


def _figures() -> dict[str, int]:
    return _NOTHING if core is None else core.memory()


def memory_allocated(device: Any = None) -> int:
    """Return the number of bytes that tensors occupy on the GPU.

    Args:
        device: a GPU; the current one if `None`.

    Examples:
        >>> torch.cuda.memory_allocated() >= 0
        True
    """
    return _figures()["allocated"]


def max_memory_allocated(device: Any = None) -> int:
    """Return the peak of `memory_allocated`, since the start or `reset_peak_memory_stats`.

    Args:
        device: a GPU; the current one if `None`.

    Examples:
        >>> torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated()
        True
    """
    return _figures()["max_allocated"]


def memory_reserved(device: Any = None) -> int:
    """Return the number of bytes that are allocated on the GPU, in use by tensors or cached.

    Args:
        device: a GPU; the current one if `None`.

    Examples:
        >>> torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
        True
    """
    return _figures()["reserved"]


def max_memory_reserved(device: Any = None) -> int:
    """Return the peak of `memory_reserved`, since the start or `reset_peak_memory_stats`.

    Args:
        device: a GPU; the current one if `None`.

    Examples:
        >>> torch.cuda.max_memory_reserved() >= torch.cuda.memory_reserved()
        True
    """
    return _figures()["max_reserved"]


def memory_stats(device: Any = None) -> OrderedDict[str, int]:
    """Return all memory statistics under PyTorch's names; none before the first use of the GPU.

    Args:
        device: a GPU; the current one if `None`.

    Examples:
        >>> current = torch.cuda.memory_stats().get("allocated_bytes.all.current", 0)
    """
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
    """Return the memory statistics as text.

    Args:
        device: a GPU; the current one if `None`.
        abbreviated: ignored. Default: `False`

    Examples:
        >>> text = torch.cuda.memory_summary()
    """
    lines = [f"{name:<32}{value:>16,}" for name, value in memory_stats(device).items()]
    return "\n".join(lines)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Reset the peaks of the memory statistics to the current values.

    Args:
        device: a GPU; the current one if `None`.

    Examples:
        >>> torch.cuda.reset_peak_memory_stats()
    """
    if core is not None:
        core.reset_peak()


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def ipc_collect() -> None:
    """Do nothing, as no GPU memory is shared with other processes.

    Examples:
        >>> torch.cuda.ipc_collect()
    """


def empty_cache() -> None:
    """Free the cached GPU memory that no tensor uses.

    Examples:
        >>> torch.cuda.empty_cache()
    """
    if core is not None:
        core.empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the free and the total GPU memory in bytes.

    The use by other processes is not known, so the free memory is an upper bound.

    Args:
        device: a GPU; the current one if `None`.

    Examples:
        >>> if torch.cuda.is_available():
        ...     free, total = torch.cuda.mem_get_info()
    """
    checked_index(device)
    total = gpu().properties()["total_memory"]
    return max(total - memory_reserved(), 0), total
