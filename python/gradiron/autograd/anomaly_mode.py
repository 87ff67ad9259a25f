"""Anomaly mode: errors of a backward pass name the forward call, and NaN gradients raise."""

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
    """Switch anomaly detection on or off, at once or for a `with` block.

    Args:
        mode: whether errors of a backward pass name the forward call that they come from.
        check_nan: raise an error where a gradient has a NaN. Default: `True`

    Examples:
        >>> with torch.autograd.set_detect_anomaly(True):
        ...     torch.is_anomaly_enabled()
        True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = (_core.is_anomaly_enabled(), _core.is_anomaly_check_nan_enabled())
        _switch(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _core.set_anomaly(*self._before)


class detect_anomaly:
    """Enable anomaly detection in a `with` block, to debug a backward pass.

    Errors then name the forward call that they come from, and a gradient with a NaN raises. It slows everything down.

    Args:
        check_nan: raise an error where a gradient has a NaN. Default: `True`

    Examples:
        >>> x = torch.tensor(-1.0, requires_grad=True)
        >>> with torch.autograd.detect_anomaly():
        ...     x.sqrt().backward()
        Traceback (most recent call last):
        RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

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
