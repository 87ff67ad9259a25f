"""Collectives. Each checks its arguments before anything is sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from .. import _core
from .._core import Tensor
from ._coalescing import _coalescing, _IllegalWork
from ._groups import _check_timeout
from ._registry import _check_member, _rank_not_in_group, _resolve, get_group_rank
from .options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOp,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from .process_group import ProcessGroup


def _check_single_tensor(tensor: Any, name: str) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(tensor)} instead."
        )


def _check_tensor_list(tensors: Any, name: str) -> None:
    head = f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
    head += f"             but got {type(tensors)}"
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{head} instead.")
    if not all(isinstance(tensor, Tensor) for tensor in tensors):
        raise TypeError(f"{head} with elements of type {[type(tensor) for tensor in tensors]}.")


def _check_same_dtype(*values: Any) -> None:
    first = None
    for value in values:
        for tensor in [value] if isinstance(value, Tensor) else value:
            if first is not None and tensor.dtype != first:
                raise ValueError(f"Invalid usage of tensors with different dtypesFound {first} and  {tensor.dtype}")
            first = tensor.dtype


def _group_rank(group: ProcessGroup, world_rank: int | None, own_rank: int | None) -> int:
    """The rank in a group of a rank that was given in one of two ways."""
    if own_rank is not None:
        if world_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        return own_rank
    if world_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return get_group_rank(group, world_rank)


def _finish(work: Any, async_op: bool) -> Any:
    if async_op:
        return work
    if work is not None:
        work.wait()
    return None


def supports_complex(reduceOp: Any) -> bool:
    """Return whether a reduction supports complex tensors.

    Args:
        reduceOp: reduction.

    Examples:
        >>> torch.distributed.supports_complex(torch.distributed.ReduceOp.SUM)
        True
    """
    return reduceOp not in (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def _as_real(tensor: Tensor, op: Any, name: str) -> Tensor:
    """Complex tensors travel as pairs of real numbers."""
    if not tensor.is_complex():
        return tensor
    if not supports_complex(op):
        raise ValueError(f"{name} does not support {op} on complex tensors")
    return tensor if tensor.is_conj() else _core.view_as_real(tensor)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False) -> Any:
    """Reduce a tensor over all ranks, in place; every rank gets the result.

    Args:
        tensor: input and output.
        op: reduction, such as `ReduceOp.SUM`, `AVG`, `MIN` or `MAX`. Default: `ReduceOp.SUM`
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> x = torch.ones(2)
        >>> torch.distributed.all_reduce(x)
        >>> x
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    _check_single_tensor(tensor, "tensor")
    if not _check_member("all_reduce", group):
        return None
    tensor = _as_real(tensor, op, "all_reduce")
    opts = AllreduceOptions(reduceOp=op, asyncOp=async_op)
    pg = _resolve(group)
    if pg in _coalescing:
        _coalescing[pg].append(("all_reduce", tensor, None, op))
        return _IllegalWork() if async_op else None
    return _finish(pg.allreduce([tensor], opts), async_op)


