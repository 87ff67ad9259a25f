"""Flags of cuDNN, which is not used."""

from __future__ import annotations

from typing import Any

from ._flags import setting

enabled = True
benchmark = False
benchmark_limit = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"


def is_available() -> bool:
    """Whether there is cuDNN: never."""
    return False


def version() -> int | None:
    return None


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN would take a tensor."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str | None = None,
) -> None:
    """Sets several flags at once."""
    given = {
        "enabled": _enabled,
        "benchmark": _benchmark,
        "benchmark_limit": _benchmark_limit,
        "deterministic": _deterministic,
        "allow_tf32": _allow_tf32,
        "fp32_precision": _fp32_precision,
    }
    globals().update({name: value for name, value in given.items() if value is not None})


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Any:
    """The flags for the length of a `with` statement."""
    return setting(__name__, dict(locals()))
