"""Reductions and normalizations of the elements that a mask lets through: the others count as if they were not there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import _core
from ._core import Tensor, dtype

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

_Dims = int | tuple[int, ...] | None


def _lowest(kind: dtype) -> Any:
    from ._limits import iinfo

    if kind.is_floating_point or kind.is_complex:
        return -math.inf
    return False if kind == _core.bool else iinfo(kind).min


def _highest(kind: dtype) -> Any:
    from ._limits import iinfo

    if kind.is_floating_point or kind.is_complex:
        return math.inf
    return True if kind == _core.bool else iinfo(kind).max


def _dims(input: Tensor, dim: _Dims) -> tuple[int, ...]:
    """The dimensions, all where none is told."""
    if dim is None or dim == ():
        return tuple(range(input.dim()))
    rank, found = max(input.dim(), 1), []
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -rank <= d < rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {d})")
        if d % rank in found:
            raise RuntimeError(f"dim={d % rank} appears multiple times in the list of dims")
        found.append(d % rank)
    return tuple(found)


def _shown(input: Tensor, mask: Tensor | None) -> Tensor | None:
    """The mask, of the input's shape."""
    if mask is None:
        return None
    if mask.dim() > input.dim():
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    return mask.expand(input.shape).to(_core.bool)


def _filled(input: Tensor, mask: Tensor | None, value: Any) -> Tensor:
    shown = _shown(input, mask)
    return input if shown is None else _core.where(shown, input, _core.full((), value, dtype=input.dtype, device=input.device))


def _as(input: Tensor, dtype: Any) -> Tensor:
    return input if dtype is None else input.to(dtype)


def _count(input: Tensor, dims: tuple[int, ...], mask: Tensor | None) -> Tensor:
    """How many elements there are, in dimensions that are kept."""
    shown = _shown(input, mask)
    ones = _core.ones(input.shape, dtype=_core.int64, device=input.device) if shown is None else shown.to(_core.int64)
    return ones.sum(dims, keepdim=True) if dims else ones


def _squeezed(made: Tensor, dims: tuple[int, ...], keepdim: bool | None) -> Tensor:
    return made if keepdim or not dims else made.squeeze(dims)


