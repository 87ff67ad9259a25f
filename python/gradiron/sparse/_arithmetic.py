"""Sparse tensors in coordinate format: sums, products and quotients of their elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from ._build import coalesce, place_keys, sparse_dim, to_dense
from ._convert import replaced
from ._tensor import is_coo, like, make, unsupported


def is_number(x: Any) -> bool:
    return not isinstance(x, Tensor) or (not is_coo(x) and x.dim() == 0)


def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    if not is_coo(input):
        dense: Tensor = input
        if not isinstance(dense, Tensor):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        return _core.add(dense, to_dense(other), alpha=alpha)
    if not is_coo(other):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if input.shape != other.shape:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(input.shape)} != {list(other.shape)}"
        )
    if input._at.shape[0] != other._at.shape[0]:
        raise RuntimeError(
            f"add: expected 'self' and 'other' to have same number of sparse dimensions, but {sparse_dim(input)} != "
            f"{sparse_dim(other)}"
        )
    kind = _core.promote_types(input.dtype, other.dtype)
    held = other._held.to(kind)
    held = held if alpha == 1 else held * alpha
    both = _core.cat([input._held.to(kind), held])
    return coalesce(make(_core.cat([input._at, other._at], 1), both, input.shape))


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    return add(input, other, alpha=-alpha)


def mul(input: Any, other: Any) -> Tensor:
    if not is_coo(input):
        input, other = other, input
    if is_number(other):
        return like(input, input._held * other)
    if input.shape != other.shape:
        raise RuntimeError(
            f"mul: expected 'self' and 'other' to have same sizes when mul is not broadcasting, but {list(input.shape)} != "
            f"{list(other.shape)}"
        )
    if not is_coo(other):
        return like(input, input._held * other[tuple(input._at)])
    input, other = coalesce(input), coalesce(other)
    # Both are sorted: the places that they share.
    mine, theirs = place_keys(input), place_keys(other)
    if theirs.shape[0] == 0:
        shared = at = theirs
    else:
        at = _core.searchsorted(theirs, mine).clamp(max=theirs.shape[0] - 1)
        shared = (theirs.index_select(0, at) == mine).nonzero().reshape(-1)
        at = at.index_select(0, shared)
    held = input._held.index_select(0, shared) * other._held.index_select(0, at)
    return make(input._at.index_select(1, shared), held, input.shape, True)


def div(input: Any, other: Any, *, rounding_mode: Any = None) -> Tensor:
    if not is_coo(input):
        if not isinstance(input, Tensor):
            raise unsupported("reciprocal", (other,))
    if not is_number(other):
        raise RuntimeError(
            f"Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {list(other.shape)} for divisor)"
        )
    if rounding_mode is not None:
        input = coalesce(input)
    return like(input, _core.div(input._held, other, rounding_mode=rounding_mode))


def power(input: Any, exponent: Any) -> Tensor:
    if not is_coo(input) or isinstance(exponent, Tensor):
        raise unsupported("pow.Tensor_Tensor", (input, exponent))
    if exponent == 0:
        raise RuntimeError("pow: a sparse tensor to the power of 0 is not sparse: use `to_dense()` first")
    input = coalesce(input)
    return like(input, input._held**exponent)


def add_in_place(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Add a sparse tensor to another, or to a dense one, of which nothing but the elements that have values is read."""
    if is_coo(input) or not is_coo(other) or input.shape != other.shape:
        return in_place(add)(input, other, alpha=alpha)
    held = other._held.to(input.dtype)
    if other._at.shape[0] == 1:
        return input.index_add_(0, other._at[0], held, alpha=alpha)
    return input.index_put_(tuple(other._at), held if alpha == 1 else held * alpha, accumulate=True)


def in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def write(x: Any, other: Any, **kwargs: Any) -> Any:
        if is_coo(x) and is_number(other) and function in (mul, div):
            # Written in place, so that tensors that share the values see it.
            (x._held.mul_ if function is mul else x._held.div_)(other, **kwargs)
            return x
        made = function(x, other, **kwargs)
        return replaced(x, made) if is_coo(x) else x.copy_(made)

    return write
