"""Collectives that are differentiated: gradients travel back by the opposite collective. All ranks must run backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _core
from ..._core import Tensor
from ..._creation import contiguous_format
from ...autograd.function import Function
from .. import distributed_c10d as c10d
from ..distributed_c10d import ReduceOp, group

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def _dense_copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone(memory_format=contiguous_format)


def _member(group: Any) -> Any:
    """The group, which this rank must belong to: a gradient has nowhere to come from outside of it."""
    if c10d._rank_not_in_group(group):
        raise RuntimeError("collectives with gradients must be called by members of the group only")
    return c10d._get_default_group() if group is None else group


def _root(group: Any, rank: int) -> bool:
    return c10d.get_group_rank(group, c10d.get_rank()) == c10d.get_group_rank(group, rank)


def broadcast(tensor: Tensor, src: int, group: Any = group.WORLD) -> Tensor:
    """The tensor of rank `src`; its gradient is the sum of those of all ranks."""
    return _Broadcast.apply(src, _member(group), tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = group.WORLD) -> tuple[Tensor, ...]:
    """The tensors of all ranks on rank `dst`, zeros on the others."""
    return _Gather.apply(dst, _member(group), tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = group.WORLD) -> Tensor:
    """This rank's tensor of the list of rank `src`. The other ranks' lists say the shape, and get zero gradients."""
    return _Scatter.apply(src, _member(group), *tensors)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = group.WORLD) -> Tensor:
    """The reduction of all ranks' tensors on rank `dst`; the others get their own tensor back."""
    return _Reduce.apply(dst, op, _member(group), tensor)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = group.WORLD) -> Tensor:
    """This rank's part of the reduction of all ranks' lists; it is also written to `output`."""
    return _ReduceScatter.apply(op, _member(group), output, *input_list)


def all_gather(tensor: Tensor, group: Any = group.WORLD) -> tuple[Tensor, ...]:
    """The tensors of all ranks; their gradients are summed over the ranks."""
    return _AllGather.apply(_member(group), tensor)


def _all_gather_base(output_tensor: Tensor, input_tensor: Tensor, group: Any = group.WORLD) -> Tensor:
    """The tensors of all ranks as one tensor; it is also written to `output_tensor`."""
    return _AllGatherBase.apply(output_tensor, input_tensor, _member(group))


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = group.WORLD
) -> tuple[Tensor, ...]:
    """A tensor from each rank, for one to each; they are also written to `output_tensor_list`."""
    return _AllToAll.apply(_member(group), output_tensor_list, *input_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = group.WORLD,
) -> Tensor:
    """A part of a tensor from each rank, for one to each; they are also written to `output`."""
    return _AllToAllSingle.apply(_member(group), output, output_split_sizes, input_split_sizes, input)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = group.WORLD) -> Tensor:
    """The reduction of all ranks' tensors. The gradient is the same reduction, which is right for sums and averages."""
    return _AllReduce.apply(op, _member(group), tensor)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        received = _dense_copy(tensor)
        c10d.broadcast(received, src, group=group)
        return received

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        total = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, grad)
        # In place, so that a second backward meets the collective on all ranks.
        return None, None, total if _root(ctx.group, ctx.src) else total.zero_()


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.dst, ctx.group = dst, group
        parts = [_core.zeros_like(tensor, memory_format=contiguous_format) for _ in range(c10d.get_world_size(group))]
        c10d.gather(tensor.contiguous(), parts if _root(group, dst) else None, dst, group=group)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        if any(tensor.shape != tensors[0].shape for tensor in tensors):
            raise RuntimeError("scatter: the tensors of the list must have one shape")
        received = _core.zeros_like(tensors[0], memory_format=contiguous_format)
        parts = [tensor.contiguous() for tensor in tensors] if _root(group, src) else None
        c10d.scatter(received, parts, src, group=group)
        return received

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return (None, None, *_Gather.apply(ctx.src, ctx.group, grad))


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group = dst, group
        own = _dense_copy(tensor)
        c10d.reduce(own, dst, op=op, group=group)
        return own

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grad)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, output: Tensor, *tensors: Tensor) -> Tensor:
        ctx.group = group
        ctx.mark_dirty(output)
        c10d.reduce_scatter(output, [tensor.contiguous() for tensor in tensors], op=op, group=group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return (None, None, None, *_AllGather.apply(ctx.group, grad))


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        dense = tensor.contiguous()
        parts = [_core.empty_like(dense) for _ in range(c10d.get_world_size(group))]
        c10d.all_gather(parts, dense, group=group)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        own = _core.empty_like(grads[0], memory_format=contiguous_format)
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, own, *grads)


class _AllGatherBase(Function):
    @staticmethod
    def forward(ctx: Any, output: Tensor, tensor: Tensor, group: Any) -> Tensor:
        ctx.group, ctx.shape = group, tensor.shape
        ctx.mark_dirty(output)
        c10d.all_gather_into_tensor(output, tensor.contiguous(), group=group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        own = _core.empty(ctx.shape, dtype=grad.dtype, device=grad.device)
        parts = grad.reshape(c10d.get_world_size(ctx.group), *ctx.shape).unbind()
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, own, *parts), None


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outputs: Sequence[Tensor], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.group, ctx.shapes = group, [tensor.shape for tensor in tensors]
        c10d.all_to_all(list(outputs), [tensor.contiguous() for tensor in tensors], group=group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        back = [_core.empty(shape, dtype=grads[0].dtype, device=grads[0].device) for shape in ctx.shapes]
        return (None, None, *_AllToAll.apply(ctx.group, back, *grads))


class _AllToAllSingle(Function):
    @staticmethod
    def forward(
        ctx: Any, group: Any, output: Tensor, output_sizes: list[int] | None, input_sizes: list[int] | None, tensor: Tensor
    ) -> Tensor:
        ctx.group, ctx.shape, ctx.output_sizes, ctx.input_sizes = group, tensor.shape, output_sizes, input_sizes
        ctx.mark_dirty(output)
        c10d.all_to_all_single(output, tensor.contiguous(), output_sizes, input_sizes, group=group)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        back = _core.empty(ctx.shape, dtype=grad.dtype, device=grad.device)
        return None, None, None, None, _AllToAllSingle.apply(ctx.group, back, ctx.input_sizes, ctx.output_sizes, grad)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        own = _dense_copy(tensor)
        c10d.all_reduce(own, op, group=group)
        return own

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)
