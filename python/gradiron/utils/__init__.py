"""Odds and ends: `dlpack`, handles of hooks."""

from __future__ import annotations

from . import dlpack, hooks

__all__ = ["dlpack", "hooks"]


def __getattr__(name: str) -> object:
    import importlib

    if name == "checkpoint":
        return importlib.import_module(".checkpoint", __name__)
    raise AttributeError(f"module 'gradiron.utils' has no attribute '{name}'")
