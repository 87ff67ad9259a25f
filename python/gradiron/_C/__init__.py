"""Names of PyTorch's own core that programs reach for."""

from __future__ import annotations

import importlib
from enum import Enum
from typing import Any

from .. import _SCRIPT_TYPES, _core
from .._core import Generator, Tensor, device, dtype
from .._tensor import parse_to
from .._types import Size
from ..overrides import DisableTorchFunction, DisableTorchFunctionSubclass

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "DispatchKey",
    "DispatchKeySet",
    "Generator",
    "PyTorchFileReader",
    "PyTorchFileWriter",
    "Size",
    "device",
    "dtype",
]

_TensorMeta = type(Tensor)
_disabled_torch_function_impl = _core._disabled_torch_function_impl


def _get_tracing_state() -> None:
    """What is traced at the moment: nothing ever is."""
    return None


def _are_functorch_transforms_active() -> bool:
    """Whether a `vmap` is running; other transforms see the tensors themselves."""
    return _core.vmap_depth() > 0


def _get_default_device() -> str:
    """The kind of device that new tensors lie on."""
    from .._settings import get_default_device

    return str(get_default_device().type)


def _log_api_usage_once(event: str) -> None:
    """Nothing is logged."""


class DispatchKey(Enum):
    """Why PyTorch's dispatcher would choose a kernel. Here nothing asks."""

    CPU = "CPU"
    CUDA = "CUDA"
    AutocastCPU = "AutocastCPU"
    AutocastCUDA = "AutocastCUDA"
    AutocastMPS = "AutocastMPS"
    AutocastXPU = "AutocastXPU"


class DispatchKeySet:
    """Several of these."""

    def __init__(self, key: DispatchKey) -> None:
        self._keys = frozenset((key,))

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        made = DispatchKeySet.__new__(DispatchKeySet)
        made._keys = self._keys | other._keys
        return made

    def has(self, key: DispatchKey) -> bool:
        return key in self._keys


class Graph:
    """TorchScript's graphs, which annotations name. There are none."""

    def __init__(self, *args: Any) -> None:
        raise NotImplementedError(f"torch._C.{type(self).__name__}: gradiron writes no graphs of programs")


class Value(Graph):
    """What such a graph would compute."""


class PyTorchFileReader:
    """Refused: `load` reads files."""

    def __init__(self, *args: Any) -> None:
        raise NotImplementedError(f"torch._C.{type(self).__name__}: torch.load and torch.save read and write files")


class PyTorchFileWriter(PyTorchFileReader):
    """Refused: `save` writes files."""


class _nn:
    """The core's part of `nn`."""

    @staticmethod
    def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
        """What `Module.to` is told: device, dtype, whether it need not wait, and memory format."""
        kind, place, copy, memory_format = parse_to(args, kwargs)
        if copy:
            raise RuntimeError(".to() does not accept copy argument")
        waits = kwargs.get("non_blocking", any(arg is True for arg in args))
        return None if place is None else device(place), kind, waits, memory_format


class Type:
    """TorchScript's types, which annotations name. No script is compiled, so nothing has one."""

    def __init__(self, *args: Any) -> None:
        raise TypeError(f"torch._C.{type(self).__name__}: No constructor defined!")


def __getattr__(name: str) -> Any:
    if name == "_distributed_c10d":
        return importlib.import_module("._distributed_c10d", __package__)
    if name.endswith("Type") and name in _SCRIPT_TYPES:
        return globals().setdefault(name, type(name, (Type,), {"__module__": __name__}))
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
