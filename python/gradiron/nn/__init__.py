"""Parts of networks: modules, parameters, and functions."""

from __future__ import annotations

from typing import Any

from . import functional, modules, parameter
from .modules import *
from .modules.container import Container
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

# Loaded when they are first asked for.
_MODULES = ("attention", "common_types", "grad", "init", "parallel", "utils")


def __getattr__(name: str) -> Any:
    import importlib

    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name == "DataParallel":
        return importlib.import_module(".parallel", __name__).DataParallel
    raise AttributeError(f"module 'gradiron.nn' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, "DataParallel"})