def all_reduce_coalesced(
    tensors: list[Tensor], op: Any = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Reduce several tensors of one dtype over all ranks, in place, as one message.

    Args:
        tensors: inputs and outputs.
        op: reduction, such as `ReduceOp.SUM`, `AVG`, `MIN` or `MAX`. Default: `ReduceOp.SUM`
        group: process group; the default group if `None`.
        async_op: return a future at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.all_reduce_coalesced([torch.ones(2), torch.ones(3)])
        >>> torch.distributed.destroy_process_group()
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    _check_tensor_list(tensors, "tensor")
    tensors = [_as_real(t, op, "all_reduce") for t in tensors]
    _check_same_dtype(tensors)
    if not _check_member("all_reduce_coalesced", group):
        return None
    opts = AllreduceCoalescedOptions(reduceOp=op, asyncOp=async_op)
    work = _resolve(group).allreduce_coalesced(tensors, opts)
    return work.get_future() if async_op else _finish(work, False)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Send a tensor from one rank to all ranks, in place.

    Args:
        tensor: data on the source rank, output on the others.
        src: global rank of the source.
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`
        group_src: rank of the source in the group, instead of `src`.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.broadcast(torch.ones(2), src=0)
        >>> torch.distributed.destroy_process_group()
    """
    pg: Any = _resolve(group) if not _rank_not_in_group(group) else group
    _check_single_tensor(tensor, "tensor")
    if not _check_member("broadcast", group):
        return None
    opts = BroadcastOptions(rootRank=_group_rank(pg, src, group_src), rootTensor=0, asyncOp=async_op)
    return _finish(pg.broadcast([tensor], opts), async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Reduce a tensor over all ranks; only one rank gets the result, in place.

    Args:
        tensor: input, and output on the destination rank.
        dst: global rank of the destination.
        op: reduction, such as `ReduceOp.SUM`, `AVG`, `MIN` or `MAX`. Default: `ReduceOp.SUM`
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`
        group_dst: rank of the destination in the group, instead of `dst`.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.reduce(torch.ones(2), dst=0)
        >>> torch.distributed.destroy_process_group()
    """
    pg: Any = _resolve(group) if not _rank_not_in_group(group) else group
    _check_single_tensor(tensor, "tensor")
    if not _check_member("reduce", group):
        return None
    tensor = _as_real(tensor, op, "reduce")
    opts = ReduceOptions(reduceOp=op, rootRank=_group_rank(pg, dst, group_dst), asyncOp=async_op)
    return _finish(pg.reduce([tensor], opts), async_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False) -> Any:
    """Gather the tensors of all ranks into a list, on all ranks.

    Args:
        tensor_list: outputs, one per rank.
        tensor: input of this rank.
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> outputs = [torch.zeros(2)]
        >>> torch.distributed.all_gather(outputs, torch.ones(2))
        >>> outputs
        [tensor([1., 1.])]
        >>> torch.distributed.destroy_process_group()
    """
    _check_tensor_list(tensor_list, "tensor_list")
    _check_single_tensor(tensor, "tensor")
    _check_same_dtype(tensor_list, tensor)
    if not _check_member("all_gather", group):
        return None
    return _finish(_resolve(group).allgather([tensor_list], [tensor], AllgatherOptions(asyncOp=async_op)), async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Gather the tensors of all ranks into one tensor, on all ranks.

    Args:
        output_tensor: output with the inputs of all ranks, concatenated or stacked along the first dimension.
        input_tensor: input of this rank.
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> output = torch.zeros(2)
        >>> torch.distributed.all_gather_into_tensor(output, torch.ones(2))
        >>> output
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    _check_single_tensor(input_tensor, "input_tensor")
    _check_single_tensor(output_tensor, "output_tensor")
    _check_same_dtype(input_tensor, output_tensor)
    if not _check_member("all_gather_into_tensor", group):
        return None
    pg = _resolve(group)
    if pg in _coalescing:
        _coalescing[pg].append(("all_gather_into_tensor", input_tensor, output_tensor, None))
        return _IllegalWork() if async_op else None
    return _finish(pg._allgather_base(output_tensor, input_tensor, AllgatherOptions(asyncOp=async_op)), async_op)


all_gather_single = all_gather_into_tensor
_all_gather_base = all_gather_into_tensor


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Gather several tensors from each rank, on all ranks.

    Args:
        output_tensor_lists: outputs, a list of tensors for each rank.
        input_tensor_list: inputs of this rank.
        group: process group; the default group if `None`.
        async_op: return a future at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.all_gather_coalesced([[torch.zeros(2)]], [torch.ones(2)])
        >>> torch.distributed.destroy_process_group()
    """
    if not _check_member("all_gather_coalesced", group):
        return None
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _check_same_dtype(input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for tensors in output_tensor_lists:
        _check_tensor_list(tensors, "output_tensor_lists")
        _check_same_dtype(tensors)
    work = _resolve(group).allgather_coalesced(output_tensor_lists, input_tensor_list, AllgatherOptions(asyncOp=async_op))
    return work.get_future() if async_op else _finish(work, False)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Any:
    """Gather the tensors of all ranks into a list, on one rank.

    Args:
        tensor: input of this rank.
        gather_list: outputs, one per rank, on the destination rank only.
        dst: global rank of the destination; 0 if `None`.
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`
        group_dst: rank of the destination in the group, instead of `dst`.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> outputs = [torch.zeros(2)]
        >>> torch.distributed.gather(torch.ones(2), outputs)
        >>> outputs
        [tensor([1., 1.])]
        >>> torch.distributed.destroy_process_group()
    """
    _check_single_tensor(tensor, "tensor")
    if gather_list:
        _check_tensor_list(gather_list, "gather_list")
    else:
        gather_list = []
    _check_same_dtype(tensor, gather_list)
    if not _check_member("gather", group):
        return None
    pg = _resolve(group)
    if dst is None and group_dst is None:
        dst = 0
    root = _group_rank(pg, dst, group_dst)
    if pg.rank() == root:
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    outputs = [gather_list] if pg.rank() == root else []
    return _finish(pg.gather(outputs, [tensor], GatherOptions(rootRank=root, asyncOp=async_op)), async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Any:
    """Distribute the tensors of a list from one rank, one to each rank.

    Args:
        tensor: output of this rank.
        scatter_list: inputs, one per rank, on the source rank only.
        src: global rank of the source; 0 if `None`.
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`
        group_src: rank of the source in the group, instead of `src`.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> output = torch.zeros(2)
        >>> torch.distributed.scatter(output, [torch.ones(2)])
        >>> output
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    _check_single_tensor(tensor, "tensor")
    if scatter_list:
        _check_tensor_list(scatter_list, "scatter_list")
    else:
        scatter_list = []
    _check_same_dtype(tensor, scatter_list)
    if not _check_member("scatter", group):
        return None
    pg = _resolve(group)
    if src is None and group_src is None:
        src = 0
    root = _group_rank(pg, src, group_src)
    if pg.rank() == root:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    inputs = [scatter_list] if pg.rank() == root else []
    return _finish(pg.scatter([tensor], inputs, ScatterOptions(rootRank=root, asyncOp=async_op)), async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Reduce a list of tensors over all ranks; each rank gets one of the results.

    Args:
        output: output of this rank.
        input_list: inputs, one for each rank.
        op: reduction, such as `ReduceOp.SUM`, `AVG`, `MIN` or `MAX`. Default: `ReduceOp.SUM`
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> output = torch.zeros(2)
        >>> torch.distributed.reduce_scatter(output, [torch.ones(2)])
        >>> output
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    _check_single_tensor(output, "output")
    _check_tensor_list(input_list, "input_list")
    _check_same_dtype(output, input_list)
    if not _check_member("reduce_scatter", group):
        return None
    opts = ReduceScatterOptions(reduceOp=op, asyncOp=async_op)
    return _finish(_resolve(group).reduce_scatter([output], [input_list], opts), async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Any:
    """Reduce a tensor over all ranks; each rank gets its part of the result.

    Args:
        output: output of this rank.
        input: input, the parts for all ranks along the first dimension.
        op: reduction, such as `ReduceOp.SUM`, `AVG`, `MIN` or `MAX`. Default: `ReduceOp.SUM`
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> output = torch.zeros(2)
        >>> torch.distributed.reduce_scatter_tensor(output, torch.ones(2))
        >>> output
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    if not _check_member("reduce_scatter_tensor", group):
        return None
    pg = _resolve(group)
    if pg in _coalescing:
        _coalescing[pg].append(("reduce_scatter_tensor", input, output, op))
        return _IllegalWork() if async_op else None
    opts = ReduceScatterOptions(reduceOp=op, asyncOp=async_op)
    return _finish(pg._reduce_scatter_base(output, input, opts), async_op)


reduce_scatter_single = reduce_scatter_tensor
_reduce_scatter_base = reduce_scatter_tensor


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Send a part of a tensor to each rank, and receive a part from each.

    Args:
        output: output of this rank.
        input: input of this rank.
        output_split_sizes: sizes of the parts that are received, along the first dimension; equal if `None`.
        input_split_sizes: sizes of the parts that are sent, along the first dimension; equal if `None`.
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> output = torch.zeros(2)
        >>> torch.distributed.all_to_all_single(output, torch.ones(2))
        >>> output
        tensor([1., 1.])
        >>> torch.distributed.destroy_process_group()
    """
    if not _check_member("all_to_all_single", group):
        return None
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    _check_same_dtype(output, input)
    opts = AllToAllOptions(asyncOp=async_op)
    work = _resolve(group).alltoall_base(output, input, output_split_sizes or [], input_split_sizes or [], opts)
    return _finish(work, async_op)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Any:
    """Send a tensor to each rank, and receive one from each.

    Args:
        output_tensor_list: outputs, one per rank.
        input_tensor_list: inputs, one per rank.
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> outputs = [torch.zeros(2)]
        >>> torch.distributed.all_to_all(outputs, [torch.ones(2)])
        >>> outputs
        [tensor([1., 1.])]
        >>> torch.distributed.destroy_process_group()
    """
    if not _check_member("all_to_all", group):
        return None
    _check_tensor_list(output_tensor_list, "output_tensor_list")
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _check_same_dtype(output_tensor_list, input_tensor_list)
    work = _resolve(group).alltoall(output_tensor_list, input_tensor_list, AllToAllOptions(asyncOp=async_op))
    return _finish(work, async_op)


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: list[int] | None = None,
    timeout: timedelta | None = None,
) -> Any:
    """Wait until all ranks of a group have called this.

    Args:
        group: process group; the default group if `None`.
        async_op: return a `Work` at once instead of waiting. Default: `False`
        device_ids: accepted for compatibility.
        timeout: how long to wait; the group's timeout if `None`.

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.barrier()
        >>> torch.distributed.destroy_process_group()
    """
    if not _check_member("barrier", group):
        return None
    pg = _resolve(group)
    if device_ids is not None and not isinstance(device_ids, list):
        raise TypeError("Invalid function argument: device_ids type should be List[int]")
    opts = BarrierOptions(asyncOp=async_op)
    if timeout is not None:
        opts.timeout = timeout
    return _finish(pg.barrier(opts), async_op)


def monitored_barrier(
    group: ProcessGroup | None = None, timeout: timedelta | float | None = None, wait_all_ranks: bool = False
) -> None:
    """Wait until all ranks of a group have called this, and raise an error that names those that do not in time.

    Args:
        group: process group; the default group if `None`.
        timeout: how long to wait; the group's timeout if `None`.
        wait_all_ranks: name all missing ranks, not only the first. Default: `False`

    Examples:
        >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        >>> torch.distributed.monitored_barrier()
        >>> torch.distributed.destroy_process_group()
    """
    if not _check_member("monitored_barrier", group):
        return
    pg = _resolve(group)
    if timeout is None:
        timeout = pg._timeout
    elif isinstance(timeout, (int, float)):
        timeout = timedelta(seconds=timeout)
    _check_timeout(timeout)
    pg.monitored_barrier(timeout, wait_all_ranks)
