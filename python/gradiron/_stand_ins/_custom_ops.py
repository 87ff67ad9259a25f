"""The old name of parts of `library`."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["get_ctx"]


def get_ctx() -> NoReturn:
    """Refused: it is for compilers, which ask how results look."""
    raise RuntimeError("get_ctx() can only be called inside of a fake implementation, which gradiron never calls")
