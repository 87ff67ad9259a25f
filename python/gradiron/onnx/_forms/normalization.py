"""Normalizations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradiron

from .._table import form
from .._writer import Value, Writer

__all__: list[str] = []


def _filled(like: Any, count: int, value: float) -> Any:
    return gradiron.full((count,), value, dtype=like.dtype)


def _channels(g: Writer, x: Any) -> int:
    found = x.shape[1]
    if found is None:
        g.refuse("The number of channels is dynamic.")
    return found


def _standardized(g: Writer, x: Any, dims: Sequence[int], eps: float) -> Value:
    """The value with mean 0 and variance 1 along dimensions."""
    apart = g.Sub(x, g.reduce("ReduceMean", x, dims, True))
    variance = g.reduce("ReduceMean", g.Mul(apart, apart), dims, True)
    return g.Div(apart, g.Sqrt(g.Add(variance, eps)))


def _scaled(g: Writer, x: Value, weight: Any, bias: Any, after: int = 0) -> Value:
    """The value times a weight plus a bias, with a number of dimensions after those of the weight."""
    for kind, factor in (("Mul", weight), ("Add", bias)):
        if factor is not None:
            x = getattr(g, kind)(x, g.unsqueeze(factor, *range(1, after + 1)) if after else factor)
    return x


@form("nn.functional.batch_norm")
def _batch_norm(
    g: Writer,
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *rest: Any,
) -> Any:
    if training or running_mean is None:
        made = _standardized(g, input, [dim for dim in range(input.ndim) if dim != 1], eps)
        return _scaled(g, made, weight, bias, input.ndim - 2)
    count = _channels(g, input)
    weight = _filled(input, count, 1) if weight is None else weight
    bias = _filled(input, count, 0) if bias is None else bias
    return g.BatchNormalization(input, weight, bias, running_mean, running_var, epsilon=float(eps))


@form("nn.functional.instance_norm")
def _instance_norm(
    g: Writer,
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *rest: Any,
) -> Any:
    if not use_input_stats:
        return _batch_norm(g, input, running_mean, running_var, weight, bias, False, momentum, eps)
    count = _channels(g, input)
    weight = _filled(input, count, 1) if weight is None else weight
    bias = _filled(input, count, 0) if bias is None else bias
    return g.InstanceNormalization(input, weight, bias, epsilon=float(eps))


@form("layer_norm")
def _layer_norm(
    g: Writer,
    input: Any,
    normalized_shape: Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    *rest: Any,
) -> Any:
    count = len(normalized_shape)
    if g.opset >= 17:
        weight = gradiron.ones(tuple(normalized_shape), dtype=input.dtype) if weight is None else weight
        return g.LayerNormalization(input, weight, bias, axis=-count, epsilon=float(eps))
    return _scaled(g, _standardized(g, input, range(-count, 0), eps), weight, bias)


@form("rms_norm")
def _rms_norm(g: Writer, input: Any, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Any:
    eps = gradiron.finfo(input.dtype).eps if eps is None else eps
    squares = g.reduce("ReduceMean", g.Mul(input, input), range(-len(normalized_shape), 0), True)
    return _scaled(g, g.Div(input, g.Sqrt(g.Add(squares, eps))), weight, None)


@form("group_norm")
def _group_norm(
    g: Writer, input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *rest: Any
) -> Any:
    groups = g.reshape(input, [g.size(input, 0), num_groups, -1])
    ones, zeros = _filled(input, num_groups, 1), _filled(input, num_groups, 0)
    made = g.reshape(g.InstanceNormalization(groups, ones, zeros, epsilon=float(eps)), g.shape_of(input))
    return _scaled(g, made, weight, bias, input.ndim - 2)


@form("local_response_norm")
def _local_response_norm(g: Writer, input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    if size % 2 == 0:
        g.refuse("An even size is centred otherwise in ONNX.")
    return g.LRN(input, size=size, alpha=float(alpha), beta=float(beta), bias=float(k))
