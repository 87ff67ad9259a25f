"""Views, joins and other rearrangements."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import gradiron

from .._table import form
from .._writer import Value, Writer, product

__all__: list[str] = []

#: Larger than every size: the end of a slice that goes to the end.
END = (1 << 63) - 1


def listed(given: tuple[Any, ...]) -> list[Any]:
    """Return sizes that are given one by one or as one sequence.

    Args:
        given: arguments.
    """
    return list(given[0]) if len(given) == 1 and isinstance(given[0], (list, tuple)) else list(given)


@form("view", "reshape", "_unsafe_view")
def reshape(g: Writer, input: Any, *shape: Any, size: Any = None) -> Any:
    """Write a view of another shape.

    Args:
        g: writer.
        input: value.
        shape, size: sizes.
    """
    sizes = listed(shape) if shape else list(size)
    if any(isinstance(each, gradiron.dtype) for each in sizes):
        g.refuse("Elements cannot be taken as those of another dtype.")
    return g.reshape(input, sizes)


@form("view_as", "reshape_as")
def _view_as(g: Writer, input: Any, other: Any) -> Any:
    return g.reshape(input, g.shape_of(other))


@form("flatten", "ravel")
def _flatten(g: Writer, input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    if input.ndim == 0:
        return g.reshape(input, [1])
    sizes = g.shape_of(input)
    start, end = start_dim % input.ndim, end_dim % input.ndim
    return g.reshape(input, [*sizes[:start], -1, *sizes[end + 1 :]])


@form("unflatten")
def _unflatten(g: Writer, input: Any, dim: int, sizes: Sequence[Any]) -> Any:
    own = g.shape_of(input)
    dim %= input.ndim
    return g.reshape(input, [*own[:dim], *sizes, *own[dim + 1 :]])


@form("squeeze")
def _squeeze(g: Writer, input: Any, dim: Any = None) -> Any:
    dims = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    ones = [each % input.ndim for each in dims if input.ndim and input.shape[each] == 1]
    return g.squeeze(input, *ones) if ones else input


@form("unsqueeze")
def _unsqueeze(g: Writer, input: Any, dim: int) -> Any:
    return g.unsqueeze(input, dim)


def permuted(g: Writer, x: Any, dims: Sequence[int]) -> Any:
    """Return a value with its dimensions in another order.

    Args:
        g: writer.
        x: value.
        dims: the dimensions, in the order of the result.
    """
    return g.Transpose(x, perm=list(dims)) if len(dims) > 1 else g.Identity(x)


def swapped(g: Writer, x: Any, rank: int, first: int, second: int) -> Any:
    """Return a value with two dimensions exchanged.

    Args:
        g: writer.
        x: value.
        rank: its number of dimensions.
        first, second: the two.
    """
    dims = list(range(rank))
    dims[first], dims[second] = dims[second], dims[first]
    return permuted(g, x, dims)


@form("transpose", "swapaxes", "swapdims")
def _transpose(g: Writer, input: Any, dim0: int, dim1: int) -> Any:
    return swapped(g, input, input.ndim, dim0, dim1) if input.ndim else input


@form("permute")
def _permute(g: Writer, input: Any, *dims: Any) -> Any:
    return permuted(g, input, [dim % input.ndim for dim in listed(dims)])


@form("t", "T")
def _t(g: Writer, input: Any) -> Any:
    return permuted(g, input, range(input.ndim - 1, -1, -1)) if input.ndim > 1 else input


@form("mT", "adjoint", "mH", "H")
def _matrix_transpose(g: Writer, input: Any) -> Any:
    return swapped(g, input, input.ndim, -1, -2)


@form("movedim", "moveaxis")
def _movedim(g: Writer, input: Any, source: Any, destination: Any) -> Any:
    sources = [each % input.ndim for each in ([source] if isinstance(source, int) else source)]
    places = [each % input.ndim for each in ([destination] if isinstance(destination, int) else destination)]
    rest = [dim for dim in range(input.ndim) if dim not in sources]
    at = dict(zip(places, sources, strict=True))
    return permuted(g, input, [at[dim] if dim in at else rest.pop(0) for dim in range(input.ndim)])


def expanded(g: Writer, x: Any, sizes: Sequence[Any]) -> Any:
    """Return a value that is repeated along dimensions of size 1.

    Args:
        g: writer.
        x: value.
        sizes: sizes; -1 keeps one.
    """
    # ONNX takes 1 where PyTorch takes -1.
    return g.Expand(x, [1 if not isinstance(each, Value) and each == -1 else each for each in sizes])


@form("expand")
def _expand(g: Writer, input: Any, *sizes: Any, size: Any = None) -> Any:
    return expanded(g, input, listed(sizes) if sizes else list(size))


@form("broadcast_to")
def _broadcast_to(g: Writer, input: Any, size: Sequence[Any]) -> Any:
    return expanded(g, input, size)


@form("expand_as")
def _expand_as(g: Writer, input: Any, other: Any) -> Any:
    return expanded(g, input, g.shape_of(other))


@form("repeat", "tile")
def _repeat(g: Writer, input: Any, *repeats: Any, dims: Any = None) -> Any:
    counts = listed(repeats) if repeats else list(dims)
    # `tile` may be given fewer numbers than there are dimensions, `repeat` more.
    counts = [*([1] * (input.ndim - len(counts))), *counts]
    missing = len(counts) - input.ndim
    return g.Tile(g.unsqueeze(input, *range(missing)) if missing else input, counts)


@form("repeat_interleave")
def _repeat_interleave(g: Writer, input: Any, repeats: Any, dim: int | None = None, *, output_size: Any = None) -> Any:
    if not isinstance(repeats, int) and not (isinstance(repeats, Value) and repeats.is_number):
        g.refuse("Numbers of repetitions have to be known.")
    if dim is None:
        flat = g.unsqueeze(g.reshape(input, [-1]), 1)
        return g.reshape(g.Expand(flat, [1, repeats]), [-1])
    dim %= input.ndim
    sizes = g.shape_of(input)
    wide = g.Expand(g.unsqueeze(input, dim + 1), [*([1] * (dim + 1)), repeats, *([1] * (input.ndim - dim - 1))])
    return g.reshape(wide, [*sizes[:dim], -1, *sizes[dim + 1 :]])


# Joining and splitting.


@form("cat", "concat", "concatenate")
def _cat(g: Writer, tensors: Sequence[Any], dim: int = 0) -> Any:
    # A tensor of shape (0,) joins anything.
    kept = [each for each in tensors if each.shape != (0,)] or list(tensors)[:1]
    return g.Concat(*(g.cast(each, g.dtype) for each in kept), axis=dim)


@form("stack")
def stack(g: Writer, tensors: Sequence[Any], dim: int = 0) -> Any:
    """Write values of one shape as one of a further dimension.

    Args:
        g: writer.
        tensors: values.
        dim: the dimension.
    """
    return g.Concat(*(g.unsqueeze(g.cast(each, g.dtype), dim) for each in tensors), axis=dim)


@form("hstack")
def _hstack(g: Writer, tensors: Sequence[Any]) -> Any:
    parts = [g.reshape(each, [1]) if each.ndim == 0 else each for each in tensors]
    return g.Concat(*(g.cast(each, g.dtype) for each in parts), axis=0 if tensors[0].ndim < 2 else 1)


@form("vstack", "row_stack")
def _vstack(g: Writer, tensors: Sequence[Any]) -> Any:
    rows = [g.reshape(each, [1, -1]) if each.ndim < 2 else each for each in tensors]
    return g.Concat(*(g.cast(each, g.dtype) for each in rows), axis=0)


@form("chunk", "split", "split_with_sizes", "tensor_split", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes")
def _split(g: Writer, input: Any, parts: Any = None, dim: int = 0, **named: Any) -> Any:
    found = [shape[dim] for shape, _ in g.results]
    if len(found) == 1:
        return (input,)
    if None in found:
        g.refuse("The dimension that is split is dynamic.")
    return g.several("Split", input, found, outputs=len(found), axis=dim)


@form("hsplit")
def _hsplit(g: Writer, input: Any, parts: Any) -> Any:
    return _split(g, input, parts, 0 if input.ndim == 1 else 1)


@form("vsplit")
def _vsplit(g: Writer, input: Any, parts: Any) -> Any:
    return _split(g, input, parts, 0)


@form("column_stack")
def _column_stack(g: Writer, tensors: Sequence[Any]) -> Any:
    columns = [g.reshape(each, [-1, 1]) if each.ndim < 2 else each for each in tensors]
    return g.Concat(*(g.cast(each, g.dtype) for each in columns), axis=1)


@form("broadcast_tensors")
def _broadcast_tensors(g: Writer, *tensors: Any) -> Any:
    given = listed(tensors)
    total = given[0]
    for each in given[1:]:
        total = g.Add(g.cast(total, g.dtype), g.cast(each, g.dtype))
    shape = g.Shape(total, dtype=gradiron.int64)
    return tuple(g.Expand(each, shape) for each in given)


@form("unbind")
def _unbind(g: Writer, input: Any, dim: int = 0) -> Any:
    return tuple(g.Gather(input, g.cast(at, gradiron.int64), axis=dim) for at in range(len(g.results)))


@form("narrow")
def _narrow(g: Writer, input: Any, dim: int, start: Any, length: Any) -> Any:
    if isinstance(start, int) and isinstance(length, int):
        if start < 0:
            start += g.size(input, dim)
        return g.slice(input, dim, start, start + length)
    stop = g.Add(g.cast(start, gradiron.int64), g.cast(length, gradiron.int64))
    return g.slice(input, dim, start, stop)


@form("select")
def _select(g: Writer, input: Any, dim: int, index: Any) -> Any:
    return g.Gather(input, g.cast(index, gradiron.int64), axis=dim)


@form("flip", "fliplr", "flipud")
def _flip(g: Writer, input: Any, *dims: Any) -> Any:
    turned = listed(dims) if dims else [1 if "fliplr" in g.called else 0]
    count = len(turned)
    return g.Slice(input, [-1] * count, [-END] * count, turned, [-1] * count)


@form("roll")
def _roll(g: Writer, input: Any, shifts: Any, dims: Any = None) -> Any:
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        if any(size is None for size in input.shape):
            g.refuse("Without dims, the sizes have to be known.")
        shift = (shifts if isinstance(shifts, int) else shifts[0]) % max(product(input.shape), 1)
        flat = _rolled(g, g.reshape(input, [-1]), shift, 0)
        return g.reshape(flat, g.shape_of(input))
    moves = [shifts] if isinstance(shifts, (int, Value)) else list(shifts)
    for shift, dim in zip(moves, [dims] if isinstance(dims, int) else dims, strict=True):
        shape, size = tuple(input.shape), g.size(input, dim)
        known = isinstance(shift, int) and isinstance(size, int)
        input = _rolled(g, input, shift % max(size, 1) if known else g.arithmetic(operator.mod, (shift, size)), dim)
        input.sizes = shape
    return input


def _rolled(g: Writer, x: Any, shift: Any, dim: int) -> Value:
    back = g.Neg(shift) if isinstance(shift, Value) else -shift
    return g.Concat(g.slice(x, dim, back, END), g.slice(x, dim, 0, back), axis=dim) if back != 0 else g.Identity(x)


@form("meshgrid")
def _meshgrid(g: Writer, *tensors: Any, indexing: str = "ij") -> Any:
    given = listed(tensors)
    rank = len(given)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[0], order[1] = 1, 0
    sizes: list[Any] = [None] * rank
    for place, each in zip(order, given, strict=True):
        sizes[place] = g.size(each, 0) if each.ndim else 1
    return tuple(
        expanded(g, g.reshape(each, [-1 if dim == place else 1 for dim in range(rank)]), sizes)
        for place, each in zip(order, given, strict=True)
    )


def _triangle(g: Writer, input: Any, diagonal: Any, upper: bool) -> Any:
    if g.opset >= 14:
        return g.Trilu(input, g.cast(diagonal, gradiron.int64), upper=int(upper))
    rows, columns = input.shape[-2:]
    if rows is None or columns is None:
        g.refuse("The size of the matrices is dynamic.", 14)
    ones = gradiron.ones(rows, columns, dtype=gradiron.bool)
    mask = ones.triu(diagonal) if upper else ones.tril(diagonal)
    return g.Where(mask, input, g.cast(0, input.dtype), dtype=input.dtype)


@form("tril")
def _tril(g: Writer, input: Any, diagonal: int = 0) -> Any:
    return _triangle(g, input, diagonal, upper=False)


@form("triu")
def _triu(g: Writer, input: Any, diagonal: int = 0) -> Any:
    return _triangle(g, input, diagonal, upper=True)


@form("linalg.diagonal")
def _matrix_diagonal(g: Writer, A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    return diagonal(g, A, offset, dim1, dim2)


@form("diagonal")
def diagonal(g: Writer, input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Write the diagonal of matrices.

    Args:
        g: writer.
        input: value.
        offset: which diagonal.
        dim1, dim2: dimensions of the matrices.
    """
    rank = input.ndim
    dim1, dim2 = dim1 % rank, dim2 % rank
    rows, columns = input.shape[dim1], input.shape[dim2]
    if rows is None or columns is None:
        g.refuse("The size of the matrices is dynamic.")
    places = gradiron.arange(rows * columns).reshape(rows, columns).diagonal(offset)
    rest = [dim for dim in range(rank) if dim not in (dim1, dim2)]
    flat = g.reshape(permuted(g, input, [*rest, dim1, dim2]), [*(g.size(input, dim) for dim in rest), -1])
    return g.Gather(flat, places, axis=len(rest))


