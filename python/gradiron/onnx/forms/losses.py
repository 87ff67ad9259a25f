"""Losses, for models that return one."""

from __future__ import annotations

from typing import Any

from .._forms import form
from .._writer import Value, Writer
from .pointwise import pair

__all__: list[str] = []


def _reduced(g: Writer, x: Value, reduction: str) -> Value:
    if reduction == "none":
        return x
    return g.reduce("ReduceMean" if reduction == "mean" else "ReduceSum", x, None, False)


@form("mse_loss")
def _mse_loss(
    g: Writer, input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    apart = g.Sub(*pair(g, input, target))
    return _reduced(g, g.Mul(apart, apart), reduction)


@form("l1_loss")
def _l1_loss(
    g: Writer, input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    return _reduced(g, g.Abs(g.Sub(*pair(g, input, target))), reduction)


@form("binary_cross_entropy_with_logits")
def _binary_cross_entropy_with_logits(
    g: Writer,
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    rest = g.Sub(g.value(1, g.dtype), target)
    positive = g.Mul(target, g.Softplus(g.Neg(input)))
    if pos_weight is not None:
        positive = g.Mul(positive, pos_weight)
    loss = g.Add(positive, g.Mul(rest, g.Softplus(input)))
    return _reduced(g, loss if weight is None else g.Mul(loss, weight), reduction)


@form("cross_entropy")
def _cross_entropy(
    g: Writer,
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    if label_smoothing or target.dtype.is_floating_point or input.ndim < 2:
        g.refuse("Only targets that are classes of a batch are supported, without label smoothing.")
    return g.SoftmaxCrossEntropyLoss(input, target, weight, ignore_index=ignore_index, reduction=reduction)


@form("nll_loss")
def _nll_loss(
    g: Writer,
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    if input.ndim < 2:
        g.refuse("Only targets that are classes of a batch are supported.")
    return g.NegativeLogLikelihoodLoss(input, target, weight, ignore_index=ignore_index, reduction=reduction)
