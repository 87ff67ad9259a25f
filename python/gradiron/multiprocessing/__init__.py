"""Python's `multiprocessing`, with tensors that go to other processes by sharing their memory."""

from __future__ import annotations

import multiprocessing as _python
from multiprocessing import *  # noqa: F403

from . import reductions
from .spawn import (
    ProcessContext as ProcessContext,
)
from .spawn import (
    ProcessExitedException as ProcessExitedException,
)
from .spawn import (
    ProcessRaisedException as ProcessRaisedException,
)
from .spawn import (
    SpawnContext as SpawnContext,
)
from .spawn import (
    spawn as spawn,
)
from .spawn import (
    start_processes as start_processes,
)

__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy"]
__all__ += _python.__all__

# Both are the same here: memory without a name, whose handle is sent.
_strategies = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Chooses how memory is shared; whatever is chosen, it has no name that could be left behind."""
    global _strategy
    if new_strategy not in _strategies:
        raise AssertionError(f"sharing strategy must be one of {sorted(_strategies)}, but got {new_strategy!r}")
    _strategy = new_strategy


def get_sharing_strategy() -> str:
    """How memory is shared."""
    return _strategy


def get_all_sharing_strategies() -> set[str]:
    """The names that `set_sharing_strategy` takes."""
    return set(_strategies)


reductions.init_reductions()
