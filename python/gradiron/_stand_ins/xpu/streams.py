"""Names of `xpu`, by the module that PyTorch has them in."""

from __future__ import annotations

from typing import Any

from gradiron import xpu

_xpu: Any = xpu

_NAMES = """
    Event Stream
"""
globals().update({name: getattr(_xpu, name) for name in _NAMES.split()})
