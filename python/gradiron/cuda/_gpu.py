"""Access to the GPU part of the core, and the device that an argument names."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import device as Device

core: Any = getattr(_core, "_gpu", None)


def gpu() -> Any:
    """Return the GPU part of the core, or raise an error if the build has none."""
    if core is None:
        raise RuntimeError("this build of gradiron has no GPU support")
    return core


def index_of(device: Any = None) -> int:
    """Return the index of a device given as an index, name, device or `None`."""
    if device is None:
        return 0
    if isinstance(device, bool) or not isinstance(device, (int, str, Device)):
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got: {device}")
    if isinstance(device, int):
        return device
    named = Device(device) if isinstance(device, str) else device
    if named.type == "cpu":
        raise ValueError(f"Expected a cuda device, but got: {named}")
    return named.index or 0


def checked_index(device: Any = None) -> int:
    """Return the index of a device like `index_of`, and check that it exists."""
    index = index_of(device)
    if not 0 <= index < 256:
        raise RuntimeError("CUDA error: invalid device ordinal")
    gpu().check(index)
    return index
