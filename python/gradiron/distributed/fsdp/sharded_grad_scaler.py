"""`GradScaler` for FSDP."""

from __future__ import annotations

from ...amp.grad_scaler import GradScaler
from .._refused import Refused

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(Refused, GradScaler):
    """Would be one."""

    _full_name = "fsdp.sharded_grad_scaler.ShardedGradScaler"
    _instead = (
        "gradients are whole on each rank. Use torch.amp.GradScaler, whose checks agree on all ranks under "
        "DistributedDataParallel"
    )
