"""Compares what ranks call, before they call it (TORCH_DISTRIBUTED_DEBUG=DETAIL)."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

__all__ = ["compare_calls"]

_OP_TYPES = {
    "all_reduce": "ALLREDUCE",
    "allreduce_coalesced": "ALLREDUCE_COALESCED",
    "broadcast": "BROADCAST",
    "reduce": "REDUCE",
    "all_gather": "ALLGATHER",
    "all_gather_into_tensor": "_ALLGATHER_BASE",
    "gather": "GATHER",
    "scatter": "SCATTER",
    "reduce_scatter": "REDUCE_SCATTER",
    "reduce_scatter_tensor": "_REDUCE_SCATTER_BASE",
    "all_to_all": "ALLTOALL",
    "all_to_all_single": "ALLTOALL_BASE",
    "barrier": "BARRIER",
}


class _Fingerprint:
    """What must be the same on all ranks: operation, number, shapes and dtypes."""

    def __init__(self, name: str, number: int, tensors: Sequence[Any]) -> None:
        self.facts = (
            number,
            _OP_TYPES.get(name, name.upper()),
            tuple((tuple(t.shape), str(t.dtype), t.device.type) for t in tensors),
        )

    def __str__(self) -> str:
        number, kind, tensors = self.facts
        shown = f"SequenceNumber={number}, OpType={kind}"
        if tensors:
            shape, dtype, device = tensors[0]
            shown += f", TensorShape={list(shape)}, TensorDtypes={dtype.removeprefix('torch.')}, TensorDeviceTypes={device}"
        return f"CollectiveFingerPrint({shown})"


def compare_calls(group: Any, name: str, number: int, tensors: Sequence[Any]) -> None:
    """Raises on every rank where ranks call different collectives, or with other shapes or dtypes."""
    own = _Fingerprint(name, number, tensors)
    group.monitored_barrier(group._timeout)
    for rank, data in enumerate(group._gather_bytes(pickle.dumps(own.facts))):
        other = _Fingerprint(name, number, [])
        other.facts = pickle.loads(data)
        if other.facts != own.facts:
            differs = _differences(own.facts, other.facts)
            raise RuntimeError(
                f"Detected mismatch between collectives on ranks. Rank {group.rank()} is running collective: {own}, but Rank "
                f"{rank} is running collective: {other}.Collectives differ in the following aspects: \t{differs}"
            )


def _differences(own: Any, other: Any) -> str:
    said = []
    if own[0] != other[0]:
        said.append(f"Sequence number: {own[0]}vs {other[0]}")
    if own[1] != other[1]:
        said.append(f"Op type: {own[1]}vs {other[1]}")
    for at, what in enumerate(("Tensor Tensor shapes", "Tensor Tensor dtypes", "Tensor Tensor devices")):
        mine, theirs = ([tensor[at] for tensor in facts[2]] for facts in (own, other))
        if mine != theirs:
            said.append(f"{what}: {mine}vs {theirs}")
    return "  ".join(said)
