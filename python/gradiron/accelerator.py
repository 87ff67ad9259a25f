"""The GPU, for programs that do not name its kind."""

from __future__ import annotations

from typing import Any

from . import cuda
from ._core import device
from .cuda import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    synchronize,
)

__all__ = [
    "current_accelerator",
    "current_device_index",
    "current_stream",
    "device_count",
    "empty_cache",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "set_device_index",
    "synchronize",
]


def is_available() -> bool:
    return cuda.is_available()


def device_count() -> int:
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> device | None:
    """The kind of device that work can be sped up with."""
    return device("cuda") if cuda.is_available() else None


def current_device_index() -> int:
    return cuda.current_device()


def set_device_index(device: Any, /) -> None:
    cuda.set_device(device)


def current_stream(device: Any = None, /) -> Any:
    return cuda.current_stream(device)
