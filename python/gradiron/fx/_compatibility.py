"""PyTorch's mark of functions and classes that stay as they are from release to release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["compatibility"]

_Marked = TypeVar("_Marked")

_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[_Marked], _Marked]:
    """Decorate a function or class with whether it stays as it is from release to release.

    Args:
        is_backward_compatible: whether it stays.

    Examples:
        >>> compatibility = torch.fx._compatibility.compatibility
        >>> @compatibility(is_backward_compatible=True)
        ... def f(x):
        ...     return x
    """

    def mark(target: _Marked) -> _Marked:
        _MARKED_WITH_COMPATIBILITY.setdefault(target)
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(target)
        return target

    return mark
