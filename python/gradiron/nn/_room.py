"""Raises an error for layers that no memory could hold, before the first one is built."""

from __future__ import annotations

from .. import _core
from .modules.module import Module

# A layer's objects take at least so many bytes, whatever its sizes are.
_LEAST = 4096


def require_room(count: int, module: Module | None = None, elements: int = 0) -> None:
    """Raise the out-of-memory error if `count` copies of a module, or layers of that size, cannot fit."""
    if module is not None:
        elements = sum(param.numel() for param in module.parameters())
    wanted = count * (_LEAST + 4 * elements)
    if wanted > 1 << 32:
        _core.empty([min(wanted, (1 << 62) - 1)], dtype=_core.uint8)
