"""The core's part of `nn`: `torch._C._nn`."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import device
from .._tensor import parse_to


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """What `Module.to` is told: device, dtype, whether it need not wait, and memory format."""
    kind, place, copy, memory_format = parse_to(args, kwargs)
    if copy:
        raise RuntimeError(".to() does not accept copy argument")
    waits = kwargs.get("non_blocking", any(arg is True for arg in args))
    return None if place is None else device(place), kind, waits, memory_format


def __getattr__(name: str) -> Any:
    found = getattr(_core._nn, name, None)
    if found is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'", name=name)
    return found
