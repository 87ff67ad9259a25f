"""Batches in pinned memory: tensors are left as they are, for uploads need none; the user's own types are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._nested import is_named, mapping_like, sequence_like


def pin_memory(data: Any, device: Any = None) -> Any:
    """The batch with `pin_memory` called on all that has it."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return mapping_like(data, lambda: {key: pin_memory(value, device) for key, value in data.items()})
    if is_named(data):
        return type(data)(*(pin_memory(value, device) for value in data))
    if isinstance(data, tuple):
        return type(data)(pin_memory(value, device) for value in data)
    if isinstance(data, Sequence):
        return sequence_like(data, lambda: (pin_memory(value, device) for value in data))
    return data
