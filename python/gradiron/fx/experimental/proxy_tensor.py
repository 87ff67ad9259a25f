"""Whether a trace goes on: none ever does."""

from __future__ import annotations

__all__ = ["get_proxy_mode"]


def get_proxy_mode() -> None:
    """The trace that goes on now."""
    return None
