"""Types for annotations."""

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
    """Type of an integer that is unknown while a program is traced; nothing is traced, so it has no instances.

    Examples:
        >>> isinstance(1, torch.SymInt)
        False
    """


class SymFloat:
    """Type of a float that is unknown while a program is traced; nothing is traced, so it has no instances.

    Examples:
        >>> isinstance(1.0, torch.SymFloat)
        False
    """


class SymBool:
    """Type of a boolean that is unknown while a program is traced; nothing is traced, so it has no instances.

    Examples:
        >>> isinstance(True, torch.SymBool)
        False
    """


class Storage:
    """Type of any storage, for annotations.

    Examples:
        >>> def size(storage: torch.types.Storage) -> int:
        ...     return storage.nbytes()
    """
