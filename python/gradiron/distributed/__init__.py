"""Training on several machines: names that programs ask for. There is one process; everything that needs more says so."""

from __future__ import annotations

from typing import Any, NoReturn

from .device_mesh import DeviceMesh, init_device_mesh

__all__ = [
    "DeviceMesh",
    "ProcessGroup",
    "ReduceOp",
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "get_backend",
    "get_rank",
    "get_world_size",
    "init_device_mesh",
    "init_process_group",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "new_group",
    "recv",
    "reduce",
    "scatter",
    "send",
]


class ProcessGroup:
    """Would be processes that train together: a name that programs write types with."""


class ReduceOp:
    """How `all_reduce` would join tensors."""

    SUM, AVG, PRODUCT, MIN, MAX = "SUM", "AVG", "PRODUCT", "MIN", "MAX"


def is_available() -> bool:
    """Whether there is anything to train on several machines with: no."""
    return False


def is_initialized() -> bool:
    return False


def is_nccl_available() -> bool:
    return False


def is_gloo_available() -> bool:
    return False


def is_mpi_available() -> bool:
    return False


def is_torchelastic_launched() -> bool:
    return False


def init_process_group(backend: str | None = None, *args: Any, **options: Any) -> NoReturn:
    raise RuntimeError("torch.distributed.init_process_group: gradiron trains in one process")


def _group(*args: Any, **options: Any) -> NoReturn:
    """Needs a group of processes."""
    raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


get_rank = get_world_size = get_backend = new_group = destroy_process_group = barrier = _group
all_reduce = all_gather = all_gather_object = broadcast = broadcast_object_list = _group
gather = reduce = scatter = send = recv = _group
