"""The core's view of the GPU, and which device an argument names."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import device as Device

core: Any = getattr(_core, "_gpu", None)


def gpu() -> Any:
    """The core's functions; an error in a build without them."""
    if core is None:
        raise RuntimeError("this build of gradiron has no GPU support")
    return core


def index_of(device: Any = None) -> int:
    """The number of a device that is given as a number, a name, a device or not at all."""
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
    """As `index_of`, of a device that is there."""
    index = index_of(device)
    if not 0 <= index < 256:
        raise RuntimeError("CUDA error: invalid device ordinal")
    gpu().check(index)
    return index
