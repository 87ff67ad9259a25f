"""Names of PyTorch's in `__module__` and `__qualname__` of gradiron's classes and functions, while `torch` means gradiron."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterable
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import gradiron

from .homes import HOMES, WITHOUT_FILE


def to_torch(ours: str) -> str:
    """Return what PyTorch calls a module of ours."""
    inside = ours.removeprefix("gradiron.")
    return inside if inside.partition(".")[0] == "functorch" else "torch" + ours.removeprefix("gradiron")


def to_gradiron(theirs: str) -> str:
    """Return the name here of a module of PyTorch's."""
    return f"gradiron.{theirs}" if theirs.partition(".")[0] == "functorch" else "gradiron" + theirs.removeprefix("torch")


def is_ours(module: object) -> bool:
    """Return whether a `__module__` is gradiron's."""
    return isinstance(module, str) and (module == "gradiron" or module.startswith("gradiron."))


@functools.cache
def _homes(ours: str) -> dict[str, tuple[str, str]]:
    """For names in a module of ours that PyTorch has elsewhere: the module and the name there."""
    found = {}
    for theirs, names in HOMES.get(ours, {}).items():
        for entry in names.split():
            name, _, other = entry.partition("=")
            found[name] = theirs, other or name
    return found


def home(ours: str, name: str) -> tuple[str, str]:
    """Return the module and the name that PyTorch has for what a module of ours holds."""
    return _homes(ours).get(name) or (to_torch(ours), name)


def _holder(ours: str) -> Any:
    """Return a module of ours; those inside the extension are its attributes."""
    inside = ours.removeprefix("gradiron._core.")
    return getattr(gradiron._core, inside) if inside != ours else importlib.import_module(ours)


def find(theirs: str, name: str) -> Any:
    """Return what PyTorch keeps by this name in a module that has no file here; raises AttributeError."""
    for ours, homes in HOMES.items():
        for entry in homes.get(theirs, "").split():
            inside, _, other = entry.partition("=")
            if name == (other or inside):
                return getattr(_holder(ours), inside)
    raise AttributeError(f"module {theirs!r} has no attribute {name!r}", name=name)


def without_file(theirs: str) -> ModuleType:
    """Return a module of PyTorch's that has no file here, though things say that they come from it."""
    module = ModuleType(theirs, "A place of PyTorch's whose contents lie elsewhere in gradiron.")
    module.__getattr__ = lambda name: find(theirs, name)  # type: ignore[method-assign]
    return module


# The parts of the extension whose functions PyTorch's modules have, and the module that has those without a home.
_PARTS = {"_nn": "torch._C._nn", "_distributed": None}
_ABSENT = object()
# What has no name to change, and is most of what a class of the extension holds.
_NAMELESS = frozenset(
    (BuiltinFunctionType, GetSetDescriptorType, MethodDescriptorType, ModuleType, WrapperDescriptorType, str, tuple, type(None))
)


class Renaming:
    """What has PyTorch's names now, and which it had before."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def module(self, module: ModuleType) -> None:
        """Rename what a module holds, and the module, when it has been loaded."""
        ours = module.__name__
        if not is_ours(ours):
            return
        self._values(list(vars(module).values()))
        if module is gradiron._core:
            self._builtins(module, ours)
            for name, theirs in _PARTS.items():
                self._builtins(getattr(module, name), f"{ours}.{name}", theirs)
        theirs = to_torch(ours)
        sys.modules.setdefault(theirs, module)
        # What its functions define from now on is named after it.
        self._set(module, "__name__", theirs)
        self._add_below(module, theirs)

    def _add_below(self, module: ModuleType, theirs: str) -> None:
        """Put PyTorch's modules without a file below the one that is there now: imports find them in `sys.modules`."""
        for name in WITHOUT_FILE.get(theirs, "").split():
            whole = f"{theirs}.{name}"
            if whole not in sys.modules:
                sys.modules[whole] = below = without_file(whole)
                self._before.append((module, name, _ABSENT))
                setattr(module, name, below)
                self._add_below(below, whole)

    def undo(self) -> None:
        """Give everything the names back that it had."""
        for thing, attribute, value in reversed(self._before):
            if value is _ABSENT:
                delattr(thing, attribute)
            else:
                setattr(thing, attribute, value)
        self._before.clear()

    def _set(self, thing: Any, attribute: str, value: str) -> None:
        self._before.append((thing, attribute, getattr(thing, attribute)))
        setattr(thing, attribute, value)

    def _values(self, values: Iterable[Any]) -> None:
        for value in values:
            kind = type(value)
            if kind in _NAMELESS:
                continue
            if kind is FunctionType:
                if is_ours(value.__module__):
                    self._rename(value)
            elif isinstance(value, type):
                if is_ours(value.__module__):
                    self._rename(value)
                    self._values(list(vars(value).values()))
            elif kind is staticmethod or kind is classmethod:
                self._values((value.__func__,))
            elif kind is property:
                self._values((value.fget, value.fset, value.fdel))
            elif is_ours(getattr(value, "__dict__", {}).get("__module__")):
                self._rename(value)  # what `functools.wraps` has named

    def _rename(self, thing: Any) -> None:
        name = getattr(thing, "__qualname__", "")
        module, other = home(thing.__module__, name)
        self._set(thing, "__module__", module)
        if other != name:
            self._set(thing, "__qualname__", other)

    def _builtins(self, part: ModuleType, ours: str, rest: str | None = None) -> None:
        public, table = vars(gradiron), _homes(ours)
        for name, value in vars(part).items():
            if type(value) is BuiltinFunctionType:
                theirs = table[name][0] if name in table else "torch" if public.get(name) is value else rest
                if theirs is not None:
                    self._before.append((value, "__module__", value.__module__))
                    value.__module__ = theirs
