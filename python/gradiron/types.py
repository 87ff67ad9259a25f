"""Types that annotations of programs name."""

from __future__ import annotations

import os
from typing import IO, Any, TypeAlias

from . import _core
from ._types import Size

__all__ = ["Device", "FileLike", "Number", "Storage"]

_device, _dtype, _layout, _int, _float, _bool, _complex = _core.device, _core.dtype, Any, int, float, bool, complex
Number: TypeAlias = int | float | bool
Device: TypeAlias = _core.device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
_size: TypeAlias = Size | list[int] | tuple[int, ...]


class SymInt:
    """A whole number that a trace would not know yet; nothing is one."""


class SymFloat:
    """A number that a trace would not know yet; nothing is one."""


class SymBool:
    """A truth value that a trace would not know yet; nothing is one."""


class Storage:
    """What annotations call a storage of any kind."""
