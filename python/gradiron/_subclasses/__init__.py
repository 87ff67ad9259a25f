"""Kinds of tensors that compilers trace with."""

from __future__ import annotations

from . import fake_tensor

__all__ = ["fake_tensor"]
