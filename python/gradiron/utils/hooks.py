"""Handles that take hooks off again."""

from __future__ import annotations

from .._core import RemovableHandle

__all__ = ["RemovableHandle"]
