"""The GPU by its name on macOS."""

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
    """Return the number of GPUs, at most one.

    Examples:
        >>> torch.mps.device_count() in (0, 1)
        True
    """
    return int(is_available())


def current_allocated_memory() -> int:
    """Return the number of bytes that tensors occupy on the GPU.

    Examples:
        >>> torch.mps.current_allocated_memory() >= 0
        True
    """
    return cuda.memory_allocated()


def driver_allocated_memory() -> int:
    """Return the number of bytes that are allocated on the GPU.

    Examples:
        >>> torch.mps.driver_allocated_memory() >= 0
        True
    """
    return cuda.memory_reserved()
