"""Branches and loops as functions. Nothing is compiled here: they are what `if` and `while` would be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._core import Tensor

__all__ = ["cond", "while_loop"]


def cond(
    pred: Tensor | bool | float,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Sequence[Any] = (),
) -> Any:
    """`true_fn(*operands)` if `pred`, which may be a tensor of one element; else `false_fn(*operands)`."""
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    return (true_fn if pred else false_fn)(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]) -> Any:
    """`carried_inputs`, replaced by `body_fn` of them as long as `cond_fn` of them is true."""
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    while cond_fn(*carried_inputs):
        carried_inputs = body_fn(*carried_inputs)
    return carried_inputs
