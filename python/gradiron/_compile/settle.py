"""After a captured call: ordinary numbers in place of those that it read from tensors."""

from __future__ import annotations

from typing import Any

from .guards import cell_contents
from .live import ReadNumber
from .observer import Observer

__all__ = ["settled"]


def settled(observer: Observer, stores: list[tuple[str, Any, Any, Any]], result: Any) -> Any:
    """Return the result of a call with ordinary numbers, and put these where the call stored others.

    Args:
        observer: what observed the call.
        stores: its stores into older objects.
        result: its result.
    """
    if not observer.read_numbers:
        return result
    for kind, owner, key, value in stores:
        if not isinstance(value, ReadNumber):
            _ordinary(value, set())
        elif kind == "append":
            owner[:] = [float.__pos__(value) if each is value else each for each in owner]
        elif kind == "set_item" and owner.get(key) is value:
            owner[key] = float.__pos__(value)
        elif kind == "set_attr" and getattr(owner, key, None) is value:
            object.__setattr__(owner, key, float.__pos__(value))
    for (kind, _, _), (owner, _) in observer.reads.items():
        number = cell_contents(owner) if kind == "cell" else None
        if isinstance(number, ReadNumber):
            owner.cell_contents = float.__pos__(number)
    for module, names in observer.stored_globals.values():
        for name in names:
            stored = module.get(name)
            if isinstance(stored, ReadNumber):
                module[name] = float.__pos__(stored)
    result = _ordinary(result, set())
    for read in observer.read_numbers:
        read.settle()
    return result


def _ordinary(value: Any, seen: set[int]) -> Any:
    """Return a value with ordinary numbers; lists and dicts are changed."""
    if isinstance(value, ReadNumber):
        return float.__pos__(value)
    if not isinstance(value, (list, tuple, dict)) or id(value) in seen:
        return value
    seen.add(id(value))
    if isinstance(value, dict):
        for key, each in list(value.items()):
            changed = _ordinary(each, seen)
            if changed is not each:
                value[key] = changed
        return value
    parts = [_ordinary(each, seen) for each in value]
    if all(one is other for one, other in zip(parts, value, strict=True)):
        return value
    if isinstance(value, list):
        value[:] = parts
        return value
    return value._make(parts) if hasattr(value, "_make") else tuple(parts)
