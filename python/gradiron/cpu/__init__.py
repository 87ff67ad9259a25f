"""The CPU, for programs that treat it as one device among others."""

from __future__ import annotations

from typing import Any

from . import amp

__all__ = ["amp", "current_device", "device_count", "is_available", "is_initialized", "set_device", "synchronize"]


def is_available() -> bool:
    """Return whether there is a CPU.

    Examples:
        >>> torch.cpu.is_available()
        True
    """
    return True


def is_initialized() -> bool:
    """Return whether the CPU is initialized, which it is.

    Examples:
        >>> torch.cpu.is_initialized()
        True
    """
    return True


def device_count() -> int:
    """Return the number of devices, 1.

    Examples:
        >>> torch.cpu.device_count()
        1
    """
    return 1


def current_device() -> str:
    """Return the current device, `"cpu"`.

    Examples:
        >>> torch.cpu.current_device()
        'cpu'
    """
    return "cpu"


def set_device(device: Any) -> None:
    """Do nothing, as there is one device.

    Args:
        device: ignored.

    Examples:
        >>> torch.cpu.set_device(0)
    """


def synchronize(device: Any = None) -> None:
    """Do nothing, as operators on the CPU finish before they return.

    Args:
        device: ignored.

    Examples:
        >>> torch.cpu.synchronize()
    """
