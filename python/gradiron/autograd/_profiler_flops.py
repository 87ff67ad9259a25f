"""How many floating point operations a call took, told from the sizes of its operands."""

from __future__ import annotations

import math
from collections.abc import Callable

Shapes = list[list[int]]


def _product(left: list[int], right: list[int]) -> int:
    """A sum of products for each element of the result: two operations a term. Of matrices; nobody counts vectors'."""
    if len(left) < 2 or len(right) < 2:
        return 0
    batches = max(math.prod(left[:-2]), math.prod(right[:-2]))
    return 2 * batches * left[-2] * left[-1] * right[-1]


def _linear(shapes: Shapes) -> int:
    return 2 * math.prod(shapes[0]) * math.prod(shapes[1][:-1])


def _each(shapes: Shapes) -> int:
    return math.prod(shapes[0])


def _first_two(shapes: Shapes) -> int:
    return _product(shapes[0], shapes[1])


def _last_two(shapes: Shapes) -> int:
    return _product(shapes[1], shapes[2])


# Products count where they are called: nothing that lies inside a call is listed a second time.
_COUNTS: dict[str, tuple[int, Callable[[Shapes], int]]] = {
    "add": (1, _each),
    "mul": (1, _each),
    **dict.fromkeys(("mm", "bmm", "matmul"), (2, _first_two)),
    **dict.fromkeys(("addmm", "baddbmm"), (3, _last_two)),
    "linear": (2, _linear),
}


def flops_of(name: str, shapes: Shapes | None) -> int:
    """The operations of a call of an operator of this name; 0 where nobody counts them."""
    known = _COUNTS.get(name.removeprefix("aten::")) if name.startswith("aten::") else None
    if known is None or shapes is None or len(shapes) < known[0]:
        return 0
    return known[1](shapes)


def scale(least: int) -> tuple[float, str]:
    """The factor and the unit in which the smallest of some counts reads well."""
    units = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
    power = max(0, min(int(math.log10(least) / 3), len(units) - 1))
    return 1000.0**-power, units[power]
