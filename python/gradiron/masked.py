"""Reductions and normalizations that ignore the elements where a mask is false."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import _core
from ._core import Tensor, dtype
from ._limits import iinfo

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
    if kind.is_floating_point or kind.is_complex:
        return -math.inf
    return False if kind == _core.bool else iinfo(kind).min


def _highest(kind: dtype) -> Any:
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
    """Sum the elements where `mask` is true; 0 if there are none.

    Args:
        input: tensor.
        dim: dimension or dimensions to reduce; all if `None`.
        keepdim: keep the reduced dimensions with size 1. Default: `False`
        dtype: dtype of the result.
        mask: boolean tensor that broadcasts to `input`; false elements are ignored.

    Examples:
        >>> torch.masked.sum(torch.tensor([1.0, 2.0, 4.0]), mask=torch.tensor([True, False, True]))
        tensor(5.)
    """
    return _filled(input, mask, 0).sum(_dims(input, dim), keepdim=bool(keepdim), dtype=dtype)


def prod(
    input: Tensor, dim: _Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Multiply the elements where `mask` is true; 1 if there are none.

    Args:
        input: tensor.
        dim: dimension or dimensions to reduce; all if `None`.
        keepdim: keep the reduced dimensions with size 1. Default: `False`
        dtype: dtype of the result.
        mask: boolean tensor that broadcasts to `input`; false elements are ignored.

    Examples:
        >>> torch.masked.prod(torch.tensor([1.0, 2.0, 4.0]), mask=torch.tensor([True, False, True]))
        tensor(4.)
    """
    made, dims = _filled(input, mask, 1), _dims(input, dim)
    for d in sorted(dims, reverse=True):
        made = made.prod(d, keepdim=bool(keepdim), dtype=dtype)
    return made if dims else made.prod(dtype=dtype)


