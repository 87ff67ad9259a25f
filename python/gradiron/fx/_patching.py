"""Functions that are replaced while a trace goes on, so that calls on proxies are recorded."""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import gradiron

from .._core import Tensor
from ..library import CustomOpDef, _Named
from ._wrap import wrapped_functions as wrapped_functions
from .node import map_aggregate
from .proxy import Proxy

_ABSENT = object()
_current: list[Patcher] = []
_package: Any = gradiron

#: Methods recorded as calls of methods.
wrapped_methods: list[tuple[type, str]] = []

# Functions that look at their arguments from outside: a proxy is a value like any other to them.
_PLAIN = frozenset("compile is_storage is_tensor load save typename vmap".split())
# Built-in functions that take tensors and are no operators.
_NO_OPERATORS = "is_complex is_floating_point is_nonzero numel result_type".split()


def find_proxy(*values: Any) -> Proxy | None:
    """A proxy among nested values."""
    found: list[Proxy] = []
    map_aggregate(values, lambda value: found.append(value) if isinstance(value, Proxy) else None)
    return found[-1] if found else None


def recorded(function: Callable[..., Any], marked: bool = True) -> Callable[..., Any]:
    """A function whose calls on proxies become nodes.

    Args:
        function: function to call on anything else.
        marked: whether generated code marks it by `wrap`.
    """

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        if marked:
            made.node.meta["is_wrapped"] = True
        return made

    return wrapped


def _recorded_method(cls: type, name: str) -> Callable[..., Any]:
    method = getattr(cls, name)

    @functools.wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return method(*args, **kwargs)
        return proxy.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