@form("trace")
def _trace(g: Writer, input: Any) -> Any:
    return g.reduce("ReduceSum", diagonal(g, input), None, False)


@form("rot90")
def _rot90(g: Writer, input: Any, k: int = 1, dims: Sequence[int] = (0, 1)) -> Any:
    first, second = dims
    if k % 4 == 0:
        return input
    if k % 4 == 2:
        return g.Slice(input, [-1, -1], [-END, -END], list(dims), [-1, -1])
    turned = swapped(g, input, input.ndim, first, second)
    return g.Slice(turned, [-1], [-END], [first if k % 4 == 1 else second], [-1])


@form("diff")
def _diff(g: Writer, input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    parts = [g.cast(part, input.dtype) for part in (prepend, input, append) if part is not None]
    input = parts[0] if len(parts) == 1 else g.Concat(*parts, axis=dim)
    for _ in range(n):
        later, earlier = g.slice(input, dim, 1, END), g.slice(input, dim, 0, -1)
        input = g.Sub(later, earlier)
    return input


@form("Tensor.unfold")
def _unfold_dimension(g: Writer, input: Any, dimension: int, size: int, step: int) -> Any:
    count = g.shape[dimension]
    if count is None:
        g.refuse("The size of the dimension is dynamic.")
    places = (gradiron.arange(count) * step).unsqueeze(1) + gradiron.arange(size)
    dim = dimension % input.ndim
    windows = g.Gather(input, places, axis=dim)
    order = [at for at in range(input.ndim + 1) if at != dim + 1]
    return permuted(g, windows, [*order, dim + 1])


@form("fold")
def _fold(
    g: Writer,
    input: Any,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Any:
    g.need(18)
    if input.ndim != 3:
        g.refuse("It needs a batch dimension.")
    image, kernel, gaps, room, steps = (
        list(each) if isinstance(each, (list, tuple)) else [each, each]
        for each in (output_size, kernel_size, dilation, padding, stride)
    )
    return g.Col2Im(input, image, kernel, dilations=gaps, pads=room * 2, strides=steps)


# Spatial rearrangements.


@form("pixel_shuffle")
def _pixel_shuffle(g: Writer, input: Any, upscale_factor: int) -> Any:
    if input.ndim == 4:
        return g.DepthToSpace(input, blocksize=upscale_factor, mode="CRD")
    if input.ndim != 3:
        g.refuse("Only one batch dimension is supported.")
    return g.squeeze(g.DepthToSpace(g.unsqueeze(input, 0), blocksize=upscale_factor, mode="CRD"), 0)


@form("pixel_unshuffle")
def _pixel_unshuffle(g: Writer, input: Any, downscale_factor: int) -> Any:
    *batch, channels, height, width = g.shape_of(input)
    if isinstance(height, Value) or isinstance(width, Value):
        g.refuse("Height and width are dynamic.")
    factor, rank = downscale_factor, len(batch)
    split = g.reshape(input, [*batch, channels, height // factor, factor, width // factor, factor])
    dims = [*range(rank), *(rank + at for at in (0, 2, 4, 1, 3))]
    return g.reshape(permuted(g, split, dims), [*batch, channels * factor**2, height // factor, width // factor])


@form("channel_shuffle")
def _channel_shuffle(g: Writer, input: Any, groups: int) -> Any:
    batch, channels, *rest = g.shape_of(input)
    known = isinstance(channels, int)
    each = channels // groups if known else g.arithmetic(operator.floordiv, (channels, groups))
    split = g.reshape(input, [batch, groups, each, *rest])
    return g.reshape(swapped(g, split, input.ndim + 1, 1, 2), [batch, channels, *rest])


@form("unfold")
def _unfold(g: Writer, input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    if input.ndim != 4:
        g.refuse("Only images with a batch and channels are supported.")
    kernel, gap, room, step = (
        pairs if isinstance(pairs, (list, tuple)) else (pairs, pairs) for pairs in (kernel_size, dilation, padding, stride)
    )
    channels = input.shape[1]
    if channels is None:
        g.refuse("The number of channels is dynamic.")
    # Each element of a window is a channel of a convolution with a kernel that has a single 1.
    count = product(kernel)
    weight = gradiron.eye(count, dtype=input.dtype).reshape(count, 1, *kernel).repeat(channels, 1, 1, 1)
    made = g.Conv(
        input, weight, group=channels, kernel_shape=list(kernel), dilations=list(gap), pads=[*room, *room], strides=list(step)
    )
    return g.reshape(made, [g.size(input, 0), channels * count, -1])


@form("atleast_1d", "atleast_2d", "atleast_3d")
def _atleast(g: Writer, input: Any) -> Any:
    wanted = int(g.called[-2])
    if input.ndim >= wanted:
        return input
    if wanted == 3 and input.ndim == 2:
        return g.unsqueeze(input, 2)
    return g.unsqueeze(input, *([0, 2] if (wanted, input.ndim) == (3, 1) else range(wanted - input.ndim)))
