"""Passes over graphs of operators."""

from . import common

__all__ = ["common"]
