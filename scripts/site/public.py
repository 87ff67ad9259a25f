"""The public names of the package, each with the one page that documents it."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradiron

ROOT = Path(__file__).resolve().parent.parent.parent
PYTORCHS = json.loads((ROOT / "python/gradiron/_as_torch/pytorch_names.json").read_text(encoding="utf-8"))["data"]
# Public modules that PyTorch has not, or has outside Python.
OURS = ("viz", "autograd.source_lines", "ops", "utils.safetensors")
FUNCTIONS = types.FunctionType | types.BuiltinFunctionType | types.MethodDescriptorType
NOT_NAMES = ("annotations", "TYPE_CHECKING")


def load(name: str) -> types.ModuleType:
    return importlib.import_module(f"gradiron.{name}" if name else "gradiron")


def modules() -> dict[str, types.ModuleType]:
    """The public modules, by their names below the package, which is `""`; those above before those below."""
    found = (info.name.removeprefix("gradiron.") for info in pkgutil.walk_packages(gradiron.__path__, "gradiron."))
    known = {*PYTORCHS["modules"], *OURS}
    names = [name for name in found if not name.startswith("_") and "._" not in name and name in known]
    loaded = {}
    for name in sorted(["", *names], key=lambda name: (name.count(".") + bool(name), name)):
        try:
            loaded[name] = load(name)
        except ModuleNotFoundError as error:  # `utils.tensorboard` needs another package
            if (error.name or "").startswith("gradiron"):
                raise
    return loaded


def is_ours(module: types.ModuleType, value: Any) -> bool:
    """Whether a value was made by gradiron, not imported from the standard library."""
    if isinstance(value, type | FUNCTIONS):
        home = getattr(value, "__module__", None) or "gradiron"
        return home.partition(".")[0] == "gradiron"
    return not isinstance(value, types.ModuleType) and getattr(type(value), "__module__", "") not in ("typing", "__future__")


def names(module: types.ModuleType) -> list[str]:
    """The public names of a module, without the modules below it and without what it imports for itself."""
    listed = getattr(module, "__all__", None)
    found = []
    for name in sorted(set(listed or dir(module)) - set(NOT_NAMES)):
        if name.startswith("_"):
            continue
        try:
            value = getattr(module, name)
        except ImportError:  # loaded from another package when it is asked for
            continue
        if is_ours(module, value) and (listed or not is_import(module, name, value)):
            found.append(name)
    return found


def is_import(module: types.ModuleType, name: str, value: Any) -> bool:
    """Whether a module without `__all__` has a name only because its own source uses it."""
    below = module.__name__.removeprefix("gradiron").removeprefix(".")
    return bool(below) and name not in PYTORCHS.get(below, ()) and below not in OURS


@dataclass
class Entry:
    """A name that a page documents: the qualified name, and the value."""

    name: str
    value: Any

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]


def first_sentence(value: Any) -> str:
    text = (inspect.getdoc(value) or "").strip().partition("\n\n")[0].replace("\n", " ")
    head, dot, _ = text.partition(". ")
    return head + "." if dot else text


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public attributes that a class adds to its bases, or documents anew."""
    for name in sorted(dir(cls)):
        if name.startswith("_") or (issubclass(cls, tuple) and name in dir(tuple)):
            continue
        # A private base has no page of its own.
        owner = next((base for base in cls.__mro__ if name in vars(base)), None)
        if owner is None or (owner is not cls and not owner.__name__.startswith("_")):
            continue
        if owner.__module__.partition(".")[0] != "gradiron":
            continue
        value = inspect.getattr_static(cls, name)
        inherited = next((vars(base)[name] for base in owner.__mro__[1:] if name in vars(base)), None)
        if inherited is None or getattr(value, "__doc__", None):
            yield name, value
