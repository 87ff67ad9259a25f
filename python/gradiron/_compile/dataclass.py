"""The `__init__` that Python generates for a dataclass, observed."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from .attributes import get_attr, lookup
from .guards import MISSING

if TYPE_CHECKING:
    from .observer import Observer

__all__ = ["fill", "is_of_dataclass"]


def is_of_dataclass(function: Any, args: tuple[Any, ...]) -> bool:
    """Return whether a function is the `__init__` that was generated for the dataclass of its first argument."""
    if function.__code__.co_filename != "<string>" or function.__name__ != "__init__" or not args:
        return False
    cls = type(args[0])
    if "__dataclass_fields__" not in cls.__dict__ or cls.__dict__.get("__init__") is not function:
        return False
    return lookup(cls, "__setattr__") is object.__setattr__ or cls.__dict__["__dataclass_params__"].frozen


def fill(o: Observer, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Do what the `__init__` of a dataclass does."""
    own, *given = args
    code, missing = function.__code__, dataclasses.MISSING
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    positional, defaults = names[: code.co_argcount - 1], function.__defaults__ or ()
    values = dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True))
    values |= function.__kwdefaults__ or {}
    bound = dict(zip(positional, given, strict=False))
    values |= bound | kwargs
    if len(given) > len(positional) or bound.keys() & kwargs.keys() or values.keys() != set(names):
        function(*args, **kwargs)  # it says what is wrong with its arguments
    after = []
    for field in own.__dataclass_fields__.values():
        kind = field._field_type.name
        value = values.get(field.name, field.default)
        if type(value).__name__ == "_HAS_DEFAULT_FACTORY_CLASS" or (value is missing and not field.init):
            value = missing if field.default_factory is missing else o.call(field.default_factory)
        if kind == "_FIELD_INITVAR":
            after.append(value)
        elif kind == "_FIELD" and value is not missing and (field.init or field.default_factory is not missing):
            object.__setattr__(own, field.name, value)
    if lookup(type(own), "__post_init__") is not MISSING:
        o.call(get_attr(o, own, "__post_init__"), *after)
