"""Sums, extrema, orders and what else goes along dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gradiron

from .._table import form
from .._writer import Value, Writer
from .pointwise import pair

__all__: list[str] = []


def dims_of(x: Any, dim: Any) -> list[int] | None:
    """Return dimensions as a list counted from the first; None for all.

    Args:
        x: value.
        dim: a dimension, several, or None.
    """
    if dim is None:
        return None
    found = [dim] if isinstance(dim, int) else list(dim)
    return [each % max(x.ndim, 1) for each in found] or None


@form("sum")
def _sum(g: Writer, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return g.reduce("ReduceSum", g.cast(input, g.dtype), dims_of(input, dim), keepdim)


@form("mean")
def mean(g: Writer, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Write a mean.

    Args:
        g: writer.
        input: value.
        dim: dimensions; None for all.
        keepdim: whether they stay.
        dtype: dtype of the result.
    """
    return g.reduce("ReduceMean", g.cast(input, g.dtype), dims_of(input, dim), keepdim)


@form("prod")
def _prod(g: Writer, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return g.reduce("ReduceProd", g.cast(input, g.dtype), dims_of(input, dim), keepdim)


@form("amax")
def _amax(g: Writer, input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    return g.reduce("ReduceMax", input, dims_of(input, dim), keepdim)


@form("amin")
def _amin(g: Writer, input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    return g.reduce("ReduceMin", input, dims_of(input, dim), keepdim)


def _extremum(g: Writer, kind: str, input: Any, dim: Any, keepdim: bool) -> Any:
    if isinstance(dim, int):
        value = g.reduce(f"Reduce{kind}", input, [dim % max(input.ndim, 1)], keepdim)
        return value, getattr(g, f"Arg{kind}")(input, axis=dim, keepdims=int(keepdim), dtype=gradiron.int64)
    if dim is None:
        return g.reduce(f"Reduce{kind}", input, None, False)
    return getattr(g, kind)(*pair(g, input, dim))


@form("max")
def _max(g: Writer, input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _extremum(g, "Max", input, dim, keepdim)


@form("min")
def _min(g: Writer, input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _extremum(g, "Min", input, dim, keepdim)


@form("aminmax")
def _aminmax(g: Writer, input: Any, *, dim: int | None = None, keepdim: bool = False) -> Any:
    dims = dims_of(input, dim)
    return g.reduce("ReduceMin", input, dims, keepdim), g.reduce("ReduceMax", input, dims, keepdim)


def _place(g: Writer, kind: str, input: Any, dim: int | None, keepdim: bool) -> Any:
    if dim is None:
        if keepdim:
            g.refuse("keepdim without dim is not supported.")
        return getattr(g, kind)(g.reshape(input, [-1]), axis=0, keepdims=0, dtype=gradiron.int64)
    return getattr(g, kind)(input, axis=dim, keepdims=int(keepdim), dtype=gradiron.int64)


@form("argmax")
def _argmax(g: Writer, input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    return _place(g, "ArgMax", input, dim, keepdim)


@form("argmin")
def _argmin(g: Writer, input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    return _place(g, "ArgMin", input, dim, keepdim)


def _truth(g: Writer, kind: str, input: Any, dim: Any, keepdim: bool) -> Any:
    ones = g.cast(g.cast(input, gradiron.bool), gradiron.int32)
    return g.cast(g.reduce(kind, ones, dims_of(input, dim), keepdim), gradiron.bool)


@form("any")
def _any(g: Writer, input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _truth(g, "ReduceMax", input, dim, keepdim)


@form("all")
def _all(g: Writer, input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _truth(g, "ReduceMin", input, dim, keepdim)


@form("count_nonzero")
def _count_nonzero(g: Writer, input: Any, dim: Any = None) -> Any:
    ones = g.cast(g.cast(input, gradiron.bool), gradiron.int64)
    return g.reduce("ReduceSum", ones, dims_of(input, dim), False)


# Variance.


def count(g: Writer, x: Any, dims: Sequence[int]) -> Any:
    """Return the number of elements along dimensions: an integer, or a number of the graph.

    Args:
        g: writer.
        x: value.
        dims: dimensions.
    """
    found: Any = 1
    for dim in dims:
        size = g.size(x, dim)
        if isinstance(found, int) and isinstance(size, int):
            found *= size
        else:
            found = g.Mul(g.cast(found, gradiron.int64), g.cast(size, gradiron.int64))
    return found


def _variance(g: Writer, input: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> tuple[Value, Value]:
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    dims = dims_of(input, dim) or list(range(input.ndim))
    off = (1 if unbiased is None else int(unbiased)) if correction is None else correction
    middle = g.reduce("ReduceMean", input, dims, True)
    apart = g.Sub(input, middle)
    total = g.reduce("ReduceSum", g.Mul(apart, apart), dims, keepdim)
    number = count(g, input, dims)
    divisor = max(number - off, 0) if isinstance(number, int) else g.Sub(g.cast(number, input.dtype), off)
    return g.Div(total, divisor), middle if keepdim else g.squeeze(middle, *dims)


@form("var")
def _var(g: Writer, input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    return _variance(g, input, dim, unbiased, keepdim, correction)[0]


@form("std")
def _std(g: Writer, input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None) -> Any:
    return g.Sqrt(_variance(g, input, dim, unbiased, keepdim, correction)[0])


@form("var_mean")
def _var_mean(
    g: Writer, input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Any:
    return _variance(g, input, dim, unbiased, keepdim, correction)


@form("std_mean")
def _std_mean(
    g: Writer, input: Any, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
) -> Any:
    variance, middle = _variance(g, input, dim, unbiased, keepdim, correction)
    return g.Sqrt(variance), middle


# Norms.


@form("logsumexp")
def _logsumexp(g: Writer, input: Any, dim: Any, keepdim: bool = False) -> Any:
    return g.reduce("ReduceLogSumExp", g.cast(input, g.dtype), dims_of(input, dim), keepdim)


@form("linalg.vector_norm")
def vector_norm(g: Writer, x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Write a norm of vectors.

    Args:
        g: writer.
        x: value.
        ord: order.
        dim: dimensions; None for all.
        keepdim: whether they stay.
        dtype: dtype of the result.
    """
    x, dims = g.cast(x, g.dtype), dims_of(x, dim)
    if ord in (1, 2):
        return g.reduce(f"ReduceL{int(ord)}", x, dims, keepdim)
    if ord in (math.inf, -math.inf):
        return g.reduce("ReduceMax" if ord > 0 else "ReduceMin", g.Abs(x), dims, keepdim)
    if ord == 0:
        return g.reduce("ReduceSum", g.cast(g.cast(x, gradiron.bool), g.dtype), dims, keepdim)
    return g.Pow(g.reduce("ReduceSum", g.Pow(g.Abs(x), float(ord)), dims, keepdim), 1 / ord)


@form("norm", "linalg.norm")
def _norm(g: Writer, input: Any, p: Any = None, dim: Any = None, keepdim: bool = False, *args: Any, dtype: Any = None) -> Any:
    if p not in (None, "fro", 2) and (
        isinstance(p, str) or (g.called == "linalg.norm" and len(dims_of(input, dim) or ()) == 2)
    ):
        g.refuse(f"The norm {p!r} of matrices is not supported.")
    return vector_norm(g, input, 2 if p in (None, "fro") else p, dim, keepdim)


@form("normalize")
def _normalize(g: Writer, input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None) -> Any:
    return g.Div(input, g.Max(vector_norm(g, input, p, dim, True), eps))


@form("cosine_similarity")
def _cosine_similarity(g: Writer, x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    x1, x2 = pair(g, x1, x2)
    one, two = (g.Max(g.Sqrt(g.reduce("ReduceSum", g.Mul(x, x), [dim], True)), eps) for x in (x1, x2))
    return g.reduce("ReduceSum", g.Mul(g.Div(x1, one), g.Div(x2, two)), [dim], False)


@form("pairwise_distance")
def _pairwise_distance(g: Writer, x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    apart = g.Add(g.Sub(*pair(g, x1, x2)), eps)
    return vector_norm(g, Value(apart.name, apart.dtype, (None,) * max(x1.ndim, x2.ndim)), p, -1, keepdim)


# Along one dimension.


@form("softmax")
def _softmax(g: Writer, input: Any, dim: int = -1, _stacklevel: int = 3, dtype: Any = None) -> Any:
    return g.Softmax(g.cast(input, g.dtype), axis=dim)


@form("log_softmax")
def _log_softmax(g: Writer, input: Any, dim: int = -1, _stacklevel: int = 3, dtype: Any = None) -> Any:
    return g.LogSoftmax(g.cast(input, g.dtype), axis=dim)


@form("softmin")
def _softmin(g: Writer, input: Any, dim: int = -1, _stacklevel: int = 3, dtype: Any = None) -> Any:
    return g.Softmax(g.Neg(g.cast(input, g.dtype)), axis=dim)


@form("cumsum")
def _cumsum(g: Writer, input: Any, dim: int, *, dtype: Any = None) -> Any:
    return g.CumSum(g.cast(input, g.dtype), g.cast(dim, gradiron.int64))


@form("topk")
def _topk(g: Writer, input: Any, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    values, places = g.several("TopK", input, [k], outputs=2, axis=dim, largest=int(largest), sorted=int(sorted))
    places.dtype = gradiron.int64
    return values, places


@form("sort")
def _sort(g: Writer, input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    if input.ndim == 0:
        return input, g.constant(gradiron.tensor(0))
    return _topk(g, input, g.size(input, dim), dim, descending)


@form("msort")
def _msort(g: Writer, input: Any) -> Any:
    return _sort(g, input, 0)[0]


@form("argsort")
def _argsort(g: Writer, input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    return _sort(g, input, dim, descending)[1]


@form("nansum")
def _nansum(g: Writer, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    input = g.cast(input, g.dtype)
    known = g.Where(g.IsNaN(input, dtype=gradiron.bool), g.value(0, g.dtype), input, dtype=g.dtype)
    return g.reduce("ReduceSum", known, dims_of(input, dim), keepdim)
