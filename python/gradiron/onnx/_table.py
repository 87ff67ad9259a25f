"""The table of forms: what writes an operator in ONNX, by the operator's public name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["find_form", "form"]

_forms: dict[str, Callable[..., Any]] = {}


def form(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function that writes operators, given the writer and an operator's arguments.

    The function has the parameters of the operators. A tensor comes as a `Value`, a size as an integer or, where it belongs to
    a dynamic axis, as a `Value` too. It returns the value of the result, or a tuple of several.

    Args:
        names: public names of the operators, with what stands before the function's, as in `linalg.vector_norm`.
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            assert name not in _forms, name
            _forms[name] = function
        return function

    return add


def find_form(name: str) -> Callable[..., Any] | None:
    """Return the function that writes an operator, or None. One that works in place has the form of the one that does not.

    Args:
        name: public name.
    """
    found = _forms.get(name)
    if found is None and name.endswith("_") and not name.endswith("__"):
        found = _forms.get(name[:-1])
    return found
