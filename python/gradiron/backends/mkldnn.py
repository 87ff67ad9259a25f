"""oneDNN, which is not used."""

from __future__ import annotations

from typing import Any

from ._flags import setting

enabled = True
deterministic = False
allow_tf32 = True
fp32_precision = "none"
VERBOSE_OFF = 0
VERBOSE_ON = 1
VERBOSE_ON_CREATION = 2


def is_available() -> bool:
    return False


def set_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str | None = None,
) -> None:
    """Sets several flags at once."""
    given = {
        "enabled": _enabled,
        "deterministic": _deterministic,
        "allow_tf32": _allow_tf32,
        "fp32_precision": _fp32_precision,
    }
    globals().update({name: value for name, value in given.items() if value is not None})


def flags(enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none") -> Any:
    """The flags for the length of a `with` statement."""
    return setting(__name__, dict(locals()))
