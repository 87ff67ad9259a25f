"""The observer of a captured call: Python's operations, each with notes on what it depends on."""

from __future__ import annotations

from typing import Any

from .. import _core
from . import attributes, calls, containers, operations
from .notes import Notes, is_active

__all__ = ["Observer"]


class Observer(Notes):
    """Does what a rewritten function asks for, and notes what that reads, stores and makes."""

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Return `function(*args, **kwargs)`, observed."""
        if not is_active(self):
            return function(*args, **kwargs)
        return calls.call(self, function, args, kwargs)

    def call_method(self, value: Any, name: str, *args: Any) -> Any:
        """Return `value.name(*args)`, observed."""
        return self.call(attributes.get_attr(self, value, name), *args)

    def item(self, value: Any, key: Any) -> Any:
        """Return `value[key]`, observed."""
        return containers.get_item(self, value, key)

    def set_item(self, new: Any, value: Any, key: Any) -> None:
        """Do `value[key] = new`, observed."""
        containers.set_item(self, new, value, key)

    def binary(self, sign: str, left: Any, right: Any) -> Any:
        """Return `left + right`, observed."""
        return operations.binary(self, sign, left, right)

    def inplace(self, sign: str, left: Any, right: Any) -> Any:
        """Return the result of `left += right`, observed."""
        return operations.inplace(self, sign, left, right)

    def unary(self, sign: str, value: Any) -> Any:
        """Return `-value`, observed."""
        return operations.unary(self, sign, value)

    def compare(self, sign: str, left: Any, right: Any) -> Any:
        """Return `left < right`, observed."""
        return operations.compare(self, sign, left, right)

    def tested(self, value: Any) -> Any:
        """Return a value whose truth is asked for, observed."""
        return operations.tested(self, value)

    def formatted(self, value: Any) -> Any:
        """Return a value that is shown, observed."""
        return operations.formatted(self, value)

    def is_printable(self, value: Any) -> bool:
        """Return whether showing a value runs no code and reads nothing that was not noted."""
        return operations.is_printable(self, value)

    def is_known_context(self, value: Any) -> bool:
        """Return whether a context manager of C is known."""
        return isinstance(value, _core.GradSwitch)
