"""Sizes of traced tensors: integers that know how a graph computes them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .._core import Tensor
from .._types import Size
from ..fx.node import Node

__all__ = ["SizeInt", "TracedSize", "element_count", "size_along"]


def size_along(x: Tensor, dim: int) -> int:
    """Return the size of one dimension: what a graph calls where a program reads a shape."""
    return x.size(dim)


def element_count(x: Tensor) -> int:
    """Return the number of elements: what a graph calls where a program asks for it."""
    return x.numel()


class SizeInt(int):
    """A size, or a number computed from sizes, with its node. Conditions on it are decided as on the example.

    Args:
        value: the number on the example.
        node: node that computes it.
        write: function that adds a node of a call, given what is called, its arguments and its value.
    """

    node: Node
    write: Callable[[Callable[..., Any], tuple[Any, ...], int], SizeInt]

    def __new__(cls, value: int, node: Node, write: Callable[..., SizeInt]) -> SizeInt:
        made = super().__new__(cls, value)
        made.node, made.write = node, write
        return made


def _arithmetic(name: str, reflected: bool = False) -> Callable[..., Any]:
    target = getattr(operator, name)
    method = f"__{'r' if reflected else ''}{name}__"
    of_int = getattr(int, method)

    def compute(self: SizeInt, *others: Any) -> Any:
        value = of_int(self, *others)
        if value is NotImplemented or not isinstance(value, int):
            return value
        return self.write(target, (*others, self) if reflected else (self, *others), value)

    compute.__name__ = compute.__qualname__ = method
    return compute


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    setattr(SizeInt, f"__{_name}__", _arithmetic(_name))
    setattr(SizeInt, f"__r{_name}__", _arithmetic(_name, reflected=True))
SizeInt.__neg__ = _arithmetic("neg")  # type: ignore[method-assign]


class TracedSize(Size):
    """A shape whose parts stay what they are, where `Size` makes plain integers of them.

    Args:
        sizes: the sizes.
    """

    __slots__ = ()

    def __new__(cls, sizes: Any = ()) -> TracedSize:
        return tuple.__new__(cls, sizes)

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return TracedSize(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Any:
        return TracedSize((*self, *other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return TracedSize((*other, *self)) if isinstance(other, tuple) else NotImplemented
