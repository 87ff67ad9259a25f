"""The compiler's inner name, which programs set options by."""

from __future__ import annotations

from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, reset
from . import config

__all__ = ["allow_in_graph", "assume_constant_result", "config", "disable", "is_compiling", "reset"]
