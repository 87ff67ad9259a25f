"""MKL, which is not used."""

from __future__ import annotations

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "is_available", "verbose"]

VERBOSE_OFF = 0
VERBOSE_ON = 1


def is_available() -> bool:
    """Return False: MKL is not used."""
    return False


class verbose:
    """Nothing to tell."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *exception: object) -> None:
        pass
