"""Names in checkpoints: gradiron's classes are written by PyTorch's names, and PyTorch's are found here."""

from __future__ import annotations

import importlib
import pickle
from collections import Counter
from types import BuiltinFunctionType, FunctionType
from typing import Any, ClassVar

import gradiron

from .. import _core
from .._as_torch import naming

# Where modules are named otherwise than PyTorch's; all others differ in the first word only.
_MODULES = {
    "gradiron._core": "torch",
    "gradiron._types": "torch",
    "gradiron._creation": "torch",
    "gradiron._storage": "torch.storage",
    "gradiron._pickling.rebuild": "torch._utils",
}
_NAMES = {
    ("gradiron._pickling.rebuild", "_rebuild_from_type_v2"): ("torch._tensor", "_rebuild_from_type_v2"),
    ("gradiron._pickling.rebuild", "_get_layout"): ("torch.serialization", "_get_layout"),
}
# Names in files from before PyTorch 1.6.
_MOVED = {"torch.tensor": "torch._tensor"}


def _ours(module: str) -> bool:
    return module == "gradiron" or module.startswith("gradiron.")


def to_torch(module: str, name: str) -> tuple[str, str]:
    """What PyTorch calls a thing of ours; a stranger keeps its name."""
    ours = module
    if is_torch(module) and is_torch(gradiron.__name__):
        # The launcher has named it, but nothing that has no place in PyTorch.
        ours = naming.to_gradiron(module)
    elif not _ours(module):
        return module, name
    if (ours, name) in _NAMES:
        return _NAMES[ours, name]
    if ours in _MODULES:
        return _MODULES[ours], name
    return naming.home(module, name) if ours == module else (module, name)


_BACK = {theirs: ours for ours, theirs in _NAMES.items()}


def is_torch(module: str) -> bool:
    """Whether a name is PyTorch's."""
    return module == "torch" or module.startswith("torch.")


def from_torch(module: str, name: str) -> Any:
    """The thing of ours that PyTorch's name stands for."""
    module = _MOVED.get(module, module)
    ours, name = _BACK.get((module, name), ("gradiron" + module.removeprefix("torch"), name))
    # What PyTorch keeps in a module of its own may be found in the package here.
    while ours:
        try:
            found: Any = importlib.import_module(ours)
            for part in name.split("."):
                found = getattr(found, part)
            return found
        except ModuleNotFoundError as error:
            if error.name is None or not _ours(error.name):
                raise
        except AttributeError:
            pass
        ours = ours.rpartition(".")[0]
    try:
        return naming.find(module, name)
    except AttributeError:
        pass
    raise AttributeError(f"Can't get attribute '{name}' on module '{module}': gradiron has no such thing")


class Written:
    """The names that a pickler has written."""

    def __init__(self) -> None:
        self._count: Counter[tuple[str, str]] = Counter()

    def note(self, obj: Any, name: str | None = None) -> None:
        """To be told of everything that is written by name."""
        module = getattr(obj, "__module__", None)
        name = name or getattr(obj, "__qualname__", None)
        if not isinstance(module, str) or not isinstance(name, str) or "." in name:
            return
        if to_torch(module, name) != (module, name):
            self._count[module, name] += 1

    def renamed(self, data: bytes) -> bytes | None:
        """A pickle of protocol 2 or 3 with PyTorch's names in place of ours; None if a string in it looks like a name."""
        for (module, name), times in self._count.items():
            ours, theirs = (f"c{m}\n{n}\n".encode() for m, n in ((module, name), to_torch(module, name)))
            if data.count(ours) != times:
                return None
            data = data.replace(ours, theirs)
        return data


# What pickles write by name.
BY_NAME = (type, FunctionType, BuiltinFunctionType)


_Pickler: Any = getattr(pickle, "_Pickler")  # noqa: B009 (has no public name)


class NamingPickler(_Pickler):  # type: ignore[misc]
    """Pickles of any protocol with PyTorch's names. In Python, so slower than the renaming of what C has written."""

    def save_global(self, obj: Any, name: str | None = None) -> None:
        name = name or getattr(obj, "__qualname__", None) or obj.__name__
        module = getattr(obj, "__module__", None)
        if not isinstance(module, str) or "." in name or to_torch(module, name) == (module, name):
            super().save_global(obj, name)
            return
        if getattr(importlib.import_module(module), name, None) is not obj and getattr(_core, name, None) is not obj:
            raise pickle.PicklingError(f"Can't pickle {obj!r}: it's not the same object as {module}.{name}")
        module, name = to_torch(module, name)
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    dispatch: ClassVar[Any] = {**_Pickler.dispatch, FunctionType: save_global}
