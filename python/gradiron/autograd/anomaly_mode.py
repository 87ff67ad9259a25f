"""Anomaly mode: an error in a backward tells which forward call it comes from, and NaN in a gradient is an error."""

from __future__ import annotations

import warnings

from .. import _core

__all__ = ["detect_anomaly", "set_detect_anomaly"]


def _switch(mode: bool, check_nan: bool) -> None:
    for place, (name, value) in enumerate((("enabled", mode), ("check_nan", check_nan)), 1):
        if not isinstance(value, bool):
            given = type(value).__name__
            raise TypeError(f"set_anomaly_enabled(): argument '{name}' (position {place}) must be bool, not {given}")
    _core.set_anomaly(mode, check_nan)


class set_detect_anomaly:
    """Switches the mode at once; as a context manager, back at its end."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = (_core.is_anomaly_enabled(), _core.is_anomaly_check_nan_enabled())
        _switch(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _core.set_anomaly(*self._before)


class detect_anomaly:
    """The mode for a `with` block."""

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan
        self._before = (False, False)
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._before = (_core.is_anomaly_enabled(), _core.is_anomaly_check_nan_enabled())
        _switch(True, self._check_nan)

    def __exit__(self, *exception: object) -> None:
        _core.set_anomaly(*self._before)
