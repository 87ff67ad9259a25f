"""Switches for how modules convert and load their parameters."""

from __future__ import annotations

_overwrite_module_params = False
_swap_module_params = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether `Module.to` and the like make new parameters instead of writing to `.data` of those that there are."""
    global _overwrite_module_params
    _overwrite_module_params = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether `Module.to` and the like make new parameters."""
    return _overwrite_module_params


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether `Module.to` and `load_state_dict` exchange the contents of parameters by `swap_tensors`."""
    global _swap_module_params
    _swap_module_params = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether parameters are exchanged by `swap_tensors`."""
    return _swap_module_params
