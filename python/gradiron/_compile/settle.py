"""After a captured call: ordinary numbers in place of those that replays compute anew."""

from __future__ import annotations

from typing import Any

from .arguments import is_plain_class
from .guards import cell_contents
from .live import is_live, value_of
from .observer import Observer

__all__ = ["settled"]


def settled(observer: Observer, stores: list[tuple[str, Any, Any, Any]], result: Any) -> Any:
    """Return the result of a call with ordinary numbers, and put these where the call stored others.

    Args:
        observer: what observed the call.
        stores: its stores into older objects.
        result: its result.
    """
    if not observer.tape.steps:
        return result
    made = observer.made or observer.fresh
    for kind, owner, key, value in stores:
        number = _ordinary(value, set(), made)
        if number is value:
            continue
        if kind == "append":
            owner[:] = [number if each is value else each for each in owner]
        elif kind == "set_item" and _item(owner, key) is value:
            owner[key] = number
        elif kind == "set_attr" and getattr(owner, key, None) is value:
            object.__setattr__(owner, key, number)
    for cell, _ in observer.cells.values():
        stored = cell_contents(cell)
        ordinary = _ordinary(stored, set(), made)
        if ordinary is not stored:
            cell.cell_contents = ordinary
    for module, names in observer.stored_globals.values():
        for name in names:
            stored = module.get(name)
            ordinary = _ordinary(stored, set(), made)
            if ordinary is not stored:
                module[name] = ordinary
    result = _ordinary(result, set(), made)
    for read in observer.read_numbers:
        read.settle()
    return result


def _item(owner: Any, key: Any) -> Any:
    return dict.get(owner, key) if isinstance(owner, dict) else owner[key]


def _ordinary(value: Any, seen: set[int], made: Any) -> Any:
    """Return a value with ordinary numbers; lists, dicts and objects that the call made are changed.

    Args:
        value: the value.
        seen: the containers that were looked at.
        made: the identities of what the call made.
    """
    if is_live(value):
        return value_of(value)
    if id(value) in made and id(value) not in seen and is_plain_class(type(value)):
        seen.add(id(value))
        _ordinary(vars(value), seen, made)
        return value
    if not isinstance(value, (list, tuple, dict)) or id(value) in seen:
        return value
    seen.add(id(value))
    if isinstance(value, dict):
        for key, each in list(value.items()):
            changed = _ordinary(each, seen, made)
            if changed is not each:
                value[key] = changed
        return value
    parts = [_ordinary(each, seen, made) for each in value]
    if all(one is other for one, other in zip(parts, value, strict=True)):
        return value
    if isinstance(value, list):
        value[:] = parts
        return value
    return value._make(parts) if hasattr(value, "_make") else tuple(parts)
