"""An older name of `distributed.tensor`."""

from ..tensor import DeviceMesh, DTensor, Partial, Placement, Replicate, Shard, distribute_module, distribute_tensor

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
]
