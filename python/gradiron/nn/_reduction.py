"""Reductions of losses: their names, numbers, and the two deprecated flags."""

from __future__ import annotations

import warnings

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """Return the number of a reduction."""
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
        reduction = "mean"
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """Return the name of the reduction that the deprecated flags mean."""
    if size_average is None:
        size_average = True
    if reduce is None:
        reduce = True
    # In this order a tensor given by mistake is refused: it has no truth value.
    found = "mean" if size_average and reduce else "sum" if reduce else "none"
    if emit_warning:
        warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{found}' instead.", stacklevel=2)
    return found


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """Return the number of the reduction that the deprecated flags mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
