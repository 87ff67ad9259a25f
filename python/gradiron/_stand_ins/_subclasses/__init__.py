"""Kinds of tensors that compilers trace with."""

from __future__ import annotations

from . import fake_tensor
from .fake_tensor import FakeTensor

__all__ = ["FakeTensor", "fake_tensor"]
