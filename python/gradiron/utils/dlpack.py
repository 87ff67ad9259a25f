"""Sharing memory with other libraries by DLPack."""

from __future__ import annotations

import enum
from typing import Any

from .. import _core
from .._core import Tensor

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """Types of devices by their numbers in DLPack.

    Examples:
        >>> torch.utils.dlpack.DLDeviceType.kDLCPU.value
        1
    """

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor: Tensor) -> Any:
    """Return a DLPack capsule that shares the tensor's memory.

    Args:
        tensor: tensor that requires no gradient.

    Examples:
        >>> capsule = torch.utils.dlpack.to_dlpack(torch.ones(2))
        >>> torch.utils.dlpack.from_dlpack(capsule)
        tensor([1., 1.])
    """
    return _core.to_dlpack(tensor)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Create a tensor that shares memory with a DLPack capsule, or with an object that exports one.

    Args:
        ext_tensor: object with `__dlpack__`, or a DLPack capsule.
        device: device to copy to, if it is another one.
        copy: always copy (true), never copy (false), or only if needed (`None`).

    Examples:
        >>> torch.utils.dlpack.from_dlpack(torch.ones(2))
        tensor([1., 1.])
    """
    if not hasattr(ext_tensor, "__dlpack__"):
        if device is not None or copy is not None:
            raise AssertionError("device and copy kwargs not supported when ext_tensor is already a DLPack capsule.")
        return _core.from_dlpack(ext_tensor)
    if device is not None and _core.device(device).type != "cpu":
        if copy is False:
            raise ValueError(f"cannot move DLPack memory to {device} without a copy")
        return from_dlpack(ext_tensor).to(device)
    ext_tensor.__dlpack_device__()
    capsule, is_copied = _ask(ext_tensor, copy)
    made = _core.from_dlpack(capsule)
    return made.clone() if copy and not is_copied else made


def _ask(producer: Any, copy: bool | None) -> tuple[Any, bool]:
    """A capsule of the newest version that its producer knows, and whether it has made the copy that is wanted."""
    if copy is not None:
        try:
            return producer.__dlpack__(max_version=(1, 0), copy=copy), True
        except TypeError:
            pass  # Who does not know of copies shares; the copy is made here.
    try:
        return producer.__dlpack__(max_version=(1, 0)), False
    except TypeError:
        return producer.__dlpack__(), False


def export(
    self: Tensor,
    *,
    stream: Any = -1,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[Any, int] | None = None,
    copy: bool | None = None,
    read_only: bool = False,
) -> Any:
    """Implement `Tensor.__dlpack__`."""
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set")
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if self.is_cpu and stream not in (None, -1):
        raise AssertionError("stream should be None on cpu.")
    if not isinstance(dl_device, (tuple, list, type(None))):
        raise TypeError(f"_to_dlpack(): argument 'dl_device' must be tuple of ints, not {type(dl_device).__name__}")
    if not isinstance(copy, (bool, type(None))):
        raise TypeError(f"_to_dlpack(): argument 'copy' must be bool, not {type(copy).__name__}")
    versioned = max_version is not None and max_version[0] >= 1
    if read_only and not versioned:
        raise BufferError("read_only export requires the versioned DLPack protocol: pass max_version=(1, 0) or newer")
    if dl_device is not None and tuple(dl_device) != (DLDeviceType.kDLCPU, 0):
        raise BufferError(f"memory is exported to the CPU, device {(DLDeviceType.kDLCPU.value, 0)}, only")
    moved = dl_device is not None and not self.is_cpu
    if moved and copy is False:
        raise BufferError(f"cannot move memory from {self.device} without a copy")
    copied = moved or bool(copy)
    return _core.to_dlpack(self.cpu() if moved else self.clone() if copy else self, versioned, copied, read_only)


def export_device(self: Tensor) -> tuple[DLDeviceType, int]:
    """Return the type and the number of the tensor's device in DLPack."""
    kind, number = _core.dlpack_device(self)
    return DLDeviceType(kind), number
