"""Reading and writing by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradiron

from ..._core import Tensor
from .._table import form
from .._writer import Value, Writer, product
from .pointwise import masked_fill
from .shapes import END, permuted

__all__: list[str] = []


def _is_tensor(entry: Any) -> bool:
    return isinstance(entry, Tensor) or (isinstance(entry, Value) and not entry.is_number)


def _entries(g: Writer, index: Any, rank: int) -> list[Any]:
    """One entry for each dimension, and None where one is added."""
    given = list(index) if isinstance(index, tuple) else [index]
    given = [gradiron.tensor(entry) if isinstance(entry, list) else entry for entry in given]
    found: list[Any] = []
    for entry in given:
        if isinstance(entry, bool):
            g.refuse("A single True or False as an index is not supported.")
        if isinstance(entry, (Tensor, Value)) and entry.dtype in (gradiron.bool, gradiron.uint8):
            if isinstance(entry, Value):
                g.refuse("The shape of the result depends on the values of a mask.")
            found += entry.nonzero(as_tuple=True)
        else:
            found.append(entry)
    taken = sum(entry is not None and entry is not ... for entry in found)
    missing: list[Any] = [slice(None)] * (rank - taken)
    at = next((at for at, entry in enumerate(found) if entry is ...), None)
    return found + missing if at is None else found[:at] + missing + found[at + 1 :]


def _sliced(g: Writer, x: Any, entries: Sequence[Any]) -> Any:
    """What the slices leave, by one node."""
    parts = [(dim, entry) for dim, entry in enumerate(entries) if isinstance(entry, slice) and entry != slice(None)]
    parts = [
        (dim, part) for dim, part in parts if not (part.start in (None, 0) and part.stop is None and part.step in (None, 1))
    ]
    if not parts:
        return x
    starts = [0 if part.start is None else part.start for _, part in parts]
    stops = [END if part.stop is None else part.stop for _, part in parts]
    steps = [1 if part.step is None else part.step for _, part in parts]
    return g.Slice(x, starts, stops, [dim for dim, _ in parts], steps)


@form("__getitem__")
def read(g: Writer, x: Any, index: Any) -> Any:
    """Write what an index reads.

    Args:
        g: writer.
        x: value.
        index: index as Python's.
    """
    entries = _entries(g, index, x.ndim)
    along = [entry for entry in entries if entry is not None]
    found = _sliced(g, x, along)
    tensors = [dim for dim, entry in enumerate(along) if _is_tensor(entry) and entry.ndim > 0]
    if len(tensors) > 1:
        if None in entries or any(not isinstance(entry, slice) and dim not in tensors for dim, entry in enumerate(along)):
            g.refuse("Several tensors together with integers or None are not supported as an index.")
        return _gathered(g, found, x.ndim, tensors, [along[dim] for dim in tensors])
    # From the last dimension, as a number takes its own away.
    for dim in reversed(range(len(along))):
        if not isinstance(along[dim], slice):
            found = g.Gather(found, g.cast(along[dim], gradiron.int64), axis=dim)
    added, place = [], 0
    for entry in entries:
        if entry is None:
            added.append(place)
            place += 1
        elif isinstance(entry, slice):
            place += 1
        elif _is_tensor(entry):
            place += entry.ndim
    found = g.unsqueeze(found, *added) if added else found
    # A written tensor needs a value of its own, even if the index takes all of it.
    return g.Identity(found) if found is x else found


def _gathered(g: Writer, x: Any, rank: int, dims: list[int], indices: list[Any]) -> Any:
    """What several tensors of indices read."""
    rest = [dim for dim in range(rank) if dim not in dims]
    x = permuted(g, x, [*dims, *rest]) if dims != list(range(len(dims))) else x
    wide = max(index.ndim for index in indices)
    shared = indices[0]
    for index in indices[1:]:
        shared = g.Add(g.cast(shared, gradiron.int64), g.cast(index, gradiron.int64))
    shape = g.Shape(shared, dtype=gradiron.int64)
    # Negative indices are allowed.
    each = [g.unsqueeze(g.Expand(g.cast(index, gradiron.int64), shape), wide) for index in indices]
    found = g.GatherND(x, g.Concat(*each, axis=wide), dtype=g.dtype)
    together = dims == list(range(dims[0], dims[0] + len(dims)))
    if not together or dims[0] == 0:
        return found
    # The dimensions of the indices stand where the tensors stood.
    before = list(range(wide, wide + dims[0]))
    return permuted(g, found, [*before, *range(wide), *range(wide + dims[0], wide + len(rest))])


@form("setitem")
def _setitem(g: Writer, x: Any, index: Any, value: Any) -> Any:
    value = g.cast(value, x.dtype)
    mask = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    if isinstance(mask, Value) and mask.dtype == gradiron.bool:
        if value.ndim > 0 and value.shape != (1,):
            g.refuse("What is written by a mask has to be one number.")
        missing = x.ndim - mask.ndim
        mask = g.unsqueeze(mask, *range(mask.ndim, x.ndim)) if missing else mask
        return masked_fill(g, x, mask, value)
    if None not in x.shape and _is_known(index):
        places = gradiron.arange(product(x.shape)).reshape(x.shape)[index]
        chosen: Any = places.reshape(-1)
        shape: Any = list(places.shape)
    else:
        found = read(g, _places(g, x), index)
        chosen, shape = g.reshape(found, [-1]), g.Shape(found, dtype=gradiron.int64)
    spread = g.reshape(g.Expand(value, shape), [-1])
    written = g.ScatterElements(g.reshape(x, [-1]), chosen, spread, axis=0, dtype=x.dtype)
    return g.reshape(written, g.shape_of(x))


def _is_known(index: Any) -> bool:
    """Whether an index has no value of the graph."""
    if isinstance(index, (list, tuple)):
        return all(map(_is_known, index))
    if isinstance(index, slice):
        return all(map(_is_known, (index.start, index.stop, index.step)))
    return not isinstance(index, Value)


def _places(g: Writer, x: Any) -> Value:
    """The position of each element."""
    if None not in x.shape:
        return g.constant(gradiron.arange(product(x.shape)).reshape(x.shape))
    number = g.Size(x, dtype=gradiron.int64)
    flat = g.Range(g.cast(0, gradiron.int64), number, g.cast(1, gradiron.int64))
    made = g.reshape(flat, g.shape_of(x))
    made.sizes = x.shape
    return made


@form("gather")
def _gather(g: Writer, input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    return g.GatherElements(input, g.cast(index, gradiron.int64), axis=dim)


@form("index_select")
def _index_select(g: Writer, input: Any, dim: int, index: Any) -> Any:
    return g.Gather(input, g.cast(index, gradiron.int64), axis=dim)


@form("nn.functional.embedding")
def _embedding(
    g: Writer,
    input: Any,
    weight: Any,
    padding_idx: Any = None,
    max_norm: Any = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    if max_norm is not None:
        g.refuse("max_norm writes into the weight.")
    return g.Gather(weight, input, axis=0)


@form("embedding")
def _embedding_rows(g: Writer, weight: Any, indices: Any, *options: Any, **named: Any) -> Any:
    return g.Gather(weight, indices, axis=0)


@form("scatter")
def _scatter(g: Writer, input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None) -> Any:
    given = value if src is None else src
    if not _is_tensor(given):
        given = g.Expand(g.cast(given, input.dtype), g.shape_of(index))
    if reduce is not None:
        g.need(16)
    kind = {None: None, "add": "add", "multiply": "mul"}[reduce]
    return g.ScatterElements(input, index, given, axis=dim, reduction=kind)


@form("scatter_add")
def _scatter_add(g: Writer, input: Any, dim: int, index: Any, src: Any) -> Any:
    g.need(16)
    return g.ScatterElements(input, index, src, axis=dim, reduction="add")


@form("one_hot")
def _one_hot(g: Writer, input: Any, num_classes: int = -1) -> Any:
    if num_classes == -1:
        g.refuse("The number of classes has to be given.")
    return g.OneHot(input, g.cast(num_classes, gradiron.int64), g.constant(gradiron.tensor([0, 1])), dtype=gradiron.int64)


@form("take_along_dim")
def _take_along_dim(g: Writer, input: Any, indices: Any, dim: int | None = None) -> Any:
    if dim is None:
        return g.Gather(g.reshape(input, [-1]), g.reshape(indices, [-1]), axis=0)
    dim %= input.ndim
    if any(one != other for at, (one, other) in enumerate(zip(input.shape, indices.shape, strict=True)) if at != dim):
        g.refuse("Its tensors have to have the same shape in all other dimensions.")
    return g.GatherElements(input, indices, axis=dim)


@form("take")
def _take(g: Writer, input: Any, index: Any) -> Any:
    return g.Gather(g.reshape(input, [-1]), index, axis=0)


@form("index_put")
def _index_put(g: Writer, input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    if accumulate:
        g.refuse("accumulate=True is not supported.")
    return _setitem(g, input, tuple(slice(None) if each is None else each for each in indices), values)


@form("index_fill")
def _index_fill(g: Writer, input: Any, dim: int, index: Any, value: Any) -> Any:
    return _setitem(g, input, (*[slice(None)] * (dim % input.ndim), index), value)


@form("index_copy")
def _index_copy(g: Writer, input: Any, dim: int, index: Any, source: Any) -> Any:
    return _setitem(g, input, (*[slice(None)] * (dim % input.ndim), index), source)


@form("index_add")
def _index_add(g: Writer, input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    g.need(16)
    dim %= input.ndim
    shape = g.Shape(source, dtype=gradiron.int64)
    spread = g.Expand(g.unsqueeze(g.cast(index, gradiron.int64), *_others(input.ndim, dim)), shape)
    added = source if alpha == 1 else g.Mul(source, alpha)
    return g.ScatterElements(input, spread, added, axis=dim, reduction="add")


def _others(rank: int, dim: int) -> list[int]:
    return [each for each in range(rank) if each != dim]


_REDUCTIONS = {"sum": ("add", 16), "prod": ("mul", 16), "amax": ("max", 18), "amin": ("min", 18)}


@form("scatter_reduce")
def _scatter_reduce(g: Writer, input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    if not include_self or reduce not in _REDUCTIONS:
        g.refuse("Only sum, prod, amax and amin with include_self=True are supported.")
    kind, opset = _REDUCTIONS[reduce]
    g.need(opset)
    return g.ScatterElements(input, index, src, axis=dim, reduction=kind)


@form("nn.functional.embedding_bag")
def _embedding_bag(
    g: Writer,
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: Any = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: Any = None,
) -> Any:
    if input.ndim != 2 or max_norm is not None or padding_idx is not None:
        g.refuse("Only bags that are rows of a matrix are supported, without max_norm and padding_idx.")
    rows = g.Gather(weight, input, axis=0)
    if per_sample_weights is not None:
        rows = g.Mul(rows, g.unsqueeze(per_sample_weights, 2))
    return g.reduce({"mean": "ReduceMean", "sum": "ReduceSum", "max": "ReduceMax"}[mode], rows, [1], False)
