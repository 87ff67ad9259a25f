"""The shared memory that MPI's ranks leave behind when they cannot end in order."""

from __future__ import annotations

import contextlib
import os

__all__ = ["list_files", "remove_files"]

_FOLDER = "/dev/shm"


def list_files() -> set[str]:
    """The files of MPICH's ranks on this machine."""
    try:
        return {name for name in os.listdir(_FOLDER) if name.startswith("mpich_shm_")}
    except OSError:
        return set()


def _is_mapped(path: str) -> bool:
    for process in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{process}/maps") as maps:
            if any(path in line for line in maps):
                return True
    return False


def remove_files(before: set[str]) -> None:
    """Removes the files that have come since, except those that another job's ranks use."""
    for name in list_files() - before:
        path = os.path.join(_FOLDER, name)
        with contextlib.suppress(OSError):
            if not _is_mapped(path):
                os.unlink(path)
