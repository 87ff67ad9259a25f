"""What `DistributedDataParallel` begins with: parameters are compared over the ranks, and rank 0's are sent to all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import tensor as make_tensor
from ..autograd.grad_mode import no_grad
from .distributed_c10d import _broadcast_coalesced
from .options import AllgatherOptions, AllreduceOptions, BroadcastOptions, ReduceOp
from .process_group import ProcessGroup

__all__: list[str] = []


def _dtype_numbers() -> dict[Any, int]:
    names = sorted(name for name in dir(_core) if isinstance(getattr(_core, name), _core.dtype))
    return {getattr(_core, name): number for number, name in enumerate(names)}


def _verify_param_shape_across_processes(
    process_group: Any, tensors: Sequence[Tensor], logger: Any = None, names: Sequence[str] | None = None
) -> None:
    """Compares the sizes, strides and dtypes of parameters with those of rank 0; all ranks raise where one of them differs."""
    size = process_group.size()
    if size == 1:
        return
    counts = [_core.zeros(1, dtype=_core.int64) for _ in range(size)]
    process_group.allgather([counts], [make_tensor([len(tensors)])], AllgatherOptions()).wait()
    for other, count in enumerate(counts):
        if count.item() != counts[0].item():
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank {other} has {count.item()} params, while rank 0 has "
                f"inconsistent {counts[0].item()} params."
            )
    dims = make_tensor([tensor.dim() for tensor in tensors])
    _compare(process_group, dims, list(range(len(tensors))), tensors, names)
    numbers = _dtype_numbers()
    facts: list[int] = []
    owners: list[int] = []
    for index, tensor in enumerate(tensors):
        own = [numbers.get(tensor.dtype, -1), *tensor.shape, *tensor.stride()]
        facts += own
        owners += [index] * len(own)
    _compare(process_group, make_tensor(facts), owners, tensors, names)


def _compare(group: Any, own: Tensor, owners: list[int], tensors: Sequence[Tensor], names: Sequence[str] | None) -> None:
    """Raises on all ranks where the numbers of one differ from those of rank 0, naming the parameter that `owners` says."""
    theirs = own.clone()
    group.broadcast([theirs], BroadcastOptions(rootRank=0)).wait()
    differ = (own != theirs).nonzero().reshape(-1).tolist()
    worst = make_tensor([len(tensors) - owners[differ[0]] if differ else 0, group.rank() if differ else -1])
    group.allreduce([worst], AllreduceOptions(reduceOp=ReduceOp.MAX)).wait()
    first, other = worst.tolist()
    if other < 0:
        return
    index = owners[differ[0]] if differ else len(tensors) - first
    tensor, rank = tensors[index], group.rank() if differ else other
    name = f" ({names[index]})" if names else ""
    if differ:
        raise RuntimeError(
            f"[{rank}]: params[{index}]{name} in this process with sizes {list(tensor.shape)} appears not to match sizes of "
            f"the same param in process 0. Sizes, strides and dtypes ({tensor.dtype} here) must be the same on all ranks."
        )
    raise RuntimeError(
        f"[{group.rank()}]: params[{index}]{name} with sizes {list(tensor.shape)} does not match that of process {rank}. "
        f"Sizes, strides and dtypes ({tensor.dtype} here) must be the same on all ranks."
    )


def _sync_module_states(
    module: Any,
    process_group: ProcessGroup,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore: Iterable[str],
    broadcast_buffers: bool = True,
) -> None:
    """Sends the parameters and buffers of rank `src` of the group to all."""
    ignored = set(params_and_buffers_to_ignore)
    states = [param.detach() for name, param in module.named_parameters() if name not in ignored]
    if broadcast_buffers:
        states += [buffer.detach() for name, buffer in module.named_buffers() if name not in ignored]
    _sync_params_and_buffers(process_group, states, broadcast_bucket_size, src)


def _sync_params_and_buffers(
    process_group: ProcessGroup, module_states: list[Tensor], broadcast_bucket_size: int, src: int
) -> None:
    """Sends tensors of rank `src` of the group to all."""
    if module_states and process_group.size() > 1:
        with no_grad():
            _broadcast_coalesced(process_group, module_states, broadcast_bucket_size, src)
