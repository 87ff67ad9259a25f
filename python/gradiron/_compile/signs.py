"""Python's operators by the signs that programs write."""

from __future__ import annotations

import operator
from typing import Any

__all__ = ["BINARY", "COMPARE", "INPLACE", "MIRRORED", "UNARY"]

BINARY: dict[str, Any] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "<<": operator.lshift, ">>": operator.rshift,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
INPLACE: dict[str, Any] = {
    "+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv, "//": operator.ifloordiv,
    "%": operator.imod, "**": operator.ipow, "@": operator.imatmul, "<<": operator.ilshift, ">>": operator.irshift,
    "&": operator.iand, "|": operator.ior, "^": operator.ixor,
}  # fmt: skip
COMPARE: dict[str, Any] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "is": operator.is_, "is not": operator.is_not, "in": lambda a, b: a in b, "not in": lambda a, b: a not in b,
}  # fmt: skip
# The comparison that is asked of the right operand.
MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
UNARY: dict[str, Any] = {"-": operator.neg, "+": operator.pos, "~": operator.invert}
