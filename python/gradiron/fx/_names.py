"""Names in generated code: of nodes and of the functions that they call."""

from __future__ import annotations

import builtins
import functools
import inspect
import keyword
import math
import re
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import gradiron

from .. import _core
from .._core import Tensor
from ..library import _Named

_package: Any = gradiron
_NAME = re.compile(r"([a-zA-Z_]\w*?)(?:_(\d+))?", re.ASCII)
_OUTSIDE_NAMES = re.compile(r"[^0-9a-zA-Z_]+")
_CAPITAL_AFTER_SMALL = re.compile(r"(?<=[a-z])([A-Z])")


def snake_case(name: str) -> str:
    """`LayerNorm` as `layer_norm`."""
    return _CAPITAL_AFTER_SMALL.sub(r"_\1", name).lower()


def target_name(target: Callable[..., Any] | str) -> str:
    """What a node is called after."""
    name = target if isinstance(target, str) else target.__name__
    if isinstance(target, str) and name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
    return snake_case(name)


class CustomBuiltin(NamedTuple):
    """A name that generated code uses without a module before it."""

    import_str: str
    obj: Any


#: Names that `repr` of some values uses, with the line that defines each.
custom_builtins: dict[str, CustomBuiltin] = {}
#: Names that no node gets, with what they stand for.
reserved: dict[str, Any] = {**{word: object() for word in keyword.kwlist}, **vars(builtins)}


def register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    """Have generated code know a name.

    Args:
        name: name in the code.
        import_str: line that defines it.
        obj: what it names.
    """
    custom_builtins[name] = CustomBuiltin(import_str, obj)
    reserved[name] = obj


register_custom_builtin("inf", "from math import inf", math.inf)
register_custom_builtin("nan", "from math import nan", math.nan)
register_custom_builtin("NoneType", "NoneType = type(None)", type(None))
register_custom_builtin("torch", "import torch", gradiron)
register_custom_builtin("device", "from torch import device", _core.device)


def import_line(name: str) -> str:
    """The line that defines a custom builtin, for the library under the name that it has now."""
    line = custom_builtins[name].import_str
    if gradiron.__name__ == "torch":
        return line
    line = "import gradiron as torch" if line == "import torch" else line
    return re.sub(r"^(from|import) torch\b", r"\1 gradiron", line)


class Namespace:
    """Names that are taken, each once."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._counts: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """Return a name that nothing else has, the same one when asked again for the same object.

        Args:
            candidate: wish, which gets a number when it is taken.
            obj: object to name, or None.
        """
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        found = _NAME.fullmatch(candidate)
        if found is None:
            candidate = _OUTSIDE_NAMES.sub("_", candidate) or "_unnamed"
            candidate = f"_{candidate}" if candidate[0].isdigit() else candidate
            found = _NAME.fullmatch(candidate)
            assert found is not None
        base, digits = found.groups()
        number = int(digits) if digits is not None and candidate not in self._used_names else self._counts.get(base, 0)
        if (digits is None or candidate in self._used_names) and reserved.get(candidate, obj) is not obj:
            number += 1
            candidate = f"{base}_{number}"
        while candidate in self._used_names:
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._counts[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Give an object a name that `create_name` has made."""
        if self._obj_to_name.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj: Any, name: str) -> None:
        if obj not in self._obj_to_name:
            raise AssertionError(f"Object {obj} is not in _obj_to_name")
        self._obj_to_name[obj] = name
        self._used_names.add(name)


def is_of_library(module: str | None) -> bool:
    """Whether a module's name is gradiron's, under either of its names."""
    return module is not None and module.partition(".")[0] in ("torch", "gradiron")


@functools.cache
def _holders() -> tuple[tuple[str, Any], ...]:
    """Where functions without a module are looked for, with the prefix that their `__name__` has there."""
    places = (("", "", gradiron), (".nn.functional", "", gradiron.nn.functional), (".functional", "", gradiron.functional))
    special = ((f".{name}", f"{name}_", getattr(gradiron, name)) for name in ("linalg", "fft", "special"))
    inside = (("._core", "", _core), ("._core._nn", "", _core._nn))
    return tuple((f"{prefix}|torch{path}", holder) for path, prefix, holder in (*places, *special, *inside))


def library_path(obj: Any) -> str | None:
    """The path below `torch` that leads to one of gradiron's functions or classes; None for what is another's."""
    if obj is gradiron:
        return "torch"
    if isinstance(obj, types.ModuleType):
        return None
    name, module = getattr(obj, "__name__", None), getattr(obj, "__module__", None)
    if name is None or not (module is None or is_of_library(module)):
        return None
    if isinstance(obj, (types.MethodDescriptorType, types.WrapperDescriptorType)) or (
        isinstance(obj, types.FunctionType) and obj.__qualname__.startswith("Tensor.")
    ):
        if getattr(Tensor, name, None) is not obj:
            return None
        # `torch.relu_` is the method, and unlike it takes proxies.
        return f"torch.{name}" if name in _package._WRITES else f"torch.Tensor.{name}"
    if isinstance(obj, gradiron.ops.OpOverload | gradiron.ops.OpOverloadPacket | _Named):
        return f"torch.ops.{obj}"
    for key, holder in _holders():
        prefix, _, path = key.partition("|")
        found = getattr(holder, name.removeprefix(prefix), None) if name.startswith(prefix) else None
        # While a trace goes on, what records stands in its place.
        if found is not None and (found is obj or getattr(found, "__wrapped__", None) is obj):
            return f"{path}.{name.removeprefix(prefix)}"
    qualified = getattr(obj, "__qualname__", name)
    if module is None or "<" in qualified:
        return None
    return f"torch{module[module.find('.') :] if '.' in module else ''}.{qualified}"


def public_call(func: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    """A call of the core as the one of `torch` that makes it, where the two take their arguments otherwise."""
    if (library_path(func) or "").startswith("torch._core."):
        if func.__name__ == "einsum":
            operands = args[1] if len(args) == 2 and isinstance(args[1], tuple) else args[1:]
            return inspect.unwrap(gradiron.einsum), (args[0], *operands), {}
        if func.__name__ == "tensordot" and len(args) == 4:
            return inspect.unwrap(gradiron.tensordot), args[:2], {"dims": args[2:]}
    return func, args, kwargs


def qualified_name(func: Callable[..., Any]) -> str:
    """The path of a function, from the module that holds it: what code calls it by.

    Args:
        func: function, of gradiron's or of anybody's.
    """
    name = getattr(func, "__name__", None)
    if name is None:
        raise AttributeError(f"{type(func).__name__!r} object has no attribute '__name__'")
    if getattr(builtins, name, None) is func:
        return name
    path = library_path(func)
    if path is not None:
        return path
    if name == "<lambda>":
        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except Exception as error:
            raise RuntimeError("Unable to represent lambda") from error
    module = func.__module__
    if module is None:
        raise RuntimeError(f"cannot find module for {func}")
    return f"{module}.{name}"


def type_repr(kind: Any) -> str:
    """A type as code writes it."""
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        if kind.__module__ == "builtins":
            return kind.__qualname__
        return library_path(kind) or f"{kind.__module__}.{kind.__qualname__}"
    if kind is ...:
        return "..."
    return kind.__name__ if isinstance(kind, types.FunctionType) else repr(kind)
