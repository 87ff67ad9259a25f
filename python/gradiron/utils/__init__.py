"""Odds and ends: `dlpack`, handles of hooks, `swap_tensors`."""

from __future__ import annotations

from . import dlpack, hooks
from ._swap import swap_tensors

__all__ = ["dlpack", "hooks", "swap_tensors"]


def __getattr__(name: str) -> object:
    import importlib

    lazy = (
        "_pytree checkpoint collect_env data deterministic flop_counter model_zoo safetensors serialization tensorboard".split()
    )
    if name in lazy:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'gradiron.utils' has no attribute '{name}'")
