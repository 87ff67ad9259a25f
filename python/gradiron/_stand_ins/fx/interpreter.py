"""What runs a graph call by call."""

from __future__ import annotations

from ._refusal import _Refused

__all__ = ["Interpreter", "Transformer"]


class Interpreter(_Refused):
    """Would run a graph."""


class Transformer(Interpreter):
    """Would make another graph of it."""
