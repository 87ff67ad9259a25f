"""Passes over graphs of any operators."""

from . import cse_pass

__all__ = ["cse_pass"]
