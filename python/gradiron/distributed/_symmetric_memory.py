"""Memory that the GPUs of several ranks address: not there."""

from __future__ import annotations

from ._refused import refused

_INSTEAD = "GPU tensors travel between processes through host memory. Use the collectives"

__all__ = ["empty", "enable_symm_mem_for_group", "get_symm_mem_workspace", "is_nvshmem_available", "rendezvous"]

empty, enable_symm_mem_for_group, get_symm_mem_workspace, rendezvous = (
    refused(f"_symmetric_memory.{name}", _INSTEAD)
    for name in ("empty", "enable_symm_mem_for_group", "get_symm_mem_workspace", "rendezvous")
)


def is_nvshmem_available() -> bool:
    """Whether there is such memory: no."""
    return False
