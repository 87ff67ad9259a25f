"""The debug level of `torch.distributed`, from the environment variable TORCH_DISTRIBUTED_DEBUG."""

from __future__ import annotations

import enum
import os

__all__ = ["DebugLevel", "get_debug_level", "set_debug_level", "set_debug_level_from_env"]


class DebugLevel(enum.Enum):
    """Debug level: `OFF`, `INFO`, or `DETAIL`, which compares every collective between the ranks first.

    Examples:
        >>> torch.distributed.DebugLevel.DETAIL.value
        2
    """

    OFF = 0
    INFO = 1
    DETAIL = 2


_level: DebugLevel | None = None


def get_debug_level() -> DebugLevel:
    """Return the debug level.

    Examples:
        >>> torch.distributed.get_debug_level()
        <DebugLevel.OFF: 0>
    """
    if _level is None:
        set_debug_level_from_env()
    assert _level is not None
    return _level


def set_debug_level(level: DebugLevel) -> None:
    """Set the debug level, for groups that are created later.

    Args:
        level: new level.

    Examples:
        >>> torch.distributed.set_debug_level(torch.distributed.DebugLevel.OFF)
    """
    global _level
    _level = level


def set_debug_level_from_env() -> None:
    """Set the debug level from the environment variable TORCH_DISTRIBUTED_DEBUG.

    Examples:
        >>> torch.distributed.set_debug_level_from_env()
    """
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError(f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL, but got {name}")
    set_debug_level(DebugLevel[name])
