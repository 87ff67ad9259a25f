"""Tensors that lie on several ranks in parts: names that programs ask `isinstance` of. No tensor is one."""

from __future__ import annotations

from .._refused import _SHARDED, Refused, refused
from ..device_mesh import DeviceMesh, init_device_mesh
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "init_device_mesh",
    "linspace",
    "logspace",
    "ones",
    "rand",
    "randn",
    "zeros",
]


class DTensor(Refused):
    """Would be one."""

    _full_name = "tensor.DTensor"

    from_local = staticmethod(refused("tensor.DTensor.from_local", _SHARDED))


distribute_module, distribute_tensor = (
    refused(f"tensor.{name}", _SHARDED) for name in ("distribute_module", "distribute_tensor")
)
empty, full, linspace, logspace, ones, rand, randn, zeros = (
    refused(f"tensor.{name}", _SHARDED) for name in "empty full linspace logspace ones rand randn zeros".split()
)
