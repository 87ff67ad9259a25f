"""Devices of several machines in rows and columns: names that programs write types with. There is one device."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """Would be one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        init_device_mesh()


def init_device_mesh(*args: Any, **options: Any) -> NoReturn:
    raise RuntimeError("torch.distributed.init_device_mesh: gradiron trains in one process")
