"""Names of operators: `ops.aten.mm.default`, which policies of checkpoints get, and custom operators."""

from __future__ import annotations

from typing import Any

import gradiron

__all__ = ["OpOverload", "OpOverloadPacket", "aten", "load_library"]


class OpOverload:
    """An overload of an operator, such as `torch.ops.aten.mm.default`.

    Args:
        packet: the operator.
        overload: name of the overload.

    Examples:
        >>> torch.ops.aten.mm.default.name()
        'aten::mm'
    """

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket = packet
        self._overloadname = overload
        self.namespace = "aten"
        self.__name__ = f"{packet.__name__}.{overload}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _call(self, self.overloadpacket.__name__, args, kwargs)

    def name(self) -> str:
        """Return the name, such as `"aten::mm"`."""
        suffix = "" if self._overloadname == "default" else f".{self._overloadname}"
        return f"aten::{self.overloadpacket.__name__}{suffix}"

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self.overloadpacket.__name__}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """An operator with its overloads as attributes, such as `torch.ops.aten.mm`. A call is one of the function of this name.

    Args:
        name: name of the operator.

    Examples:
        >>> torch.ops.aten.neg(torch.ones(1))
        tensor([-1.])
        >>> torch.ops.aten.mm
        <OpOverloadPacket(op='aten.mm')>
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _call(self, self.__name__, args, kwargs)

    def __getattr__(self, overload: str) -> OpOverload:
        if overload.startswith("__"):
            raise AttributeError(overload)
        made = OpOverload(self, overload)
        setattr(self, overload, made)
        return made

    def overloads(self) -> list[str]:
        """Return an empty list, as operators are not called by overloads."""
        return []

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


def _call(operator: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls the function or method that an operator's name stands for."""
    relevant = [*args, *kwargs.values()]
    relevant += [item for value in relevant if isinstance(value, (list, tuple)) for item in value]
    if gradiron.overrides.has_torch_function(relevant):
        return gradiron.overrides.handle_torch_function(operator, relevant, *args, **kwargs)
    return function_of(name)(*args, **kwargs)


def function_of(name: str) -> Any:
    """The function or method that an operator's name stands for."""
    room, _, inner = name.partition("_")
    places = [(gradiron, name), (gradiron.nn.functional, name), (gradiron.Tensor, name)]
    if room in ("linalg", "fft", "special"):
        places.insert(0, (getattr(gradiron, room), inner))
    for place, function in places:
        if hasattr(place, function):
            return getattr(place, function)
    raise NotImplementedError(f"torch.ops.aten.{name}: gradiron has no function or method of this name")


class _Aten:
    """PyTorch's own operators."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        made = OpOverloadPacket(name)
        setattr(self, name, made)
        return made


aten = _Aten()


class Namespace:
    """The operators that a program has defined under one name, by `torch.library`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'", name=name, obj=self)

    def __repr__(self) -> str:
        return f"<module 'torch.ops.{self._name}'>"


def __getattr__(name: str) -> Namespace:
    if name.startswith("__") or name == "_core":
        raise AttributeError(f"module 'gradiron.ops' has no attribute '{name}'")
    made = globals()[name] = Namespace(name)
    return made


def load_library(path: str) -> None:
    """Load operators compiled for PyTorch, which is not supported.

    Args:
        path: path of the library.

    Examples:
        >>> torch.ops.load_library("library.so")
        Traceback (most recent call last):
        OSError: Could not load this library: library.so
    """
    raise OSError(f"Could not load this library: {path}\ngradiron loads no operators that were compiled for PyTorch")


def overload(name: tuple[str, str]) -> OpOverload:
    """The form of an operator that the core tells by two words."""
    found: OpOverload = getattr(getattr(aten, name[0]), name[1])
    return found
