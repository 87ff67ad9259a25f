"""What rewritten functions call: Python's operations, observed while a call is captured and plain otherwise."""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

from . import attributes, containers
from .live import plain
from .notes import current, observe_code
from .rewrite import rewrite
from .signs import BINARY, COMPARE, INPLACE, UNARY

__all__ = ["Unit", "new_unit"]


def new_unit(code: types.CodeType, module: dict[str, Any]) -> tuple[types.CodeType, frozenset[str]]:
    """Rewrite a function's code. Returns the new code, and the global names that it stores.

    Args:
        code: the code.
        module: the globals of its function.

    Raises:
        Unrewritable: if it does something that is not understood.
    """
    found = module.get("__builtins__", builtins)
    made, stored = rewrite(code, module, Unit(module, found if isinstance(found, dict) else found.__dict__))
    observe_code(made, code)
    return made, stored


class Unit:
    """The operations of a rewritten function.

    Args:
        module: the function's globals.
        own_builtins: its builtins.
    """

    def __init__(self, module: dict[str, Any], own_builtins: dict[str, Any]) -> None:
        self.module = module
        self.builtins = own_builtins

    # Names.

    def name(self, name: str) -> Any:
        """A global or builtin name."""
        o = current()
        found = self.module.get(name, _NOTHING)
        if o is not None:
            if found is not _NOTHING:
                return o.read("item", self.module, name, found)
            o.note("item", self.module, name, o.missing)
        if found is _NOTHING:
            found = self.builtins.get(name, _NOTHING)
            if found is _NOTHING:
                raise NameError(f"name '{name}' is not defined", name=name)
            if o is not None:
                o.note("item", self.builtins, name, found)
        return found if o is None else o.see(found)

    def import_module(self, name: str, whole: bool) -> Any:
        """`import name`, or with `as` (`whole`)."""
        self._load(name)
        return sys.modules[name if whole else name.partition(".")[0]]

    def import_from(self, module: str, name: str, level: int) -> Any:
        """`from module import name`."""
        full = module
        if level:
            package = str(self.module.get("__package__") or self.module["__name__"])
            base = package.rsplit(".", level - 1)[0] if level > 1 else package
            full = f"{base}.{module}" if module else base
        self._load(full)
        found = sys.modules[full]
        try:
            return self.attr(found, name)
        except AttributeError:
            self._load(f"{full}.{name}")
            if f"{full}.{name}" in sys.modules:
                return sys.modules[f"{full}.{name}"]
            raise ImportError(f"cannot import name '{name}' from '{full}'", name=full) from None

    @staticmethod
    def _load(name: str) -> None:
        o = current()
        if name not in sys.modules:
            if o is not None:
                o.stop(f"it imports {name}")
            __import__(name)
        if o is not None:
            o.note("item", sys.modules, name, sys.modules.get(name, o.missing))

    @staticmethod
    def locals(function: Any, found: dict[str, Any]) -> Any:
        """`locals()`, without the names that rewriting added."""
        if function is not builtins.locals:
            return Unit.call(function)
        return Unit.made({name: value for name, value in found.items() if name[0] != "."})

    @staticmethod
    def super(function: Any, cls: Any, first: Any) -> Any:
        """`super()`."""
        return super(cls, first) if function is super else Unit.call(function)

    # Attributes and items.

    @staticmethod
    def attr(value: Any, name: str) -> Any:
        """`value.name`"""
        o = current()
        return getattr(value, name) if o is None else attributes.get_attr(o, value, name)

    @staticmethod
    def set_attr(new: Any, value: Any, name: str) -> None:
        """`value.name = new`"""
        o = current()
        if o is None:
            setattr(value, name, new)
        else:
            attributes.set_attr(o, new, value, name)

    @staticmethod
    def del_attr(value: Any, name: str) -> None:
        """`del value.name`"""
        o = current()
        if o is None:
            delattr(value, name)
        else:
            attributes.del_attr(o, value, name)

    @staticmethod
    def item(value: Any, key: Any) -> Any:
        """`value[key]`"""
        o = current()
        return value[key] if o is None else containers.get_item(o, value, key)

    @staticmethod
    def set_item(new: Any, value: Any, key: Any) -> None:
        """`value[key] = new`"""
        o = current()
        if o is None:
            value[key] = new
        else:
            containers.set_item(o, new, value, key)

    @staticmethod
    def del_item(value: Any, key: Any) -> None:
        """`del value[key]`"""
        o = current()
        if o is None:
            del value[key]
        else:
            containers.del_item(o, value, key)

    @staticmethod
    def slice(start: Any, stop: Any, step: Any) -> slice:
        """`start:stop:step`"""
        return slice(start, stop, step)

    # Calls.

    @staticmethod
    def call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """`function(*args, **kwargs)`"""
        o = current()
        return function(*args, **kwargs) if o is None else o.call(function, *args, **kwargs)

    @staticmethod
    def decorator(function: Any) -> Any:
        """`@function`"""
        return lambda given: Unit.call(function, given)

    @staticmethod
    def double_star(value: Any) -> Any:
        """`**value`"""
        o = current()
        if o is not None and isinstance(value, dict):
            o.note_dict(value)
        elif o is not None:
            o.stop(f"it unpacks a {type(value).__name__} by **")
        return value

    @staticmethod
    def context(value: Any) -> Any:
        """`with value`"""
        o = current()
        if o is None:
            return value
        enter, leave = (attributes.lookup(type(value), name) for name in ("__enter__", "__exit__"))
        o.note_type(value)
        o.note_class(type(value), "__enter__")
        o.note_class(type(value), "__exit__")
        if not isinstance(enter, types.FunctionType) and not isinstance(leave, types.FunctionType):
            if not o.is_known_context(value):
                o.stop(f"it enters a {type(value).__name__}, which is not known to be free of hidden inputs and outputs")
            return value
        return _Context(value, enter, leave)

    # Iteration.

    @staticmethod
    def iterate(value: Any) -> Any:
        """`for … in value`, `*value` and `a, b = value`"""
        o = current()
        return value if o is None else containers.walked(o, value)

    @staticmethod
    def iterate_parts(value: Any) -> Any:
        """`for a, b in value`, in a comprehension"""
        o = current()
        return value if o is None else _parts(containers.walked(o, value))

    # Operators.

    @staticmethod
    def binary(sign: str, left: Any, right: Any) -> Any:
        """`left + right`"""
        o = current()
        return BINARY[sign](left, right) if o is None else o.binary(sign, left, right)

    @staticmethod
    def inplace(sign: str, left: Any, right: Any) -> Any:
        """`left += right`"""
        o = current()
        return INPLACE[sign](left, right) if o is None else o.inplace(sign, left, right)

    @staticmethod
    def unary(sign: str, value: Any) -> Any:
        """`-value`"""
        o = current()
        return UNARY[sign](value) if o is None else o.unary(sign, value)

    @staticmethod
    def compare(sign: str, left: Any, right: Any) -> Any:
        """`left < right`"""
        o = current()
        return COMPARE[sign](left, right) if o is None else o.compare(sign, left, right)

    @staticmethod
    def tested(value: Any) -> Any:
        """The value of a test, which Python asks for its truth next."""
        o = current()
        return value if o is None else o.tested(value)

    @staticmethod
    def formatted(value: Any) -> Any:
        """A value in an f-string, which Python shows next."""
        o = current()
        return value if o is None else o.formatted(value)

    @staticmethod
    def matched(value: Any) -> Any:
        """The subject of a `match` with constants."""
        o = current()
        value = plain(value)
        if o is not None and not o.is_printable(value):
            o.stop(f"it matches a {type(value).__name__}")
        return value

    @staticmethod
    def made(value: Any) -> Any:
        """Something that the function makes."""
        o = current()
        return value if o is None else o.make(value)

    @staticmethod
    def second(_: Any, value: Any) -> Any:
        """The second of two values."""
        return value


def _parts(values: Any) -> Any:
    for each in values:
        yield _whole(each)


def _whole(value: Any) -> Any:
    """Unpack a value, and what is in it, for nested targets."""
    o = current()
    if o is not None and not isinstance(value, (str, bytes)):
        value = containers.walked(o, value)
        if isinstance(value, (tuple, list)):
            for each in value:
                if isinstance(each, (tuple, list)):
                    _whole(each)
    return value


class _Context:
    """A context manager whose methods are observed."""

    def __init__(self, value: Any, enter: Any, leave: Any) -> None:
        self.value, self.enter, self.leave = value, enter, leave

    def __enter__(self) -> Any:
        return Unit.call(self.enter, self.value)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        return Unit.call(self.leave, self.value, kind, error, traceback)


_NOTHING = object()
