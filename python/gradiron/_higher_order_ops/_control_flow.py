"""Control flow as functions; nothing is traced, so they run like `if` and `while`."""

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
    """Call one of two functions, depending on a condition.

    Args:
        pred: boolean, or a tensor of one element.
        true_fn: function that is called if `pred` is true.
        false_fn: function that is called otherwise.
        operands: arguments of either. Default: `()`

    Examples:
        >>> torch.cond(torch.tensor(True), torch.sin, torch.cos, (torch.zeros(1),))
        tensor([0.])
    """
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    return (true_fn if pred else false_fn)(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]) -> Any:
    """Update values repeatedly while a condition holds.

    Args:
        cond_fn: function of the values that returns the condition.
        body_fn: function of the values that returns the next ones.
        carried_inputs: initial values.

    Examples:
        >>> torch.while_loop(lambda i: i < 3, lambda i: (i + 1,), (torch.tensor(0),))
        (tensor(3),)
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    while cond_fn(*carried_inputs):
        carried_inputs = body_fn(*carried_inputs)
    return carried_inputs
