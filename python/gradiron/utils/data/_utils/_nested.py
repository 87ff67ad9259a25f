"""Structures of structures: mappings, sequences and named tuples, rebuilt as what they were."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any


def is_named(value: Any) -> bool:
    """Whether it is a named tuple."""
    return isinstance(value, tuple) and hasattr(value, "_fields")


def mapping_like(like: Any, values: Callable[[], dict[Any, Any]]) -> Any:
    """A mapping of the same class, with what else it holds; a plain dictionary where the class does not allow that."""
    try:
        if isinstance(like, MutableMapping):
            made = copy.copy(like)
            made.update(values())
            return made
        return type(like)(values())
    except TypeError:
        return values()


def sequence_like(like: Any, values: Callable[[], Iterable[Any]]) -> Any:
    """A sequence of the same class, with what else it holds; a plain list where the class does not allow that."""
    try:
        if isinstance(like, MutableSequence):
            made = copy.copy(like)
            for i, value in enumerate(values()):
                made[i] = value
            return made
        return type(like)(list(values()))
    except TypeError:
        return list(values())


__all__ = ["Mapping", "Sequence", "is_named", "mapping_like", "sequence_like"]
