"""How the whole program saves and loads."""

from __future__ import annotations

from . import config

__all__ = ["config"]
