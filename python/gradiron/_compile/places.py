"""Places where a call finds what earlier calls, or others, have stored: an attribute, an item, a variable. What is there is
looked up anew before each replay, and compared as an argument is."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .._core import Tensor
from .guards import MISSING, cell_contents, is_constant

__all__ = ["KINDS", "Place", "can_be_new", "is_like"]

KINDS = frozenset(("item", "element", "last", "attr", "cell"))


class Place:
    """A place.

    Args:
        kind: "item" of a dict, "element" of a list by its index, "last" by an index from its end, "attr" of an object whose
            attributes C finds, or "cell" of a closure.
        owner: the object.
        key: the key.

    Attributes:
        now: returns what is there; `MISSING` if nothing is.
    """

    __slots__ = ("key", "kind", "now", "owner")

    def __init__(self, kind: str, owner: Any, key: Any) -> None:
        self.kind = kind
        self.owner = owner
        self.key = key
        self.now: Callable[[], Any]
        if kind == "item":
            self.now = functools.partial(dict.get, owner, key, MISSING)
        elif kind == "attr":
            self.now = functools.partial(getattr, owner, key, MISSING)
        else:
            self.now = functools.partial(cell_contents, owner) if kind == "cell" else functools.partial(_element, owner, key)


def _element(owner: Any, key: Any) -> Any:
    try:
        return owner[key]
    except IndexError:
        return MISSING


def can_be_new(value: Any) -> bool:
    """Return whether a call may find another value there each time: a tensor, a number, or a container of tensors."""
    kind = type(value)
    if kind is Tensor:
        return not value.__dict__
    return kind in (int, float) or _holds_tensors(value)


def _holds_tensors(value: Any) -> bool:
    kind = type(value)
    if kind in (list, tuple):
        parts = list(value)
    elif kind in (dict, OrderedDict) and all(map(is_constant, value)):
        parts = list(value.values())
    else:
        return False
    tensors = [(type(each) is Tensor and not each.__dict__) or _holds_tensors(each) for each in parts]
    return any(tensors) and all(good or is_constant(each) for good, each in zip(tensors, parts, strict=True))


def is_like(value: Any, other: Any) -> bool:
    """Return whether two values may be found at one place."""
    return type(value) is type(other) and can_be_new(value) and can_be_new(other)
