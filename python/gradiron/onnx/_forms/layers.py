"""Convolutions, padding and dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradiron

from .._table import form
from .._writer import Value, Writer
from .shapes import END

__all__: list[str] = []


def each_of(value: Any, count: int) -> list[Any]:
    """Return a number for each spatial dimension.

    Args:
        value: one number for all, or a sequence.
        count: number of dimensions.
    """
    given = list(value) if isinstance(value, (list, tuple)) else [value]
    return given * count if len(given) == 1 else given


def with_batch(g: Writer, x: Any, rank: int) -> tuple[Any, bool]:
    """Return a value with a batch dimension, and whether it had none.

    Args:
        g: writer.
        x: value.
        rank: number of dimensions that it needs.
    """
    return (g.unsqueeze(x, 0), True) if x.ndim == rank - 1 else (x, False)


def _padding(g: Writer, padding: Any, kernel: Sequence[Any], dilation: Sequence[int]) -> list[int]:
    """Padding at the beginning and end of all dimensions."""
    if padding == "valid":
        return [0] * (2 * len(kernel))
    if padding == "same":
        if None in kernel:
            g.refuse("The size of the kernel is dynamic.")
        total = [gap * (size - 1) for size, gap in zip(kernel, dilation, strict=True)]
        return [*(each // 2 for each in total), *(each - each // 2 for each in total)]
    return [*each_of(padding, len(kernel))] * 2


def _known(kernel: list[Any]) -> list[int] | None:
    """The attribute of a kernel's size, which is left out where it is dynamic."""
    return None if None in kernel else kernel


def _add_convolution(spatial: int) -> None:
    @form(f"conv{spatial}d")
    def convolution(
        g: Writer,
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        kernel, gaps = list(weight.shape[2:]), each_of(dilation, spatial)
        x, single = with_batch(g, input, spatial + 2)
        made = g.Conv(
            x,
            weight,
            bias,
            kernel_shape=_known(kernel),
            strides=each_of(stride, spatial),
            pads=_padding(g, padding, kernel, gaps),
            dilations=gaps,
            group=groups,
        )
        return g.squeeze(made, 0) if single else made

    @form(f"conv_transpose{spatial}d")
    def transposed(
        g: Writer,
        input: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Any:
        x, single = with_batch(g, input, spatial + 2)
        made = g.ConvTranspose(
            x,
            weight,
            bias,
            kernel_shape=_known(list(weight.shape[2:])),
            strides=each_of(stride, spatial),
            pads=each_of(padding, spatial) * 2,
            output_padding=each_of(output_padding, spatial),
            dilations=each_of(dilation, spatial),
            group=groups,
        )
        return g.squeeze(made, 0) if single else made


for _spatial in (1, 2, 3):
    _add_convolution(_spatial)

_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@form("pad")
def _pad(g: Writer, input: Any, pad: Sequence[Any], mode: str = "constant", value: Any = None) -> Any:
    rank, pairs = input.ndim, [(pad[at], pad[at + 1]) for at in range(0, len(pad), 2)]
    if mode == "circular" and g.opset < 19:
        return _wrapped(g, input, pairs)
    if input.dtype == gradiron.bool:
        return g.cast(_pad_with(g, g.cast(input, gradiron.uint8), rank, pairs, mode, int(value or 0)), gradiron.bool)
    return _pad_with(g, input, rank, pairs, mode, value)


@form("constant_pad_nd")
def _constant_pad_nd(g: Writer, input: Any, pad: Sequence[Any], value: Any = 0) -> Any:
    return _pad(g, input, pad, value=value)


def _pad_with(g: Writer, x: Any, rank: int, pairs: Sequence[Any], mode: str, value: Any) -> Value:
    none = [0] * (rank - len(pairs))
    begins = [*none, *(begin for begin, _ in reversed(pairs))]
    ends = [*none, *(end for _, end in reversed(pairs))]
    fill = g.cast(0 if value is None else value, x.dtype) if mode == "constant" else None
    return g.Pad(x, [*begins, *ends], fill, mode=_MODES[mode])


def _wrapped(g: Writer, x: Any, pairs: Sequence[Any]) -> Any:
    """Padding by the elements of the other side, which older versions do not have."""
    for at, (begin, end) in enumerate(pairs):
        if any(isinstance(each, Value) for each in (begin, end)) or begin < 0 or end < 0:
            g.refuse("Circular padding has to be known and positive.", 19)
        dim, shape = x.ndim - 1 - at, x.shape
        parts = [g.slice(x, dim, -begin, END)] if begin else []
        parts += [x]
        parts += [g.slice(x, dim, 0, end)] if end else []
        x = g.Concat(*parts, axis=dim)
        x.sizes = shape
    return x


def _dropped(g: Writer, input: Any, p: float, training: bool) -> Any:
    if not training or p == 0:
        return input
    return g.Dropout(input, g.cast(p, gradiron.float32), g.cast(True, gradiron.bool))


@form("dropout", "dropout1d", "dropout2d", "dropout3d", "feature_dropout")
def _dropout(g: Writer, input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    if g.called != "dropout" and training and p > 0:
        g.refuse("Only dropout of single elements can be exported in training mode.")
    return _dropped(g, input, p, training)


@form("alpha_dropout", "feature_alpha_dropout")
def _alpha_dropout(g: Writer, input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    if training and p > 0:
        g.refuse("Only dropout of single elements can be exported in training mode.")
    return input
