"""Graphs of calls."""

from __future__ import annotations

from ._refusal import _Refused

__all__ = ["Graph"]


class Graph(_Refused):
    """Would hold calls in their order."""
