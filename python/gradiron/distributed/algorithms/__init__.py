"""Algorithms over several ranks: `join`, communication hooks, averaging of models."""

from __future__ import annotations

from . import join as join
from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
