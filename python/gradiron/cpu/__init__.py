"""The CPU, where programs speak of it as of a device among others."""

from __future__ import annotations

from typing import Any

from . import amp

__all__ = ["amp", "current_device", "device_count", "is_available", "is_initialized", "set_device", "synchronize"]


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def device_count() -> int:
    return 1


def current_device() -> str:
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing to choose from."""


def synchronize(device: Any = None) -> None:
    """Nothing to wait for."""
