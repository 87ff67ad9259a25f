"""`torch` as a second name of gradiron, for programs that run by `gradiron-run` or call `as_torch`."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from types import ModuleType, TracebackType
from typing import Any

import gradiron

from .naming import Renaming, to_gradiron


def is_torch(name: str) -> bool:
    """Return whether a module's name is PyTorch's, or that of the package `functorch` beside it."""
    return name.partition(".")[0] in ("torch", "functorch")


class _Loader(importlib.abc.Loader):
    """Gives the module of ours that stands for one of PyTorch's: the same object under both names."""

    def __init__(self, ours: str) -> None:
        self._ours = ours
        self._spec: Any = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._ours)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # Import has put that of the other name there.

    def get_code(self, name: str) -> Any:
        """The code of the module, for `python -m`."""
        spec: Any = importlib.util.find_spec(self._ours)
        return spec.loader.get_code(self._ours)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds `torch` and all below it in gradiron, whose own modules get PyTorch's names when they are loaded."""

    def __init__(self, renaming: Renaming) -> None:
        self._renaming = renaming

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.startswith("gradiron."):
            return self._of_ours(name, path, target)
        if not is_torch(name):
            return None
        ours = to_gradiron(name)
        found = importlib.util.find_spec(ours)
        if found is None:
            raise ModuleNotFoundError(f"No module named {name!r}: gradiron has no such part", name=name)
        # Without a place: two names for one file are no reason to read it twice.
        return importlib.machinery.ModuleSpec(name, _Loader(ours), is_package=found.submodule_search_locations is not None)

    def _of_ours(self, name: str, path: Any, target: Any) -> importlib.machinery.ModuleSpec | None:
        for finder in [finder for finder in sys.meta_path if finder is not self]:
            spec: Any = finder.find_spec(name, path, target)
            if spec is not None:
                break
        else:
            return None
        run = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            # It may have ended while the module was loaded.
            if self in sys.meta_path:
                self._renaming.module(module)

        spec.loader.exec_module = exec_module
        return spec

    def find_distributions(self, context: Any = None) -> Any:
        if context is not None and context.name not in (None, "torch"):
            return []
        # Loaded here, as `importlib.metadata` takes longer than all else.
        return [importlib.import_module(".distribution", __package__).Distribution()]


# The folder that gradiron lies in: another process may not know it yet when it begins.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_BEGIN = f"""
import sys
sys.path.insert(0, {ROOT!r})
import gradiron
gradiron.as_torch()
sys.path.remove({ROOT!r})
"""


class _Begin:
    """Travels with what a new process of `multiprocessing` is told first, and gives gradiron its second name there."""

    def __reduce__(self) -> Any:
        return exec, (_BEGIN, {})


def _prepared(original: Any) -> Any:
    def get_preparation_data(name: str) -> dict[str, Any]:
        data: dict[str, Any] = original(name)
        # Read before anything that may import `torch`; nobody looks at it later.
        return {"gradiron": _Begin(), **data}

    return get_preparation_data


class as_torch:
    """Make `import torch` import gradiron, from this call on or inside of a `with` block.

    It includes submodules and child processes of `multiprocessing`. After a `with` block, a PyTorch that had been
    imported
    before is back; modules that imported gradiron as `torch` keep it.

    Examples:
        >>> with torch.as_torch():
        ...     import torch as other
        >>> other is torch
        True
    """

    _active: as_torch | None = None

    def __init__(self) -> None:
        self._kept: dict[str, ModuleType] | None = None
        if as_torch._active is None:
            self._begin()

    def _begin(self) -> None:
        from multiprocessing import spawn

        as_torch._active = self
        self._kept = {name: sys.modules.pop(name) for name in list(sys.modules) if is_torch(name)}
        self._renaming = Renaming()
        for name, module in list(sys.modules.items()):
            if name == "gradiron" or name.startswith("gradiron."):
                # Packages tell a tensor by the module of its class; gradiron's own modules go by `__package__`.
                self._renaming.module(module)
        self._finder = _Finder(self._renaming)
        sys.meta_path.insert(0, self._finder)
        self._spawn, spawn.get_preparation_data = spawn.get_preparation_data, _prepared(spawn.get_preparation_data)

    def __enter__(self) -> ModuleType:
        return gradiron

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self._kept is None:
            return
        from multiprocessing import spawn

        as_torch._active = None
        self._renaming.undo()
        spawn.get_preparation_data = self._spawn
        sys.meta_path.remove(self._finder)
        for name in list(filter(is_torch, sys.modules)):
            del sys.modules[name]
        sys.modules.update(self._kept)
        self._kept = None
