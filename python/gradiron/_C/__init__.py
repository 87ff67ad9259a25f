"""Names of PyTorch's `torch._C` that programs use."""

from __future__ import annotations

import importlib
import sys
from enum import Enum
from typing import Any

from .. import _SCRIPT_TYPES, _core
from .._as_torch.refused import refuse
from .._core import Generator, Tensor, device, dtype
from .._functions.settings import get_default_device
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
_LinAlgError = _core._LinAlgError
_disabled_torch_function_impl = _core._disabled_torch_function_impl


def _get_tracing_state() -> None:
    """Return `None`, as nothing is traced."""
    return None


def _is_tracing() -> bool:
    """Return `False`, as nothing is traced."""
    return False


def _are_functorch_transforms_active() -> bool:
    """Whether a `vmap` is running; other transforms see the tensors themselves."""
    return _core.vmap_depth() > 0


def _get_default_device() -> str:
    """Return the type of the default device."""
    return str(get_default_device().type)


def _log_api_usage_once(event: str) -> None:
    """Do nothing."""


class DispatchKey(Enum):
    """Names of PyTorch's dispatch keys, which have no effect."""

    CPU = "CPU"
    CUDA = "CUDA"
    AutocastCPU = "AutocastCPU"
    AutocastCUDA = "AutocastCUDA"
    AutocastMPS = "AutocastMPS"
    AutocastXPU = "AutocastXPU"


class DispatchKeySet:
    """A set of dispatch keys."""

    def __init__(self, key: DispatchKey) -> None:
        self._keys = frozenset((key,))

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        made = DispatchKeySet.__new__(DispatchKeySet)
        made._keys = self._keys | other._keys
        return made

    def has(self, key: DispatchKey) -> bool:
        return key in self._keys


class Graph:
    """Type of TorchScript's graphs, for annotations; there are none."""

    def __init__(self, *args: Any) -> None:
        refuse(f"_C.{type(self).__name__}", "gradiron writes no graphs of programs")


class Value(Graph):
    """Type of the values of such a graph."""


class PyTorchFileReader:
    """Reader of files in PyTorch, which is not supported: use `torch.load`.

    Examples:
        >>> torch.PyTorchFileReader("model.pt")
        Traceback (most recent call last):
        NotImplementedError: torch._C.PyTorchFileReader: torch.load and torch.save read and write files
    """

    def __init__(self, *args: Any) -> None:
        refuse(f"_C.{type(self).__name__}", "torch.load and torch.save read and write files")


class PyTorchFileWriter(PyTorchFileReader):
    """Writer of files in PyTorch, which is not supported: use `torch.save`.

    Examples:
        >>> torch.PyTorchFileWriter("model.pt")
        Traceback (most recent call last):
        NotImplementedError: torch._C.PyTorchFileWriter: torch.load and torch.save read and write files
    """


class Type:
    """Types of TorchScript, for annotations: nothing is compiled, so they have no instances.

    Examples:
        >>> isinstance(torch.ones(2), torch.TensorType)
        False
    """

    def __init__(self, *args: Any) -> None:
        raise TypeError(f"torch._C.{type(self).__name__}: No constructor defined!")


def __getattr__(name: str) -> Any:
    if name in ("_distributed_c10d", "_nn"):
        return importlib.import_module(f".{name}", __package__)
    if name.endswith("Type") and name in _SCRIPT_TYPES:
        above = sys.modules[__name__.rpartition(".")[0]].__name__
        return globals().setdefault(name, type(name, (Type,), {"__module__": above, "__doc__": Type.__doc__}))
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
