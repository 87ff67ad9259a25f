"""Optimisers whose states lie on several machines: names that programs ask `isinstance` of. No optimiser is one."""

from __future__ import annotations

from typing import Any

from ..optim import Optimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]


class _Refused(Optimizer):
    def __init__(self, *args: Any, **options: Any) -> None:
        raise NotImplementedError(f"torch.distributed.optim.{type(self).__name__}: gradiron trains in one process")


class ZeroRedundancyOptimizer(_Refused):
    """Would spread its states."""


class DistributedOptimizer(_Refused):
    """Would step parameters on other machines."""


class PostLocalSGDOptimizer(_Refused):
    """Would average parameters between machines."""
