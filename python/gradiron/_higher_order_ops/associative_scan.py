"""Running totals by any associative function, made in as many calls as the length has bits, twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from ..func import vmap
from ..utils import _pytree

__all__ = ["associative_scan"]

_Leaves = list[Tensor]


def _part(leaves: _Leaves, start: int | None, stop: int | None = None, step: int = 1) -> _Leaves:
    return [leaf[slice(start, stop, step)] for leaf in leaves]


def _totals(combine: Callable[[_Leaves, _Leaves], _Leaves], leaves: _Leaves) -> _Leaves:
    """What stands before each element of the first dimension, with it: pairs first, then what lies between them."""
    length = leaves[0].shape[0]
    if length < 2:
        return leaves
    pairs = combine(_part(leaves, None, length - 1, 2), _part(leaves, 1, None, 2))
    odd = _totals(combine, pairs)
    if length > 2:
        before = odd if length % 2 else _part(odd, None, -1)
        even = combine(before, _part(leaves, 2, None, 2))
        even = [_core.cat([leaf[:1], rest]) for leaf, rest in zip(leaves, even, strict=True)]
    else:
        even = _part(leaves, None, 1)
    woven = []
    for left, right in zip(even, odd, strict=True):
        whole = _core.stack([left[: right.shape[0]], right], 1).flatten(0, 1)
        woven.append(_core.cat([whole, left[right.shape[0] :]]) if length % 2 else whole)
    return woven


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """The totals of `xs` along `dim`: `combine_fn(total, element)` for one element after another, in any grouping."""
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    given, spec = _pytree.tree_flatten(xs)
    if not given:
        raise ValueError("Expected at least one input, but got none")
    for leaf in given:
        if not isinstance(leaf, Tensor):
            raise ValueError(f"All xs leaves must be a Tensor, but got {leaf}")
    leaves = [leaf.movedim(dim, 0) for leaf in given]
    each = vmap(combine_fn) if combine_mode == "generic" else combine_fn
    lengths = [leaf.shape[0] for leaf in leaves]
    if len(set(lengths)) > 1:
        raise ValueError(f"All xs leaves must have the same length along dim, but got {lengths}")
    if lengths[0] == 0:
        return xs
    if reverse:
        leaves = [leaf.flip(0) for leaf in leaves]

    def combine(left: _Leaves, right: _Leaves) -> _Leaves:
        made, made_spec = _pytree.tree_flatten(each(_pytree.tree_unflatten(left, spec), _pytree.tree_unflatten(right, spec)))
        if made_spec != spec:
            raise ValueError("combine_fn must return what has the structure of its arguments")
        for new, old in zip(made, left, strict=True):
            if new.shape != old.shape or new.dtype != old.dtype:
                raise ValueError(
                    f"combine_fn must keep shapes and dtypes: got {tuple(new.shape)} and {new.dtype} "
                    f"for {tuple(old.shape)} and {old.dtype}"
                )
        return made

    leaves = _totals(combine, leaves)
    if reverse:
        leaves = [leaf.flip(0) for leaf in leaves]
    return _pytree.tree_unflatten([leaf.movedim(0, dim) for leaf in leaves], spec)