def _recorded_operator(call: Callable[..., Any]) -> Callable[..., Any]:
    """The `__call__` of custom operators, which are functions of `torch.ops` to a graph."""

    @functools.wraps(call)
    def wrapped(operator: Any, *args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return call(operator, *args, **kwargs)
        if isinstance(operator, CustomOpDef):
            operator = getattr(getattr(gradiron.ops, operator._namespace), operator._name).default
        return proxy.tracer.create_proxy("call_function", operator, args, kwargs)

    return wrapped


class Patcher:
    """Replacements that are taken back together, at the end of a `with` block."""

    def __init__(self) -> None:
        # Each replacement as what to set or delete items or attributes with, name, old and new value.
        self._made: list[tuple[Any, Any, str, Any, Any]] = []
        self._visited: set[int] = set()

    def __enter__(self) -> Patcher:
        _current.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _current.remove(self)
        self.revert()

    def patch(self, names: dict[str, Any], name: str, new: Callable[..., Any]) -> None:
        """Replace what a name stands for in a module, unless that has been done."""
        old = names.get(name, _ABSENT)
        if getattr(old, "__fx_already_patched", False):
            return
        new.__fx_already_patched = True  # type: ignore[attr-defined]
        self._made.append((names.__setitem__, names.__delitem__, name, old, new))
        names[name] = new

    def patch_method(self, cls: type, name: str, new: Callable[..., Any], deduplicate: bool = True) -> None:
        """Replace a method of a class, unless that has been done."""
        old = vars(cls).get(name, _ABSENT)
        if getattr(old, "__fx_already_patched", False):
            return
        new.__fx_already_patched = deduplicate  # type: ignore[attr-defined]
        self._made.append((functools.partial(setattr, cls), functools.partial(delattr, cls), name, old, new))
        setattr(cls, name, new)

    def visit_once(self, names: dict[str, Any]) -> bool:
        """Whether a module's names are seen for the first time."""
        new = id(names) not in self._visited
        self._visited.add(id(names))
        return new

    def revert(self) -> None:
        """Take all replacements back, last first."""
        for put, drop, name, old, _ in reversed(self._made):
            drop(name) if old is _ABSENT else put(name, old)

    def apply(self) -> None:
        """Make all replacements again."""
        for put, _, name, _, new in self._made:
            put(name, new)


@contextlib.contextmanager
def _maybe_revert_all_patches() -> Iterator[None]:
    """A `with` block in which the functions are what they are outside of the trace."""
    patcher = _current[-1] if _current else None
    if patcher is None:
        yield
        return
    patcher.revert()
    try:
        yield
    finally:
        patcher.apply()


@functools.cache
def _library_functions() -> dict[str, list[tuple[str, Callable[..., Any]]]]:
    """gradiron's functions that do not ask their arguments whether they override it, by module and name.

    The core's operators ask. Those that are written in Python would look into a proxy, and a graph would show their insides.
    """
    for room in {room for room in _package._NAMES.values() if room.partition(".")[0] in ("_functions", "nn")}:
        importlib.import_module(f"gradiron.{room}")
    top: dict[str, Any] = {name: getattr(gradiron, name) for name in _package._NAMES if _of_function_room(name)}
    top.update((name, value) for name, value in vars(gradiron).items() if isinstance(value, FunctionType))
    top.update((name, getattr(gradiron, name)) for name in (*_package._WRITES, *_NO_OPERATORS) if hasattr(gradiron, name))
    functional = {name: value for name, value in vars(gradiron.nn.functional).items() if isinstance(value, FunctionType)}
    return {
        place: [(name, recorded(value, marked=False)) for name, value in found.items() if _is_public(name)]
        for place, found in (("gradiron", top), ("gradiron.nn.functional", functional))
    }


def _of_function_room(name: str) -> bool:
    return _package._NAMES[name].partition(".")[0] in ("_functions", "nn") and isinstance(getattr(gradiron, name), FunctionType)


def _is_public(name: str) -> bool:
    return (not name.startswith("_") or name == "_assert") and name not in _PLAIN


@functools.cache
def _library_ids() -> dict[int, Callable[..., Any]]:
    return {id(each.__wrapped__): each for found in _library_functions().values() for _, each in found}  # type: ignore[attr-defined]


def library_functions() -> Iterator[tuple[dict[str, Any], str, Callable[..., Any]]]:
    """Those functions, each with the names of its module and its own."""
    for place, functions in _library_functions().items():
        names = vars(importlib.import_module(place))
        for name, function in functions:
            yield names, name, function.__wrapped__  # type: ignore[attr-defined]


def patch_library(patcher: Patcher) -> None:
    """Has gradiron's own functions recorded, and indices of tensors that are proxies."""
    for place, functions in _library_functions().items():
        names = vars(importlib.import_module(place))
        for name, function in functions:
            patcher.patch(names, name, function)
    for name in ("__getitem__", "__setitem__"):
        patcher.patch_method(Tensor, name, _recorded_method(Tensor, name))
    patcher.patch(vars(gradiron.autograd), "grad", recorded(gradiron.autograd.grad, marked=False))
    for kind in (CustomOpDef, _Named):
        patcher.patch_method(kind, "__call__", _recorded_operator(kind.__call__))


def patch_wrapped(patcher: Patcher) -> None:
    """Has functions recorded that were marked by `wrap`."""
    for (_, name), names in list(wrapped_functions.items()):
        builtin = name not in names and hasattr(builtins, name)
        patcher.patch(names, name, recorded(getattr(builtins, name) if builtin else names[name]))
    for cls, name in wrapped_methods:
        patcher.patch_method(cls, name, _recorded_method(cls, name))


def patch_functions(patcher: Patcher) -> None:
    """Has marked functions recorded, and gradiron's own."""
    patch_wrapped(patcher)
    patch_library(patcher)


def autowrap(patcher: Patcher, names: dict[str, Any], ids: set[int]) -> None:
    """Has functions recorded that a module's names stand for, if their ids are given or they are gradiron's."""
    if not patcher.visit_once(names):
        return
    library = _library_ids()
    for name, value in list(names.items()):
        if name.startswith("_") or not callable(value):
            continue
        if id(value) in ids:
            patcher.patch(names, name, recorded(value))
        elif id(value) in library:
            patcher.patch(names, name, library[id(value)])
