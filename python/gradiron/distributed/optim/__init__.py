"""Optimizers for several ranks."""

from __future__ import annotations

from typing import Any

from .._refused import _RPC, Refused
from ..algorithms.join import Join, Joinable, JoinHook
from .post_localSGD_optimizer import PostLocalSGDOptimizer
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["DistributedOptimizer", "Join", "JoinHook", "Joinable", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]


class DistributedOptimizer(Refused):
    """Would step the parameters of other processes, which are reached by remote calls."""

    _full_name, _instead = "optim.DistributedOptimizer", _RPC

    def step(self, context_id: int) -> Any:
        """Would step them."""
        raise NotImplementedError
