"""Quantisation's home: models name it, and run without it."""

from __future__ import annotations

from . import quantization

__all__ = ["quantization"]
