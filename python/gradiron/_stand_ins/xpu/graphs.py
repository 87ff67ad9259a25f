"""Names of `xpu`, by the module that PyTorch has them in."""

from __future__ import annotations

from typing import Any

from gradiron import xpu

_xpu: Any = xpu

_NAMES = """
    XPUGraph graph graph_pool_handle is_current_stream_capturing make_graphed_callables
"""
globals().update({name: getattr(_xpu, name) for name in _NAMES.split()})
