"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradiron

from .._table import form
from .._writer import Value, Writer, product
from .layers import each_of, with_batch
from .shapes import swapped

__all__: list[str] = []


def _require_windows(g: Writer, spatial: int, x: Any, options: dict[str, Any]) -> None:
    """ONNX lets a window begin in the padding at the end, PyTorch does not."""
    if not options["ceil_mode"]:
        return
    for at, (size, wanted) in enumerate(zip(x.shape[-spatial:], g.shape[-spatial:], strict=True)):
        if size is None:
            g.refuse("ceil_mode is not supported where the size is dynamic.")
        kernel, step, room, gap = (options[name][at] for name in ("kernel_shape", "strides", "pads", "dilations"))
        if -(-(size + 2 * room - gap * (kernel - 1) - 1) // step) + 1 != wanted:
            g.refuse("With ceil_mode, a window would begin in the padding.")


def _add_windows(spatial: int) -> None:
    @form(f"max_pool{spatial}d")
    def max_pool(
        g: Writer,
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        options = {
            "kernel_shape": each_of(kernel_size, spatial),
            "strides": each_of(stride or kernel_size, spatial),
            "pads": each_of(padding, spatial) * 2,
            "dilations": each_of(dilation, spatial),
            "ceil_mode": int(ceil_mode),
        }
        _require_windows(g, spatial, input, options)
        x, single = with_batch(g, input, spatial + 2)
        made: tuple[Any, ...] = g.several("MaxPool", x, outputs=2 if return_indices else 1, **options)
        if return_indices:
            if None in input.shape[-spatial:]:
                g.refuse("return_indices needs a known size of each channel.")
            # ONNX counts through the whole batch, PyTorch in each channel.
            made[1].dtype = gradiron.int64
            made = (made[0], g.Mod(made[1], product(input.shape[-spatial:])))
        made = tuple(g.squeeze(each, 0) for each in made) if single else made
        return made if return_indices else made[0]

    @form(f"avg_pool{spatial}d")
    def avg_pool(
        g: Writer,
        input: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        options = {
            "kernel_shape": each_of(kernel_size, spatial),
            "strides": each_of(stride or kernel_size, spatial),
            "pads": each_of(padding, spatial) * 2,
        }
        _require_windows(g, spatial, input, {**options, "dilations": [1] * spatial, "ceil_mode": ceil_mode})
        if ceil_mode and (divisor_override or (count_include_pad and any(options["pads"]))):
            g.refuse("ceil_mode is not supported together with padding or divisor_override.")
        x, single = with_batch(g, input, spatial + 2)
        include = int(count_include_pad or divisor_override is not None)
        made = g.AveragePool(x, count_include_pad=include, ceil_mode=int(ceil_mode), **options)
        if divisor_override is not None:
            made = g.Mul(made, product(options["kernel_shape"]) / divisor_override)
        return g.squeeze(made, 0) if single else made

    @form(f"adaptive_avg_pool{spatial}d")
    def adaptive_avg_pool(g: Writer, input: Any, output_size: Any) -> Any:
        return adaptive(g, "Average", spatial, input, output_size)

    @form(f"nn.functional.adaptive_max_pool{spatial}d")
    def adaptive_max_pool(g: Writer, input: Any, output_size: Any, return_indices: bool = False) -> Any:
        if return_indices:
            g.refuse("return_indices is not supported.")
        return adaptive(g, "Max", spatial, input, output_size)


for _spatial in (1, 2, 3):
    _add_windows(_spatial)


def adaptive(g: Writer, kind: str, spatial: int, input: Any, output_size: Any) -> Any:
    """Write a pooling whose windows follow from the size of the output.

    Args:
        g: writer.
        kind: `"Average"` or `"Max"`.
        spatial: number of spatial dimensions.
        input: value.
        output_size: size of the output.
    """
    wanted = each_of(output_size, spatial)
    sizes = list(input.shape[-spatial:])
    if all(each == 1 for each in wanted):
        return g.reduce("ReduceMean" if kind == "Average" else "ReduceMax", input, range(-spatial, 0), True)
    wanted = [size if each is None else each for size, each in zip(sizes, wanted, strict=True)]
    if None in sizes or any(isinstance(each, Value) for each in wanted):
        g.refuse("The windows of an adaptive pooling depend on a dynamic size.")
    if all(size % each == 0 for size, each in zip(sizes, wanted, strict=True)):
        kernel = [size // each for size, each in zip(sizes, wanted, strict=True)]
        x, single = with_batch(g, input, spatial + 2)
        made = getattr(g, f"{kind}Pool")(x, kernel_shape=kernel, strides=kernel)
        return g.squeeze(made, 0) if single else made
    if kind == "Max":
        g.refuse("The output's size has to divide the input's.")
    return _averaged(g, input, sizes, wanted)


def _averaged(g: Writer, x: Any, sizes: list[int], wanted: list[int]) -> Any:
    """Means over windows of different sizes."""
    matrices = []
    for size, count in zip(sizes, wanted, strict=True):
        matrix = gradiron.zeros(size, count, dtype=x.dtype)
        for at in range(count):
            start, stop = at * size // count, -(-(at + 1) * size // count)
            matrix[start:stop, at] = 1 / (stop - start)
        matrices.append(matrix)
    return along_last(g, x, x.ndim, matrices)


def along_last(g: Writer, x: Any, rank: int, matrices: Sequence[Any]) -> Any:
    """Return the products of a value with matrices, one for each of its last dimensions.

    Args:
        g: writer.
        x: value.
        rank: its number of dimensions.
        matrices: matrices of shape (size before, size after).
    """
    for dim, matrix in enumerate(matrices, rank - len(matrices)):
        if dim == rank - 1:
            x = g.MatMul(x, matrix)
        else:
            x = swapped(g, g.MatMul(swapped(g, x, rank, dim, -1), matrix), rank, dim, -1)
    return x
