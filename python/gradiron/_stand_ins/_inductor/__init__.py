"""The code generator's inner name, which programs set options by."""

from __future__ import annotations

from . import config

__all__ = ["config"]
