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


# Of which of its inputs a node's gradients are products.
_FACTORS = {
    **dict.fromkeys(("MmBackward0", "BmmBackward0", "LinearBackward0"), (0, 1)),
    **dict.fromkeys(("AddmmBackward0", "BaddbmmBackward0"), (1, 2)),
}


def flops_of_derivative(name: str, grads: Shapes | None, made: Shapes | None) -> int:
    """The operations of a node's derivative, told from the sizes of what it is given and of what it is to make."""
    if not grads or not made:
        return 0
    if name == "MulBackward0":
        return math.prod(grads[0]) * sum(bool(shape) for shape in made)
    if name not in _FACTORS:
        return 0
    left, right = (made[i] if i < len(made) else [] for i in _FACTORS[name])
    # Both gradients sum over as many terms as the product itself has; one of the factors tells how many.
    terms = left[-1] if left else right[-1 if name.startswith("Linear") else -2] if right else 0
    return 2 * math.prod(grads[0]) * terms * (bool(left) + bool(right))


def flops_of_einsum(equation: str | None, shapes: Shapes | None) -> int:
    """The operations of an einsum that multiplies its operands from left to right, summing as early as it can."""
    if equation is None or shapes is None or "." in equation:
        return 0
    inputs, _, result = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    operands = [shape for shape in shapes if shape][: len(terms)]
    if len(operands) != len(terms):
        return 0
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, operands, strict=True):
        if len(term) != len(shape):
            return 0
        for letter, size in zip(term, shape, strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    if "->" not in equation:
        result = "".join(letter for letter in sizes if inputs.count(letter) == 1)
    count, held = 0, set(terms[0])
    for at, term in enumerate(terms[1:], 2):
        held |= set(term)
        count += 2 * math.prod(sizes[letter] for letter in held)
        held &= set(result).union(*terms[at:])
    return count


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
