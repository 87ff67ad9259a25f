"""Reductions, and the options of the methods of `ProcessGroup`."""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import Any

from .constants import default_pg_timeout

__all__ = [
    "AllToAllOptions",
    "AllgatherOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "BarrierOptions",
    "BroadcastOptions",
    "GatherOptions",
    "ReduceOp",
    "ReduceOptions",
    "ReduceScatterOptions",
    "ScatterOptions",
]


class RedOpType(enum.Enum):
    """The reductions."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __int__(self) -> int:
        return int(self.value)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Operation):
            other = other.op
        return self is other

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return getattr, (ReduceOp, self.name)


class _ReduceOpMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (RedOpType, _Operation))


class _Operation:
    """A `ReduceOp` made by a call."""

    op: RedOpType

    def __init__(self, op: RedOpType | _Operation) -> None:
        if isinstance(op, _Operation):
            op = op.op
        if not isinstance(op, RedOpType):
            raise TypeError(f"ReduceOp takes one of ReduceOp.SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR and BXOR, not {op!r}")
        self.op = op

    def __eq__(self, other: object) -> bool:
        return self.op == other

    def __hash__(self) -> int:
        return hash(self.op)

    def __reduce__(self) -> Any:
        return ReduceOp, (self.op,)


class ReduceOp(_Operation, metaclass=_ReduceOpMeta):
    """Reduction of a collective: `SUM`, `AVG`, `PRODUCT`, `MIN`, `MAX`, `BAND`, `BOR` or `BXOR`.

    Args:
        op: one of these.

    Examples:
        >>> torch.distributed.ReduceOp(torch.distributed.ReduceOp.MAX) == torch.distributed.ReduceOp.MAX
        True
    """

    RedOpType = RedOpType
    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM


def reduction_name(op: Any) -> str:
    """Return the name of a reduction."""
    if isinstance(op, _Operation):
        op = op.op
    if not isinstance(op, RedOpType):
        raise TypeError(f"incompatible function arguments: expected a torch.distributed.ReduceOp, but got {op!r}")
    if op is RedOpType.PREMUL_SUM:
        raise RuntimeError("Cannot use ReduceOp.PREMUL_SUM with this backend")
    return op.name


class _Options:
    timeout: timedelta = default_pg_timeout
    asyncOp: bool = True

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self, name, value)


class AllreduceOptions(_Options):
    """Options of `ProcessGroup.allreduce`.

    Args:
        values: `reduceOp`, `timeout` and `asyncOp`.

    Examples:
        >>> torch.distributed.AllreduceOptions(reduceOp=torch.distributed.ReduceOp.MAX).reduceOp.name
        'MAX'
    """

    reduceOp: Any = ReduceOp.SUM
    sparseIndices: Any = None


class AllreduceCoalescedOptions(AllreduceOptions):
    """Options of `ProcessGroup.allreduce_coalesced`.

    Args:
        values: `reduceOp`, `timeout` and `asyncOp`.

    Examples:
        >>> torch.distributed.AllreduceCoalescedOptions().reduceOp.name
        'SUM'
    """


class BroadcastOptions(_Options):
    """Options of `ProcessGroup.broadcast`.

    Args:
        values: `rootRank`, `rootTensor`, `timeout` and `asyncOp`.

    Examples:
        >>> torch.distributed.BroadcastOptions(rootRank=1).rootRank
        1
    """

    rootRank: int = 0
    rootTensor: int = 0


class AllgatherOptions(_Options):
    """Options of `ProcessGroup.allgather`.

    Args:
        values: `timeout` and `asyncOp`.

    Examples:
        >>> torch.distributed.AllgatherOptions(asyncOp=False).asyncOp
        False
    """


class GatherOptions(_Options):
    """Options of `ProcessGroup.gather`.

    Args:
        values: `rootRank`, `timeout` and `asyncOp`.

    Examples:
        >>> torch.distributed.GatherOptions(rootRank=1).rootRank
        1
    """

    rootRank: int = 0


class ReduceOptions(_Options):
    """Options of `ProcessGroup.reduce`.

    Args:
        values: `reduceOp`, `rootRank`, `rootTensor`, `timeout` and `asyncOp`.

    Examples:
        >>> torch.distributed.ReduceOptions(rootRank=1).rootRank
        1
    """

    reduceOp: Any = ReduceOp.SUM
    rootRank: int = 0
    rootTensor: int = 0


class ReduceScatterOptions(_Options):
    """Options of `ProcessGroup.reduce_scatter`.

    Args:
        values: `reduceOp`, `timeout` and `asyncOp`.

    Examples:
        >>> torch.distributed.ReduceScatterOptions().reduceOp.name
        'SUM'
    """

    reduceOp: Any = ReduceOp.SUM


class ScatterOptions(_Options):
    """Options of `ProcessGroup.scatter`.

    Args:
        values: `rootRank`, `timeout` and `asyncOp`.

    Examples:
        >>> torch.distributed.ScatterOptions(rootRank=1).rootRank
        1
    """

    rootRank: int = 0


class BarrierOptions(_Options):
    """Options of `ProcessGroup.barrier`.

    Args:
        values: `device_ids`, `device`, `timeout` and `asyncOp`.

    Examples:
        >>> torch.distributed.BarrierOptions().device_ids is None
        True
    """

    device_ids: list[int] | None = None
    device: Any = None


class AllToAllOptions(_Options):
    """Options of `ProcessGroup.alltoall`.

    Args:
        values: `timeout` and `asyncOp`.

    Examples:
        >>> torch.distributed.AllToAllOptions(asyncOp=False).asyncOp
        False
    """
