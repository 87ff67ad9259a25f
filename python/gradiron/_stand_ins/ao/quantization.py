"""Places in models where numbers would be quantised; there are no quantised tensors, so what would make some is refused."""

from __future__ import annotations

from typing import Any

from gradiron._as_torch.refused import refused
from gradiron._core import Tensor
from gradiron.nn import Module

__all__ = ["DeQuantStub", "QuantStub", "convert", "fuse_modules", "fuse_modules_qat", "prepare", "prepare_qat"]


class QuantStub(Module):
    """Gives back its input, as PyTorch's does before a model is converted."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


class DeQuantStub(QuantStub):
    """The same at the other end."""


convert = prepare = prepare_qat = fuse_modules = fuse_modules_qat = refused(
    "ao.quantization", "gradiron has no quantised tensors"
)
