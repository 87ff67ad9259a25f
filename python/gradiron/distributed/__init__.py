"""Distributed training with several processes, on one or several machines, by MPI.

Start a program with `gradiron-run --nproc-per-node 2 train.py`, or by an MPI launcher; see docs/distributed.md.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from . import engine as _engine
from .debug import DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env
from .distributed_c10d import *  # noqa: F403
from .distributed_c10d import __all__ as _functions
from .distributed_c10d import (
    _all_gather_base as _all_gather_base,
)
from .distributed_c10d import (
    _broadcast_coalesced as _broadcast_coalesced,
)
from .distributed_c10d import (
    _coalescing_manager as _coalescing_manager,
)
from .distributed_c10d import (
    _get_process_group_name as _get_process_group_name,
)
from .distributed_c10d import (
    _rank_not_in_group as _rank_not_in_group,
)
from .distributed_c10d import (
    _reduce_scatter_base as _reduce_scatter_base,
)
from .distributed_c10d import (
    is_available as is_available,
)
from .distributed_c10d import (
    set_timeout as set_timeout,
)
from .objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from .process_group import EngineProcessGroup as ProcessGroupGloo
from .process_group import EngineProcessGroup as ProcessGroupMPI
from .store import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError

__all__ = [
    "DebugLevel",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "ProcessGroupGloo",
    "ProcessGroupMPI",
    "QueueEmptyError",
    "all_gather_object",
    "broadcast_object_list",
    "describe_engine",
    "gather_object",
    "get_debug_level",
    "is_available",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
    "set_debug_level",
    "set_debug_level_from_env",
    "set_timeout",
]
__all__ += _functions

# Submodules that are imported on first use.
_PARTS = frozenset(
    "algorithms checkpoint device_mesh distributed_c10d elastic fsdp launcher nn optim rpc run tensor _tensor utils".split()
)
_IN_PARTS = {
    "DeviceMesh": "device_mesh",
    "init_device_mesh": "device_mesh",
    "GradBucket": "_grad_bucket",
    "BuiltinCommHookType": "_grad_bucket",
}


def describe_engine() -> str:
    """Describe what runs the collectives: the MPI library and how it was started.

    Examples:
        >>> isinstance(torch.distributed.describe_engine(), str)
        True
    """
    return _engine.describe()


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return importlib.import_module(f".{name}", __package__)
    if name in _IN_PARTS:
        return getattr(importlib.import_module(f".{_IN_PARTS[name]}", __package__), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: float = 3600) -> None:
    """Start the debugger on one rank, while the others wait."""
    import pdb

    if get_rank() == rank:  # noqa: F405
        pdb.Pdb(skip=["gradiron.*"]).set_trace(sys._getframe(1))
    barrier()  # noqa: F405
