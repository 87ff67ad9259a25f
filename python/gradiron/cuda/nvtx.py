"""Markers for NVIDIA's profilers, which have no effect."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_depth = 0


def range_push(msg: str) -> int:
    """Begin a range and return its depth."""
    global _depth
    _depth += 1
    return _depth - 1


def range_pop() -> int:
    """End the latest range and return its depth."""
    global _depth
    _depth -= 1
    return _depth


def range_start(msg: str) -> int:
    """Begin a range that `range_end` ends, and return its number."""
    return 0


def range_end(range_id: int) -> None:
    """End a range."""


def mark(msg: str) -> None:
    """Mark a moment."""


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Begin a range that ends with the `with` block."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
