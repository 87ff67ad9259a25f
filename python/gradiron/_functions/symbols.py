"""Arithmetic on numbers that PyTorch may not know while it traces; here all are known."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


def sym_int(a: Any) -> int:
    """Convert a number to an integer, toward zero.

    Args:
        a: number.

    Examples:
        >>> torch.sym_int(2.7)
        2
    """
    return int(a)


def sym_float(a: Any) -> float:
    """Convert a number to a float.

    Args:
        a: number.

    Examples:
        >>> torch.sym_float(2)
        2.0
    """
    return float(a)


def sym_not(a: Any) -> bool:
    """Return `not a`.

    Args:
        a: boolean.

    Examples:
        >>> torch.sym_not(True)
        False
    """
    return not a


def _alike(found: Any, a: Any, b: Any) -> Any:
    """A number with a fraction where one of the two has one."""
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_max(a: Any, b: Any) -> Any:
    """Return the larger of two numbers, as a float if either is one.

    Args:
        a, b: numbers.

    Examples:
        >>> torch.sym_max(3, 2.5)
        3.0
    """
    return _alike(max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers, as a float if either is one.

    Args:
        a, b: numbers.

    Examples:
        >>> torch.sym_min(3, 2)
        2
    """
    return _alike(min(a, b), a, b)


def sym_sqrt(a: Any) -> float:
    """Return the square root of a number.

    Args:
        a: number.

    Examples:
        >>> torch.sym_sqrt(9)
        3.0
    """
    return math.sqrt(a)


def sym_sum(args: Iterable[Any]) -> Any:
    """Return the sum of an iterable of numbers.

    Args:
        args: iterable of numbers.

    Examples:
        >>> torch.sym_sum([1, 2, 3])
        6
    """
    return sum(list(args))  # what only claims to have very many is refused at once


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """Return `t` if `b` holds, otherwise `f`.

    Args:
        b: condition.
        t: value if it holds.
        f: value if it does not.

    Examples:
        >>> torch.sym_ite(True, 1, 2)
        1
    """
    return t if b else f
