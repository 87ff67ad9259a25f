"""OpenMP, which is not used: kernels have a thread pool of their own."""

from __future__ import annotations


def is_available() -> bool:
    """Return False: OpenMP is not used."""
    return False
