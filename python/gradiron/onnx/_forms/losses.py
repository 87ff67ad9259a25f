"""Losses, for models that return one."""

from __future__ import annotations

from typing import Any

import gradiron

from .._table import form
from .._writer import Value, Writer
from .pointwise import pair

__all__: list[str] = []


def _reduced(g: Writer, x: Value, reduction: str, weight: Any = None) -> Value:
    x = x if weight is None else g.Mul(x, weight)
    if reduction == "none":
        return x
    return g.reduce("ReduceMean" if reduction == "mean" else "ReduceSum", x, None, False)


@form("nn.functional.mse_loss")
def _mse_loss(g: Writer, input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Any:
    apart = g.Sub(*pair(g, input, target))
    return _reduced(g, g.Mul(apart, apart), reduction)


@form("nn.functional.l1_loss")
def _l1_loss(g: Writer, input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Any:
    return _reduced(g, g.Abs(g.Sub(*pair(g, input, target))), reduction)


@form("nn.functional.binary_cross_entropy_with_logits")
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
    return _reduced(g, loss, reduction, weight)


@form("nn.functional.cross_entropy")
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


@form("nn.functional.nll_loss")
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


@form("nn.functional.smooth_l1_loss")
def _smooth_l1_loss(
    g: Writer,
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Any:
    apart = g.Abs(g.Sub(*pair(g, input, target)))
    if beta == 0:
        return _reduced(g, apart, reduction)
    near = g.Div(g.Mul(apart, apart), 2 * beta)
    inside = g.Less(apart, beta, dtype=gradiron.bool)
    return _reduced(g, g.Where(inside, near, g.Sub(apart, beta / 2), dtype=g.dtype), reduction)


@form("nn.functional.huber_loss")
def _huber_loss(g: Writer, input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Any:
    apart = g.Abs(g.Sub(*pair(g, input, target)))
    near = g.Div(g.Mul(apart, apart), 2)
    inside = g.Less(apart, delta, dtype=gradiron.bool)
    loss = g.Where(inside, near, g.Mul(g.Sub(apart, delta / 2), delta), dtype=g.dtype)
    return _reduced(g, loss, reduction, weight)


@form("nn.functional.binary_cross_entropy")
def _binary_cross_entropy(
    g: Writer,
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    # Logarithms are cut off at -100.
    one = g.value(1, g.dtype)
    positive = g.Mul(target, g.Max(g.Log(input), -100))
    negative = g.Mul(g.Sub(one, target), g.Max(g.Log(g.Sub(one, input)), -100))
    loss = g.Neg(g.Add(positive, negative))
    return _reduced(g, loss, reduction, weight)


@form("nn.functional.kl_div")
def _kl_div(
    g: Writer,
    input: Any,
    target: Any,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Any:
    if log_target:
        loss = g.Mul(g.Exp(target), g.Sub(target, input))
    else:
        positive = g.Greater(target, g.value(0, g.dtype), dtype=gradiron.bool)
        known = g.Where(positive, target, g.value(1, g.dtype), dtype=g.dtype)
        loss = g.Sub(g.Mul(target, g.Log(known)), g.Mul(target, input))
    if reduction == "batchmean":
        return g.Div(g.reduce("ReduceSum", loss, None, False), g.cast(g.size(input, 0), g.dtype))
    return _reduced(g, loss, reduction)
