"""Names of `xpu`, by the module that PyTorch has them in."""

from __future__ import annotations

from typing import Any

from gradiron import xpu

_xpu: Any = xpu

_NAMES = """
    MemPool XPUPluggableAllocator change_current_allocator empty_cache get_per_process_memory_fraction
    max_memory_allocated max_memory_reserved mem_get_info memory_allocated memory_reserved memory_snapshot
    memory_stats memory_stats_as_nested_dict reset_accumulated_memory_stats reset_peak_memory_stats
    set_per_process_memory_fraction use_mem_pool
"""
globals().update({name: getattr(_xpu, name) for name in _NAMES.split()})
