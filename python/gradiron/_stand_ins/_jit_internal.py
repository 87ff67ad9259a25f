"""Marks that programs put on their methods for TorchScript."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .jit import export, ignore, unused

__all__ = ["export", "ignore", "unused"]


def _copy_to_script_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a method that a script shall keep as it is; it stays what it is."""
    return fn
