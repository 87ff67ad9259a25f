"""opt_einsum, which is not used: einsum goes from left to right."""

from __future__ import annotations

from typing import Any

from ._flags import setting

enabled = False
strategy: str | None = None


def is_available() -> bool:
    return False


def get_opt_einsum() -> Any:
    return None


def set_flags(_enabled: bool | None = None, _strategy: str | None = None) -> None:
    """There is nothing to enable."""
    if _enabled:
        raise ValueError("opt_einsum is not available, so setting `enabled` to True will not reap the benefits of it")


def flags(enabled: bool | None = None, strategy: str | None = None) -> Any:
    """The flags for the length of a `with` statement."""
    return setting(__name__, dict(locals()))
