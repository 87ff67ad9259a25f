"""Reductions of segments."""

from __future__ import annotations

import math
from typing import Any

from .. import _core
from .._core import Tensor

# The result of an empty segment, and the name of the reduction in `scatter_reduce`.
_REDUCTIONS = {
    "sum": (0.0, "sum"),
    "mean": (0.0, "sum"),
    "prod": (1.0, "prod"),
    "max": (-math.inf, "amax"),
    "amax": (-math.inf, "amax"),
    "min": (math.inf, "amin"),
    "amin": (math.inf, "amin"),
}


def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Tensor:
    """Reduce each segment of a dimension to its sum, mean, product, maximum or minimum.

    Args:
        data: floating point tensor.
        reduce: `"sum"`, `"mean"`, `"prod"`, `"max"` or `"min"`.
        lengths: length of each segment, an integer tensor of `axis + 1` dimensions.
        indices: not supported.
        offsets: start of each segment and end of the last, instead of `lengths`.
        axis: dimension of the segments, the last one of `lengths` or `offsets`. Default: `0`
        unsafe: skip the check that the lengths sum to the size. Default: `False`
        initial: initial value of each reduction.

    Examples:
        >>> torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0]), "sum", lengths=torch.tensor([2, 1]))
        tensor([3., 3.])
    """
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    axis = axis % data.dim() if data.dim() else 0
    given = offsets if lengths is None else lengths
    assert given is not None
    if not data.is_floating_point():
        raise NotImplementedError(f"\"_segment_reduce_cpu\" not implemented for '{_kind(data)}'")
    if given.dtype not in (_core.int32, _core.int64):
        raise NotImplementedError(f"\"_segment_reduce_lengths_cpu_kernel1\" not implemented for '{_kind(given)}'")
    if axis != given.dim() - 1:
        told = "lengths" if lengths is not None else "offsets"
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {told} but got {axis}.")
    starts = offsets.to(_core.int64) if lengths is None and offsets is not None else None
    sizes = starts.diff() if starts is not None else given.to(_core.int64)
    if not unsafe and sizes.numel():
        if bool((sizes < 0).any()):
            raise RuntimeError("lengths contains negative value!")
        if starts is None and bool((sizes.sum(-1) != data.shape[axis]).any()):
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
            )
    empty, how = _REDUCTIONS[reduce]
    count = sizes.shape[-1]
    ends = (sizes.cumsum(-1) if starts is None else starts[..., 1:]).contiguous()
    places = _core.arange(data.shape[axis], device=data.device).expand(*data.shape[: axis + 1]).contiguous()
    # Elements outside of all segments go to an extra one, which is dropped.
    segment = _core.searchsorted(ends, places, right=True)
    if starts is not None:
        segment = _core.where(places < starts[..., :1], count, segment)
    segment = segment.reshape(*segment.shape, *[1] * (data.dim() - axis - 1)).expand(data.shape)
    shape = [*data.shape[:axis], count + 1, *data.shape[axis + 1 :]]
    start = _core.full(shape, empty if initial is None else float(initial), dtype=data.dtype, device=data.device)
    made = start.scatter_reduce(axis, segment, data, how, include_self=True).narrow(axis, 0, count)
    if reduce != "mean":
        return made
    sizes = sizes.reshape(*sizes.shape, *[1] * (data.dim() - axis - 1))
    return made / (sizes if initial is None else sizes.clamp(min=1))


def _kind(x: Tensor) -> str:
    return str(x.type()).removeprefix("torch.").removesuffix("Tensor")
