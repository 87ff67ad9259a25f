"""New tensors. Those whose sizes are known are constants; the others are made in the graph."""

from __future__ import annotations

from typing import Any

import gradiron

from .._table import form
from .._writer import Value, Writer
from .shapes import listed

__all__: list[str] = []


def _filled(g: Writer, sizes: Any, value: Any) -> Any:
    return g.Expand(g.cast(value, g.dtype), list(sizes))


def _add_constant(name: str, value: int) -> None:
    @form(name)
    def of_sizes(g: Writer, *size: Any, **options: Any) -> Any:
        return _filled(g, listed(size) if size else options["size"], value)

    @form(f"{name}_like")
    def like(g: Writer, input: Any, **options: Any) -> Any:
        return _filled(g, g.shape_of(input), value)

    @form(f"new_{name}")
    def new(g: Writer, input: Any, *size: Any, **options: Any) -> Any:
        return _filled(g, listed(size) if size else options["size"], value)


for _name, _value in (("zeros", 0), ("ones", 1), ("empty", 0)):
    _add_constant(_name, _value)


@form("full")
def _full(g: Writer, size: Any, fill_value: Any, **options: Any) -> Any:
    return _filled(g, size, fill_value)


@form("full_like")
def _full_like(g: Writer, input: Any, fill_value: Any, **options: Any) -> Any:
    return _filled(g, g.shape_of(input), fill_value)


@form("new_full")
def _new_full(g: Writer, input: Any, size: Any, fill_value: Any, **options: Any) -> Any:
    return _filled(g, size, fill_value)


@form("fill", "fill_")
def _fill(g: Writer, input: Any, value: Any) -> Any:
    return _filled(g, g.shape_of(input), value)


@form("zero_")
def _zero(g: Writer, input: Any) -> Any:
    return _filled(g, g.shape_of(input), 0)


@form("copy_")
def _copy(g: Writer, input: Any, src: Any, non_blocking: bool = False) -> Any:
    return g.Expand(g.cast(src, g.dtype), g.shape_of(input))


@form("arange")
def _arange(g: Writer, start: Any, end: Any = None, step: Any = 1, **options: Any) -> Any:
    if end is None:
        start, end = 0, start
    whole = all(isinstance(each, int) or (isinstance(each, Value) and each.is_number) for each in (start, end, step))
    dtype = gradiron.int64 if whole else g.dtype
    return g.Range(*(g.cast(each, dtype) for each in (start, end, step)))


@form("eye")
def _eye(g: Writer, n: Any, m: Any = None, **options: Any) -> Any:
    rows = g.unsqueeze(g.Range(*(g.cast(each, gradiron.int64) for each in (0, n, 1))), 1)
    columns = g.unsqueeze(g.Range(*(g.cast(each, gradiron.int64) for each in (0, n if m is None else m, 1))), 0)
    return g.Equal(rows, columns, dtype=gradiron.bool)


@form("tensor", "as_tensor", "asarray", "scalar_tensor")
def _tensor(g: Writer, data: Any, **options: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return g.Concat(*(g.unsqueeze(_tensor(g, each), 0) for each in data), axis=0)
    return g.cast(data, g.dtype)


@form("rand_like")
def _rand_like(g: Writer, input: Any, **options: Any) -> Any:
    return g.RandomUniformLike(input)


@form("randn_like")
def _randn_like(g: Writer, input: Any, **options: Any) -> Any:
    return g.RandomNormalLike(input)


def _static(g: Writer, sizes: list[Any]) -> list[int]:
    if any(isinstance(each, Value) for each in sizes):
        g.refuse("Its sizes are dynamic; use the operator whose name ends with _like.")
    return sizes


@form("rand")
def _rand(g: Writer, *size: Any, **options: Any) -> Any:
    return g.RandomUniform(shape=_static(g, listed(size) if size else list(options["size"])))


@form("randn")
def _randn(g: Writer, *size: Any, **options: Any) -> Any:
    return g.RandomNormal(shape=_static(g, listed(size) if size else list(options["size"])))
