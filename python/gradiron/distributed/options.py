"""How collectives reduce, and the options that a `ProcessGroup`'s methods take."""

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
    """The ways to reduce."""

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
    """How a collective joins the ranks' elements: SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR."""

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
    """The name of a reduction that a caller chose."""
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
    """Options of `ProcessGroup.allreduce`."""

    reduceOp: Any = ReduceOp.SUM
    sparseIndices: Any = None


class AllreduceCoalescedOptions(AllreduceOptions):
    """Options of `ProcessGroup.allreduce_coalesced`."""


class BroadcastOptions(_Options):
    """Options of `ProcessGroup.broadcast`."""

    rootRank: int = 0
    rootTensor: int = 0


class AllgatherOptions(_Options):
    """Options of `ProcessGroup.allgather`."""


class GatherOptions(_Options):
    """Options of `ProcessGroup.gather`."""

    rootRank: int = 0


class ReduceOptions(_Options):
    """Options of `ProcessGroup.reduce`."""

    reduceOp: Any = ReduceOp.SUM
    rootRank: int = 0
    rootTensor: int = 0


class ReduceScatterOptions(_Options):
    """Options of `ProcessGroup.reduce_scatter`."""

    reduceOp: Any = ReduceOp.SUM


class ScatterOptions(_Options):
    """Options of `ProcessGroup.scatter`."""

    rootRank: int = 0


class BarrierOptions(_Options):
    """Options of `ProcessGroup.barrier`."""

    device_ids: list[int] | None = None
    device: Any = None


class AllToAllOptions(_Options):
    """Options of `ProcessGroup.alltoall`."""
