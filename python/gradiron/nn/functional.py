"""Activations and losses as functions: the rows that PyTorch keeps in `torch.nn.functional`."""

from __future__ import annotations

from .. import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    def __getattr__(name: str) -> Any: ...


_SHARED = ("sigmoid", "tanh", "relu", "softmax", "log_softmax", "relu_", "dropout", "layer_norm")

globals().update({name: getattr(_core, name) for name in _SHARED if hasattr(_core, name)})
globals().update({name: getattr(_core._nn, name) for name in dir(_core._nn) if not name.startswith("_")})
