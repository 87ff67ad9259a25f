"""Data parallelism over several processes, and over the devices of one process (one device is supported)."""

from __future__ import annotations

import typing

from .data_parallel import DataParallel, data_parallel
from .scatter_gather import gather, scatter

if typing.TYPE_CHECKING:
    from .distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "scatter"]


def __getattr__(name: str) -> typing.Any:
    if name == "DistributedDataParallel":  # It imports `torch.distributed`, which few programs need.
        from .distributed import DistributedDataParallel

        return DistributedDataParallel
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
