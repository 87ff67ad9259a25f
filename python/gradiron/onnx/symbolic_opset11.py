"""Functions that write operators of TorchScript: a program may import them, and each refuses to be called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .symbolic_helper import refused_function

__all__: list[str] = []


def __getattr__(name: str) -> Callable[..., Any]:
    return refused_function("symbolic_opset11", name)
