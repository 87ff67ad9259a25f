"""Intel's GPUs have no name of their own here: they are `cuda`, as all are."""

from __future__ import annotations

__all__ = ["device_count", "is_available", "is_current_stream_capturing", "is_initialized"]


def is_available() -> bool:
    return False


def is_initialized() -> bool:
    return False


def device_count() -> int:
    return 0


def is_current_stream_capturing() -> bool:
    return False
