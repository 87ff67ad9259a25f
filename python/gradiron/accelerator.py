"""The GPU, for programs that do not name its type."""

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
    """Return whether a GPU is available.

    Examples:
        >>> torch.accelerator.is_available() == torch.cuda.is_available()
        True
    """
    return cuda.is_available()


def device_count() -> int:
    """Return the number of GPUs, at most one.

    Examples:
        >>> torch.accelerator.device_count() in (0, 1)
        True
    """
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> device | None:
    """Return the type of the accelerator, or `None` without one.

    Args:
        check_available: makes no difference. Default: `False`

    Examples:
        >>> (torch.accelerator.current_accelerator() is None) != torch.cuda.is_available()
        True
    """
    return device("cuda") if cuda.is_available() else None


def current_device_index() -> int:
    """Return the index of the current GPU.

    Examples:
        >>> torch.accelerator.current_device_index() if torch.cuda.is_available() else 0
        0
    """
    return cuda.current_device()


def set_device_index(device: Any, /) -> None:
    """Set the current GPU.

    Args:
        device: index or device; a negative index does nothing.

    Examples:
        >>> torch.accelerator.set_device_index(-1)
    """
    cuda.set_device(device)


def current_stream(device: Any = None, /) -> Any:
    """Return the current stream of a GPU.

    Args:
        device: a GPU; the current one if `None`.

    Examples:
        >>> if torch.cuda.is_available():
        ...     torch.accelerator.current_stream().synchronize()
    """
    return cuda.current_stream(device)
