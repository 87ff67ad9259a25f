"""`Variable`, PyTorch's former wrapper of tensors."""

from __future__ import annotations

from . import Variable

__all__ = ["Variable"]
