"""Names that programs reach for in PyTorch's own core, as `torch._C._distributed_c10d`."""

from __future__ import annotations

from ..nn.parallel._reducer import Reducer
from ._grad_bucket import BuiltinCommHookType, GradBucket
from .debug import DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env
from .distributed_c10d import FileStore, HashStore, PrefixStore, ProcessGroup, ReduceOp, Store, TCPStore, Work
from .process_group import EngineProcessGroup as ProcessGroupGloo

__all__ = [
    "BuiltinCommHookType",
    "DebugLevel",
    "FileStore",
    "GradBucket",
    "HashStore",
    "PrefixStore",
    "ProcessGroup",
    "ProcessGroupGloo",
    "ReduceOp",
    "Reducer",
    "Store",
    "TCPStore",
    "Work",
    "get_debug_level",
    "set_debug_level",
    "set_debug_level_from_env",
]
