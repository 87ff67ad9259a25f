"""Activations and losses as functions: the rows that PyTorch keeps in `torch.nn.functional`."""

from __future__ import annotations

from typing import Any

from .. import _core

_SHARED = ("sigmoid", "tanh", "relu", "softmax", "log_softmax", "relu_", "dropout", "layer_norm")


def __getattr__(name: str) -> Any:
    found = getattr(_core._nn, name, None)
    if found is None and name in _SHARED:
        found = getattr(_core, name, None)
    if found is None:
        raise AttributeError(f"module 'gradiron.nn.functional' has no attribute '{name}'")
    return found


def __dir__() -> list[str]:
    return sorted({*(n for n in dir(_core._nn) if not n.startswith("_")), *(n for n in _SHARED if hasattr(_core, n))})
