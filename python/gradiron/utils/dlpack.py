"""Memory shared with other libraries as DLPack capsules."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule over the tensor's memory; whoever takes it keeps the memory alive."""
    return _core.to_dlpack(tensor)


def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor over the memory of a capsule or of an object that gives one."""
    return _core.from_dlpack(ext_tensor)
