"""Names of PyTorch's in `__module__` and `__qualname__` of gradiron's classes and functions, while `torch` means gradiron."""

from __future__ import annotations

import importlib
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import gradiron

from .homes import HOMES, WITHOUT_FILE


def to_torch(ours: str) -> str:
    """Return what PyTorch calls a module of ours."""
    return "torch" + ours.removeprefix("gradiron")


def to_gradiron(theirs: str) -> str:
    """Return the name here of a module of PyTorch's."""
    return "gradiron" + theirs.removeprefix("torch")


def is_ours(module: object) -> bool:
    """Return whether a `__module__` is gradiron's."""
    return isinstance(module, str) and (module == "gradiron" or module.startswith("gradiron."))


def _homes(ours: str) -> dict[str, tuple[str, str]]:
    """For names in a module of ours that PyTorch has elsewhere: the module and the name there."""
    found = {}
    for theirs, names in HOMES.get(ours, {}).items():
        for entry in names.split():
            name, _, other = entry.partition("=")
            found[name] = theirs, other or name
    return found


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


# The parts of the extension whose functions PyTorch's modules have.
_PARTS = ("_nn", "_distributed")
_ABSENT = object()


class Renaming:
    """What has PyTorch's names now, and which it had before."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []
        self._tables: dict[str, dict[str, tuple[str, str]]] = {}

    def module(self, module: ModuleType) -> None:
        """Rename what a module holds, and the module, when it has been loaded."""
        ours = module.__name__
        if not is_ours(ours):
            return
        for value in list(vars(module).values()):
            self._value(value)
        if module is gradiron._core:
            self._builtins(module, ours)
            for name in _PARTS:
                self._builtins(getattr(module, name), f"{ours}.{name}")
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

    def _home(self, ours: str, name: str) -> tuple[str, str]:
        table = self._tables.get(ours)
        if table is None:
            table = self._tables[ours] = _homes(ours)
        return table.get(name) or (to_torch(ours), name)

    def _value(self, value: Any) -> None:
        kind = type(value)
        if kind is FunctionType:
            if is_ours(value.__module__):
                self._rename(value)
        elif isinstance(value, type):
            if is_ours(value.__module__):
                # A class may have a function that its metaclass sets beside it.
                members = list(vars(value).values())
                self._rename(value)
                for member in members:
                    self._member(member)
        elif kind is not ModuleType and is_ours(getattr(value, "__dict__", {}).get("__module__")):
            self._rename(value)  # what `functools.wraps` has named

    def _member(self, member: Any) -> None:
        kind = type(member)
        if kind is staticmethod or kind is classmethod:
            member = member.__func__
        elif kind is property:
            for function in (member.fget, member.fset, member.fdel):
                if function is not None:
                    self._value(function)
            return
        self._value(member)

    def _rename(self, thing: Any) -> None:
        name = getattr(thing, "__qualname__", "")
        module, other = self._home(thing.__module__, name)
        self._set(thing, "__module__", module)
        if other != name:
            self._set(thing, "__qualname__", other)

    def _builtins(self, part: ModuleType, ours: str) -> None:
        public, table = vars(gradiron), _homes(ours)
        for name, value in vars(part).items():
            if type(value) is BuiltinFunctionType:
                home = table.get(name)
                if home is not None:
                    self._set(value, "__module__", home[0])
                elif public.get(name) is value:
                    self._set(value, "__module__", "torch")
