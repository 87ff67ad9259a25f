"""Operators that take functions."""

from __future__ import annotations

from .associative_scan import associative_scan

__all__ = ["associative_scan"]
