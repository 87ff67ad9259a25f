"""The core's part of `torch.distributed`, by the names that programs import from it."""

from __future__ import annotations

from ..distributed._grad_bucket import BuiltinCommHookType, GradBucket
from ..distributed.debug import DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env
from ..distributed.distributed_c10d import _resolve_process_group as _resolve_process_group
from ..distributed.file_store import FileStore
from ..distributed.options import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ReduceOp,
    ReduceOptions,
    ReduceScatterOptions,
    ScatterOptions,
)
from ..distributed.process_group import EngineProcessGroup as ProcessGroupGloo
from ..distributed.process_group import ProcessGroup
from ..distributed.store import HashStore, PrefixStore, Store, TCPStore
from ..distributed.work import Work
from ..nn.parallel._reducer import Reducer

__all__ = [
    "AllToAllOptions",
    "AllgatherOptions",
    "AllreduceCoalescedOptions",
    "AllreduceOptions",
    "BarrierOptions",
    "BroadcastOptions",
    "BuiltinCommHookType",
    "DebugLevel",
    "FileStore",
    "GatherOptions",
    "GradBucket",
    "HashStore",
    "PrefixStore",
    "ProcessGroup",
    "ProcessGroupGloo",
    "ReduceOp",
    "ReduceOptions",
    "ReduceScatterOptions",
    "Reducer",
    "ScatterOptions",
    "Store",
    "TCPStore",
    "Work",
    "get_debug_level",
    "set_debug_level",
    "set_debug_level_from_env",
]