def sum(
    input: Tensor, dim: _Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The sum; 0 where nothing is shown."""
    return _filled(input, mask, 0).sum(_dims(input, dim), keepdim=bool(keepdim), dtype=dtype)


def prod(
    input: Tensor, dim: _Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The product; 1 where nothing is shown."""
    made, dims = _filled(input, mask, 1), _dims(input, dim)
    for d in sorted(dims, reverse=True):
        made = made.prod(d, keepdim=bool(keepdim), dtype=dtype)
    return made if dims else made.prod(dtype=dtype)


def amax(
    input: Tensor, dim: _Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The greatest element; the least that there can be where nothing is shown."""
    return _as(_filled(input, mask, _lowest(input.dtype)).amax(_dims(input, dim), keepdim=bool(keepdim)), dtype)


def amin(
    input: Tensor, dim: _Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The least element; the greatest that there can be where nothing is shown."""
    return _as(_filled(input, mask, _highest(input.dtype)).amin(_dims(input, dim), keepdim=bool(keepdim)), dtype)


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Where the greatest element is, in the dtype of the input."""
    return _filled(input, mask, _lowest(input.dtype)).argmax(dim, keepdim=bool(keepdim)).to(dtype or input.dtype)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Where the least element is, in the dtype of the input."""
    return _filled(input, mask, _highest(input.dtype)).argmin(dim, keepdim=bool(keepdim)).to(dtype or input.dtype)


def _differentiable(name: str, input: Tensor, dtype: Any) -> Any:
    if dtype is None and not (input.is_floating_point() or input.is_complex()):
        raise ValueError(
            f"{name}(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            f"{input.dtype}"
        )
    return input.dtype if dtype is None else dtype


def mean(
    input: Tensor, dim: _Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The mean; no number where nothing is shown."""
    kind, dims = _differentiable("mean", input, dtype), _dims(input, dim)
    whole = _filled(input, mask, 0).to(kind).sum(dims, keepdim=True)
    return _squeezed(whole / _count(input, dims, mask), dims, keepdim)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The median."""
    (along,) = _dims(input, dim)[:1] or (0,)
    if mask is None:
        return _as(input.median(along, keepdim).values, dtype)
    x = input
    if not input.is_floating_point():
        if bool((_count(input, (along,), mask) == 0).any()):
            raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
        x = input.to(_core.float64)
    return _filled(x, mask, math.nan).nanmedian(along, keepdim).values.to(dtype or input.dtype)


def logsumexp(
    input: Tensor, dim: _Dims = None, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of the sum of exponentials."""
    made = _core.logsumexp(_filled(input, mask, _lowest(input.dtype)), _dims(input, dim), keepdim)
    return made.to(dtype or input.dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of two exponentials."""
    a, b = (_filled(_as(x, dtype), mask, -math.inf) for x, mask in ((input, input_mask), (other, other_mask)))
    return _core.logaddexp(a, b)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: _Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The norm of a vector."""
    order = 2.0 if ord is None else float(ord)
    x = _filled(_as(input, dtype), mask, math.inf if order < 0 else 0)
    return _core.linalg_vector_norm(x, order, _dims(x, dim), bool(keepdim), dtype=dtype)


def _moments(
    name: str, input: Tensor, dim: _Dims, unbiased: Any, correction: Any, keepdim: Any, dtype: Any, mask: Any
) -> Tensor:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    less = correction if correction is not None else 0 if unbiased is False else 1
    kind = dtype if dtype is not None else input.dtype
    x = input.to(kind if kind.is_floating_point or kind.is_complex else _core.get_default_dtype())
    dims = _dims(x, dim)
    count = _count(x, dims, mask)
    middle = _filled(x, mask, 0).sum(dims, keepdim=True) / count
    apart = _filled(x - middle, mask, 0)
    squares = (apart * apart.conj()).real if x.is_complex() else apart * apart
    left = (count - less).clamp(min=0) if less else count
    made = _squeezed(squares.sum(dims, keepdim=True) / left, dims, keepdim).to(x.dtype)
    return made.sqrt() if name == "std" else made


def var(
    input: Tensor,
    dim: _Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance."""
    return _moments("var", input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor,
    dim: _Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation."""
    return _moments("std", input, dim, unbiased, correction, keepdim, dtype, mask)


def _along(name: str, function: Callable[..., Tensor], hidden: Callable[[dtype], Any], doc: str) -> Callable[..., Tensor]:
    """A function in one dimension, to which hidden elements are what `hidden` says for the dtype."""

    def applied(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
        (along,) = _dims(input, dim)[:1] or (0,)
        return function(_filled(input, mask, hidden(input.dtype)), along, dtype=input.dtype if dtype is None else dtype)

    applied.__name__ = applied.__qualname__ = name
    applied.__doc__ = doc
    return applied


def _softmin(x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return _core.softmax(-x, dim, dtype=dtype)


softmax = _along("softmax", _core.softmax, _lowest, "Softmax; hidden elements are 0.")
log_softmax = _along("log_softmax", _core.log_softmax, _lowest, "The logarithm of `softmax`.")
softmin = _along("softmin", _softmin, _highest, "Softmax of the elements with their signs turned.")
cumsum = _along("cumsum", _core.cumsum, lambda kind: 0, "The sums of the elements so far.")
cumprod = _along("cumprod", _core.cumprod, lambda kind: 1, "The products of the elements so far.")


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """The elements by their norm; hidden ones are 0."""
    x = _as(input, dtype)
    size = norm(x, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(x, mask, 0) / size.clamp(min=eps)
