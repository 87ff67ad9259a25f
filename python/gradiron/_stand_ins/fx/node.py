"""Calls in a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ._refusal import _Refused

__all__ = ["Node"]

Target: TypeAlias = Callable[..., Any] | str
Argument: TypeAlias = Any


class Node(_Refused):
    """Would be one call."""
