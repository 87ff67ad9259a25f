"""Pipes of data: datasets that are composed by calls, as `IterableWrapper(range(9)).map(str).batch(2)`.

The pipes are in `iter` and `map`, which are loaded when they are asked for; they join the base classes as methods then.
"""

from __future__ import annotations

import importlib
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name in ("iter", "map"):
        return importlib.import_module(f".{name}", __package__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
