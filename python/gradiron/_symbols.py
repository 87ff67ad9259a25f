"""`sym_*`: what programs say of numbers that a trace might not know yet. Here all are known."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


def sym_int(a: Any) -> int:
    """`a` towards zero."""
    return int(a)


def sym_float(a: Any) -> float:
    """`a` with a fraction."""
    return float(a)


def sym_not(a: Any) -> bool:
    """Whether `a` is not so."""
    return not a


def _alike(found: Any, a: Any, b: Any) -> Any:
    """A number with a fraction where one of the two has one."""
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


def sym_max(a: Any, b: Any) -> Any:
    """The larger number."""
    return _alike(max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number."""
    return _alike(min(a, b), a, b)


def sym_sqrt(a: Any) -> float:
    """The square root."""
    return math.sqrt(a)


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum."""
    return sum(list(args))  # what only claims to have very many is refused at once


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """`t` if `b`, else `f`."""
    return t if b else f
