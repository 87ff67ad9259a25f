"""Python's `multiprocessing`, extended to send tensors to other processes in shared memory."""

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
    """Set how memory is shared, which makes no difference.

    Args:
        new_strategy: `"file_descriptor"` or `"file_system"`.

    Examples:
        >>> torch.multiprocessing.set_sharing_strategy("file_descriptor")
    """
    global _strategy
    if new_strategy not in _strategies:
        raise AssertionError(f"sharing strategy must be one of {sorted(_strategies)}, but got {new_strategy!r}")
    _strategy = new_strategy


def get_sharing_strategy() -> str:
    """Return how memory is shared.

    Examples:
        >>> torch.multiprocessing.get_sharing_strategy()
        'file_descriptor'
    """
    return _strategy


def get_all_sharing_strategies() -> set[str]:
    """Return the strategies that `set_sharing_strategy` accepts.

    Examples:
        >>> sorted(torch.multiprocessing.get_all_sharing_strategies())
        ['file_descriptor', 'file_system']
    """
    return set(_strategies)


reductions.init_reductions()