def amax(
    input: Tensor, dim: _Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the maximum of the elements where `mask` is true; the lowest value of the dtype if there are none.

    Args:
        input: tensor.
        dim: dimension or dimensions to reduce; all if `None`.
        keepdim: keep the reduced dimensions with size 1. Default: `False`
        dtype: dtype of the result.
        mask: boolean tensor that broadcasts to `input`; false elements are ignored.

    Examples:
        >>> torch.masked.amax(torch.tensor([1.0, 8.0, 4.0]), mask=torch.tensor([True, False, True]))
        tensor(4.)
    """
    return _as(_filled(input, mask, _lowest(input.dtype)).amax(_dims(input, dim), keepdim=bool(keepdim)), dtype)


def amin(
    input: Tensor, dim: _Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the minimum of the elements where `mask` is true; the highest value of the dtype if there are none.

    Args:
        input: tensor.
        dim: dimension or dimensions to reduce; all if `None`.
        keepdim: keep the reduced dimensions with size 1. Default: `False`
        dtype: dtype of the result.
        mask: boolean tensor that broadcasts to `input`; false elements are ignored.

    Examples:
        >>> torch.masked.amin(torch.tensor([3.0, 2.0, 4.0]), mask=torch.tensor([True, False, True]))
        tensor(3.)
    """
    return _as(_filled(input, mask, _highest(input.dtype)).amin(_dims(input, dim), keepdim=bool(keepdim)), dtype)


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the index of the maximum of the elements where `mask` is true, in the dtype of the input.

    Args:
        input: tensor.
        dim: dimension to reduce; the flattened tensor if `None`.
        keepdim: keep the reduced dimension with size 1. Default: `False`
        dtype: dtype of the result; that of `input` if `None`.
        mask: boolean tensor that broadcasts to `input`; false elements are ignored.

    Examples:
        >>> torch.masked.argmax(torch.tensor([1, 8, 4]), mask=torch.tensor([True, False, True]))
        tensor(2)
    """
    return _filled(input, mask, _lowest(input.dtype)).argmax(dim, keepdim=bool(keepdim)).to(dtype or input.dtype)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Return the index of the minimum of the elements where `mask` is true, in the dtype of the input.

    Args:
        input: tensor.
        dim: dimension to reduce; the flattened tensor if `None`.
        keepdim: keep the reduced dimension with size 1. Default: `False`
        dtype: dtype of the result; that of `input` if `None`.
        mask: boolean tensor that broadcasts to `input`; false elements are ignored.

    Examples:
        >>> torch.masked.argmin(torch.tensor([3, 2, 4]), mask=torch.tensor([True, False, True]))
        tensor(0)
    """
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
    """Compute the mean of the elements where `mask` is true; NaN if there are none.

    Args:
        input: tensor.
        dim: dimension or dimensions to reduce; all if `None`.
        keepdim: keep the reduced dimensions with size 1. Default: `False`
        dtype: dtype of the result.
        mask: boolean tensor that broadcasts to `input`; false elements are ignored.

    Examples:
        >>> torch.masked.mean(torch.tensor([1.0, 2.0, 4.0]), mask=torch.tensor([True, False, True]))
        tensor(2.5000)
    """
    kind, dims = _differentiable("mean", input, dtype), _dims(input, dim)
    whole = _filled(input, mask, 0).to(kind).sum(dims, keepdim=True)
    return _squeezed(whole / _count(input, dims, mask), dims, keepdim)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Compute the median of the elements where `mask` is true.

    Args:
        input: tensor.
        dim: dimension to reduce. Default: `-1`
        keepdim: keep the reduced dimension with size 1. Default: `False`
        dtype: dtype of the result.
        mask: boolean tensor that broadcasts to `input`; false elements are ignored.

    Examples:
        >>> torch.masked.median(torch.tensor([1.0, 9.0, 4.0]), mask=torch.tensor([True, False, True]))
        tensor(1.)
    """
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
    """Compute the logarithm of the sum of exponentials of the elements where `mask` is true.

    Args:
        input: tensor.
        dim: dimension or dimensions to reduce; all if `None`.
        keepdim: keep the reduced dimensions with size 1. Default: `False`
        dtype: dtype of the result.
        mask: boolean tensor that broadcasts to `input`; false elements are ignored.

    Examples:
        >>> torch.masked.logsumexp(torch.zeros(3), mask=torch.tensor([True, False, True]))
        tensor(0.6931)
    """
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
    """Compute `log(exp(input) + exp(other))`, where masked elements count as negative infinity.

    Args:
        input: tensor.
        other: tensor.
        dtype: dtype of the result.
        input_mask: boolean tensor; false elements of `input` are ignored.
        other_mask: boolean tensor; false elements of `other` are ignored.

    Examples:
        >>> torch.masked.logaddexp(torch.zeros(2), torch.zeros(2), other_mask=torch.tensor([True, False]))
        tensor([0.6931, 0.0000])
    """
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
    """Compute the vector norm of the elements where `mask` is true.

    Args:
        input: tensor.
        ord: order of the norm. Default: `2.0`
        dim: dimension or dimensions to reduce; all if `None`.
        keepdim: keep the reduced dimensions with size 1. Default: `False`
        dtype: dtype of the result.
        mask: boolean tensor that broadcasts to `input`; false elements are ignored.

    Examples:
        >>> torch.masked.norm(torch.tensor([3.0, 9.0, 4.0]), mask=torch.tensor([True, False, True]))
        tensor(5.)
    """
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
    """Compute the variance of the elements where `mask` is true.

    Args:
        input: tensor.
        dim: dimension or dimensions to reduce; all if `None`.
        unbiased: deprecated form of `correction`: true for 1, false for 0.
        correction: number subtracted from the count; 1 if `None`.
        keepdim: keep the reduced dimensions with size 1. Default: `False`
        dtype: dtype of the result.
        mask: boolean tensor that broadcasts to `input`; false elements are ignored.

    Examples:
        >>> torch.masked.var(torch.tensor([1.0, 9.0, 5.0]), mask=torch.tensor([True, False, True]))
        tensor(8.)
    """
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
    """Compute the standard deviation of the elements where `mask` is true.

    Args:
        input: tensor.
        dim: dimension or dimensions to reduce; all if `None`.
        unbiased: deprecated form of `correction`: true for 1, false for 0.
        correction: number subtracted from the count; 1 if `None`.
        keepdim: keep the reduced dimensions with size 1. Default: `False`
        dtype: dtype of the result.
        mask: boolean tensor that broadcasts to `input`; false elements are ignored.

    Examples:
        >>> torch.masked.std(torch.tensor([1.0, 9.0, 5.0]), mask=torch.tensor([True, False, True]))
        tensor(2.8284)
    """
    return _moments("std", input, dim, unbiased, correction, keepdim, dtype, mask)


_DOC = """{what} along a dimension; elements where `mask` is false are ignored.

Args:
    input: tensor.
    dim: dimension.
    dtype: dtype of the result.
    mask: boolean tensor that broadcasts to `input`.

Examples:
    >>> torch.masked.{name}(torch.ones(3), 0, mask=torch.tensor([True, False, True]))
    tensor([{value}])
"""


def _along(
    name: str, function: Callable[..., Tensor], hidden: Callable[[dtype], Any], what: str, value: str
) -> Callable[..., Tensor]:
    """A function along one dimension; `hidden` gives what replaces masked elements of a dtype."""

    def applied(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
        (along,) = _dims(input, dim)[:1] or (0,)
        return function(_filled(input, mask, hidden(input.dtype)), along, dtype=input.dtype if dtype is None else dtype)

    applied.__name__ = applied.__qualname__ = name
    applied.__doc__ = _DOC.format(what=what, name=name, value=value)
    return applied


def _softmin(x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return _core.softmax(-x, dim, dtype=dtype)


softmax = _along("softmax", _core.softmax, _lowest, "Apply softmax", "0.5000, 0.0000, 0.5000")
log_softmax = _along("log_softmax", _core.log_softmax, _lowest, "Apply softmax and the logarithm", "-0.6931,    -inf, -0.6931")
softmin = _along("softmin", _softmin, _highest, "Apply softmax to the negated elements", "0.5000, 0.0000, 0.5000")
cumsum = _along("cumsum", _core.cumsum, lambda kind: 0, "Compute cumulative sums", "1., 1., 2.")
cumprod = _along("cumprod", _core.cumprod, lambda kind: 1, "Compute cumulative products", "1., 1., 1.")


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Tensor | None = None
) -> Tensor:
    """Divide by the norm of the elements where `mask` is true, and set the others to 0.

    Args:
        input: tensor.
        ord: order of the norm.
        dim: dimension of the norm.
        eps: lower bound of the norm. Default: `1e-12`
        dtype: dtype of the result.
        mask: boolean tensor that broadcasts to `input`; false elements are ignored.

    Examples:
        >>> torch.masked.normalize(torch.tensor([3.0, 9.0, 4.0]), 2.0, 0, mask=torch.tensor([True, False, True]))
        tensor([0.6000, 0.0000, 0.8000])
    """
    x = _as(input, dtype)
    size = norm(x, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(x, mask, 0) / size.clamp(min=eps)
