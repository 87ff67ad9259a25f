"""Tensors without elements: a question that programs ask."""

from __future__ import annotations

__all__ = ["is_fake"]


def is_fake(x: object) -> bool:
    """Whether a tensor has no elements of its own: every one has."""
    return False
