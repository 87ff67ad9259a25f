"""FSDP module by module: names that programs ask `isinstance` of, and options that they make before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._refused import _SHARDED, Refused, refused

__all__ = [
    "CPUOffloadPolicy",
    "DataParallelMeshDims",
    "FSDPModule",
    "GradientReductionHandle",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
    "share_comm_ctx",
]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of parameters, reductions and outputs."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True
    param_dtype_override_fn: Callable[[Any], Any] | None = None


@dataclass
class OffloadPolicy:
    """Parameters stay on their device."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters would lie in host memory."""

    pin_memory: bool = True


@dataclass(frozen=True)
class DataParallelMeshDims:
    """The dimensions of a mesh that shard parameters, and those that replicate them."""

    shard: str | tuple[str, ...] | None = None
    replicate: str | tuple[str, ...] | None = None


class FSDPModule(Refused):
    """Would be a module whose parameters are in parts."""

    _full_name = "fsdp.FSDPModule"


class UnshardHandle(Refused):
    """Would be parameters on their way."""

    _full_name = "fsdp.UnshardHandle"


class GradientReductionHandle(Refused):
    """Would be gradients on their way."""

    _full_name = "fsdp.GradientReductionHandle"


fully_shard, register_fsdp_forward_method, share_comm_ctx = (
    refused(f"fsdp.{name}", _SHARDED) for name in ("fully_shard", "register_fsdp_forward_method", "share_comm_ctx")
)
