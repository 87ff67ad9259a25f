"""The GPU by its name on a Mac."""

from __future__ import annotations

from . import cuda
from .backends.mps import is_available
from .cuda import empty_cache, get_rng_state, manual_seed, seed, set_rng_state, synchronize

__all__ = [
    "current_allocated_memory",
    "device_count",
    "driver_allocated_memory",
    "empty_cache",
    "get_rng_state",
    "is_available",
    "manual_seed",
    "seed",
    "set_rng_state",
    "synchronize",
]


def device_count() -> int:
    return int(is_available())


def current_allocated_memory() -> int:
    """Bytes in tensors."""
    return cuda.memory_allocated()


def driver_allocated_memory() -> int:
    """Bytes that the driver has given."""
    return cuda.memory_reserved()
