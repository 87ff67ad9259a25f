"""What holds for every `save` and `load` of the program: classes whose attributes are set."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...serialization import LoadEndianness


class load:
    """Options of `torch.load`."""

    mmap: bool = False
    endianness: LoadEndianness | None = None
    # MAP_PRIVATE, where there is such a thing.
    mmap_flags: int | None = None if sys.platform == "win32" else 2
    # Records are found by the archive's directory either way.
    calculate_storage_offsets: bool = False


class save:
    """Options of `torch.save`."""

    compute_crc32: bool = True
    # No memory is pinned.
    use_pinned_memory_for_d2h: bool = False
    storage_alignment: int = 64
