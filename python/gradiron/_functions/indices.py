"""Functions of indices, strides and memory order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Convert flat indices to coordinates in a tensor of the given shape.

    Args:
        indices: tensor of integers.
        shape: shape of the tensor that they index.

    Returns:
        A tuple with a tensor of coordinates for each dimension.

    Examples:
        >>> torch.unravel_index(torch.tensor([1, 5]), (2, 3))
        (tensor([0, 1]), tensor([1, 2]))
    """
    if not isinstance(indices, Tensor):
        raise TypeError(f"expected 'indices' to be an integer tensor, but got {type(indices)}")
    if indices.is_floating_point() or indices.is_complex() or indices.dtype.itemsize == 0:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = [shape] if isinstance(shape, int) else list(shape)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
        if size < 0:
            raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    found, step = [], 1
    for size in reversed(sizes):
        found.append(indices.div(step, rounding_mode="floor") % size)
        step *= size
    return tuple(reversed(found))


def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None) -> Tensor:
    """Return the indices of the first `size` nonzero elements, padded to that number.

    Args:
        input: tensor.
        size: number of rows of the result.
        fill_value: value of the rows that are missing. Default: `-1`
        out: tensor to write to.

    Examples:
        >>> torch.nonzero_static(torch.tensor([0, 3, 0, 4]), size=3)
        tensor([[ 1],
                [ 3],
                [-1]])
    """
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    if out is not None and out.dtype != _core.int64:
        kind = out.type().rpartition(".")[2].removesuffix("Tensor")
        raise RuntimeError(f"nonzero_static: Expected out tensor to have scalar type Long but got scalar type{kind}")
    found = _core.nonzero(input)[:size]
    return _core.cat([found, found.new_full((size - found.shape[0], input.dim()), fill_value)], out=out)


def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Copy a tensor and write `src` to the elements that `as_strided` would select.

    Args:
        input: tensor.
        src: values to write, of shape `size`.
        size: shape of the view.
        stride: strides of the view.
        storage_offset: offset of the view; that of `input` if `None`.

    Examples:
        >>> torch.as_strided_scatter(torch.zeros(2, 2), torch.ones(2), (2,), (3,))
        tensor([[1., 0.],
                [0., 1.]])
    """
    if tuple(src.shape) != tuple(size):
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(size)}"
        )
    own = input.storage_offset()
    # From the start of the storage to the last element of the input.
    length = own + 1 + sum((n - 1) * s for n, s in zip(input.shape, input.stride(), strict=True)) if input.numel() else own
    flat = input.as_strided((length,), (1,), 0).clone()
    flat.as_strided(size, stride, own if storage_offset is None else storage_offset).copy_(src)
    return flat.as_strided(input.shape, input.stride(), own)


def empty_permuted(
    size: Any,
    physical_layout: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Create an uninitialized tensor whose dimensions have a given order in memory.

    Args:
        size: shape of the result.
        physical_layout: dimensions in memory order, from the outermost to the innermost.
        dtype: dtype of the result; the default dtype if `None`.
        layout: must be `torch.strided` or `None`.
        device: device of the result.
        pin_memory: accepted for compatibility. Default: `False`
        requires_grad: whether the result requires a gradient. Default: `False`

    Examples:
        >>> torch.empty_permuted((2, 3, 5), (0, 2, 1)).stride()
        (15, 1, 3)
    """
    sizes, order = list(size), list(physical_layout)
    if len(sizes) != len(order):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(sizes)} is not equal to len(physical_layout) = {len(order)}"
        )
    for at, dim in enumerate(order):
        if not 0 <= dim < len(sizes):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(sizes) - 1}, but got {dim} at index {at}).  NB: "
                "negative dims not currently supported."
            )
        if dim in order[:at]:
            raise RuntimeError("Duplicate dim not allowed")
    strides, step = [1] * len(sizes), 1
    for dim in reversed(order):
        strides[dim] = step
        step *= sizes[dim]
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad, "pin_memory": pin_memory}
    if layout is not None:
        options["layout"] = layout
    return _core.empty_strided(sizes, strides, **options)
