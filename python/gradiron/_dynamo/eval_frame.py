"""What programs ask `isinstance` of."""

from __future__ import annotations

from . import OptimizedModule

__all__ = ["OptimizedModule", "is_dynamo_supported"]


def is_dynamo_supported() -> bool:
    """Return whether functions can be compiled."""
    return True
