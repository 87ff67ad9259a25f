"""Collectives that return new tensors.

PyTorch returns them before they are done; here they are done, and `wait_tensor` waits for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from . import distributed_c10d as c10d
from .device_mesh import DeviceMesh
from .distributed_c10d import ReduceOp
from .nn import functional

__all__ = [
    "AsyncCollectiveTensor",
    "all_gather_into_tensor_coalesced",
    "all_gather_single",
    "all_gather_single_autograd",
    "all_gather_tensor",
    "all_gather_tensor_autograd",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all_single",
    "all_to_all_single_autograd",
    "broadcast",
    "permute_tensor",
    "reduce_scatter_single",
    "reduce_scatter_single_autograd",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd",
    "reduce_scatter_tensor_coalesced",
    "wait_tensor",
    "wait_tensors",
]


class AsyncCollectiveTensor:
    """Would be a result that is not there yet: no tensor is one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        raise NotImplementedError(
            "AsyncCollectiveTensor: the results of gradiron's functional collectives are there when they return"
        )


_OPERATIONS = {
    "sum": "SUM",
    "avg": "AVG",
    "product": "PRODUCT",
    "min": "MIN",
    "max": "MAX",
    "band": "BAND",
    "bor": "BOR",
    "bxor": "BXOR",
}


def _operation(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    if given.lower() not in _OPERATIONS:
        raise RuntimeError(f"Unrecognized reduce_op: {given}")
    return getattr(ReduceOp, _OPERATIONS[given.lower()])


def _group_of(given: Any) -> Any:
    """The group that is meant by a group, its name, its ranks, a mesh of one dimension, or a mesh and a dimension."""
    if isinstance(given, DeviceMesh):
        if given.ndim != 1:
            raise AssertionError("Only 1D mesh is supported, pass in (DeviceMesh, int) together if mesh > 1D")
        return given.get_group()
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], DeviceMesh):
        return given[0].get_group(given[1])
    if isinstance(given, str):
        return c10d._resolve_process_group(given)
    if isinstance(given, list):
        for group, ranks in c10d._world.pg_group_ranks.items():
            if list(ranks) == given:
                return group
        raise ValueError(f"there is no group of the ranks {given}: make one with torch.distributed.new_group")
    if not isinstance(given, c10d.ProcessGroup):
        raise ValueError(f"Unsupported group type: {type(given)}, {given}")
    return given


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor itself."""
    return tensor


def wait_tensors(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors themselves."""
    return list(tensors)


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of rank `src` of the world."""
    return functional.broadcast(self, src, _group_of(group))


def all_reduce(self: Tensor, reduceOp: Any, group: Any, tag: str = "") -> Tensor:
    """The reduction of all ranks' tensors."""
    return functional.all_reduce(self, _operation(reduceOp), _group_of(group))


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """The tensors of all ranks, joined along a dimension."""
    return _core.cat(list(functional.all_gather(self, _group_of(group))), gather_dim)


def reduce_scatter_tensor(self: Tensor, reduceOp: Any, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """This rank's part, along a dimension, of the reduction of all ranks' tensors."""
    pg, op = _group_of(group), _operation(reduceOp)
    size = pg.size()
    if self.shape[scatter_dim] % size != 0:
        raise AssertionError(f"input dimension 0 ({self.shape[0]} must be a multiple of group_size {size})")
    parts = [part.contiguous() for part in self.chunk(size, scatter_dim)]
    averages = op == ReduceOp.AVG
    made = functional.reduce_scatter(_core.empty_like(parts[0]), parts, ReduceOp.SUM if averages else op, pg)
    return made / size if averages else made


def all_to_all_single(
    self: Tensor, output_split_sizes: list[int] | None, input_split_sizes: list[int] | None, group: Any, tag: str = ""
) -> Tensor:
    """A part of a tensor from each rank, for one to each."""
    shape = list(self.shape)
    if output_split_sizes is not None:
        shape[0] = sum(output_split_sizes)
    output = _core.empty(shape, dtype=self.dtype, device=self.device)
    return functional.all_to_all_single(output, self, output_split_sizes, input_split_sizes, _group_of(group))


def permute_tensor(self: Tensor, src_dst: list[int], group: Any, tag: str = "") -> Tensor:
    """Sends the tensor to rank `src_dst[rank]` of the group; each rank receives one."""
    pg = _group_of(group)
    if sorted(src_dst) != list(range(pg.size())):
        raise AssertionError(f"src_dst must be a permutation of the {pg.size()} ranks, but got {src_dst}")
    count = self.numel()
    send, receive = [0] * pg.size(), [0] * pg.size()
    send[src_dst[pg.rank()]] = receive[src_dst.index(pg.rank())] = count
    return all_to_all_single(self.reshape(-1), receive, send, pg).reshape(self.shape)


def all_reduce_coalesced(self: list[Tensor], reduceOp: Any, group: Any, tag: str = "") -> list[Tensor]:
    """`all_reduce` of each tensor."""
    return [all_reduce(tensor, reduceOp, group) for tensor in self]


def all_gather_into_tensor_coalesced(self: list[Tensor], group: Any, tag: str = "") -> list[Tensor]:
    """`all_gather_tensor` of each tensor along the first dimension."""
    return [all_gather_tensor(tensor, 0, group) for tensor in self]


def reduce_scatter_tensor_coalesced(
    inputs: list[Tensor], reduceOp: Any, scatter_dim: list[int], group: Any, tag: str = ""
) -> list[Tensor]:
    """`reduce_scatter_tensor` of each tensor."""
    return [reduce_scatter_tensor(tensor, reduceOp, dim, group) for tensor, dim in zip(inputs, scatter_dim, strict=True)]


# All of them are differentiated here.
all_gather_single = all_gather_tensor
all_gather_tensor_autograd = all_gather_single_autograd = all_gather_tensor
reduce_scatter_single = reduce_scatter_tensor
reduce_scatter_tensor_autograd = reduce_scatter_single_autograd = reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single
