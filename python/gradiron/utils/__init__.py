"""Odds and ends: `dlpack`."""

from __future__ import annotations

from . import dlpack

__all__ = ["dlpack"]
