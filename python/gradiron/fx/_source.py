"""Generated source: kept for tracebacks, run, and written down with the imports that it needs."""

from __future__ import annotations

import importlib
import importlib.machinery
import itertools
import linecache
import pickle
import types
from collections.abc import Callable
from typing import Any

from ._names import custom_builtins, import_line


class _Sources:
    """Keeps generated source by the names of files that do not exist, so that tracebacks show it."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}
        self._numbers = itertools.count()

    def keep(self, source: str, names: dict[str, Any], place: dict[str, Any]) -> str:
        key = f"<eval_with_key>.{next(self._numbers)}"
        if {"co_filename", "co_firstlineno", "co_name"} <= place.keys():
            key += f" from {place['co_filename']}:{place['co_firstlineno']} in {place['co_name'].strip('<>')}"
        elif "co_filename" in place:
            key = place["co_filename"]
        self._kept[key] = source
        spec = importlib.machinery.ModuleSpec(key, self)  # type: ignore[arg-type]
        linecache.lazycache(key, {**names, "__name__": key, "__loader__": self, "__spec__": spec})
        return key

    def get_source(self, module_name: str) -> str | None:
        """Return the source of a name, as loaders of modules do."""
        return self._kept.get(module_name)


_sources = _Sources()


def function_of(source: str, names: dict[str, Any], place: dict[str, Any] | None = None, name: str = "forward") -> Any:
    """Run generated source and return the function that it defines.

    Args:
        source: source.
        names: what its global names stand for.
        place: name, file and line of the function that was traced, for tracebacks.
        name: name of the function.
    """
    names = dict(names)
    key = _sources.keep(source, names, place or {})
    exec(compile(source, key, "exec", dont_inherit=True), names)
    return names.pop(name)


def function_of_imports(imports: str, source: str) -> Callable[..., Any]:
    """The function of generated source that was written down with its imports.

    What gradiron knows by a name of its own is taken from there: the file may come from PyTorch, or from another name of the
    library.
    """
    known = {line for name in custom_builtins for line in (custom_builtins[name].import_str, import_line(name))}
    others = "\n".join(
        line for line in imports.split("\n") if line.replace("gradiron", "torch") not in known and line not in known
    )
    names = {name: builtin.obj for name, builtin in custom_builtins.items()}
    return function_of(others + source, names)


def _module_of(obj: Any, name: str) -> str:
    """The module that a pickle would name for an object."""
    find: Any = pickle.whichmodule  # type: ignore[attr-defined]
    return str(find(obj, name))


def _import_statement(name: str, obj: Any) -> str:
    if name in custom_builtins:
        return import_line(name)
    module = obj.__name__ if isinstance(obj, types.ModuleType) else _module_of(obj, name)
    if isinstance(obj, types.ModuleType):
        return f"import {module} as {name}"
    path = getattr(obj, "__qualname__", None) or obj.__name__
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    if found is not obj:
        raise pickle.PicklingError(f"Can't pickle {obj!r}: it's not the same object as {module}.{path}")
    return f"from {module} import {path} as {name}" if "." not in path else f"import {module}; {name} = {module}.{path}"


def import_block(names: dict[str, Any]) -> str:
    """The lines that define the global names of generated source."""
    lines = {f"{name} = {obj!r}" if isinstance(obj, str) else _import_statement(name, obj) for name, obj in names.items()}
    return "\n".join(sorted(lines))
