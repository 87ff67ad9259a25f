"""Names of `xpu`, by the module that PyTorch has them in."""

from __future__ import annotations

from typing import Any

from gradiron import xpu

_xpu: Any = xpu

_NAMES = """
    get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed seed_all set_rng_state
    set_rng_state_all
"""
globals().update({name: getattr(_xpu, name) for name in _NAMES.split()})
