"""The inputs of a checkpointed call as tensors that a graph can keep: samples and tangents taken apart, and put together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import _core
from .._core import Tensor

# What a tensor was: None as it is, the levels of a `vmap`'s samples with what lies behind, or a dual's level with both parts.
Form = Any


def taken_apart(x: Tensor, tensors: list[Tensor]) -> Form:
    """Adds to `tensors` what `x` consists of."""
    parts = _core.batch_parts(x)
    if parts is not None:
        return ("samples", parts[1], taken_apart(parts[0], tensors))
    levels = _core.tangent_levels(x)
    if not levels:
        tensors.append(x)
        return None
    primal, tangent = _core.unpack_dual(x, levels[-1])
    return ("dual", levels[-1], taken_apart(primal, tensors), taken_apart(tangent, tensors))


def joined(form: Form, tensors: Iterator[Tensor], levels: Levels) -> Tensor:
    """The next tensor again, in the form that it had."""
    if form is None:
        return next(tensors)
    kind, level, *rest = form
    if kind == "samples":
        return _core.batch_joined(joined(rest[0], tensors, levels), level)
    primal, tangent = (joined(part, tensors, levels) for part in rest)
    return _core.make_dual(primal, tangent, levels.present(level))


class Levels:
    """Levels of forward mode, for those that were left since the call; entered on demand, left at the end."""

    def __enter__(self) -> Levels:
        self._renewed: dict[int, int] = {}
        return self

    def present(self, level: int) -> int:
        if _core.is_dual_level(level):
            return level
        if level not in self._renewed:
            self._renewed[level] = _core.enter_dual_level()
        return self._renewed[level]

    def __exit__(self, *_: object) -> None:
        for level in reversed(self._renewed.values()):
            _core.exit_dual_level(level)
