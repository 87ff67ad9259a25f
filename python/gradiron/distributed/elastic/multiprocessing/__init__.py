"""Processes of the launcher, as far as programs ask for them."""

from __future__ import annotations

from . import errors
from .std import Std

__all__ = ["Std", "errors"]
