"""PyTorch's old wrapper of tensors, by its old name."""

from __future__ import annotations

from . import Variable

__all__ = ["Variable"]
