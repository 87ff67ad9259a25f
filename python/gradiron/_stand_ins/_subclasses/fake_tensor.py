"""Tensors without elements: a question that programs ask."""

from __future__ import annotations

__all__ = ["FakeTensor", "is_fake"]


class FakeTensor:
    """What a tensor without elements would be: no tensor is one."""


def is_fake(x: object) -> bool:
    """Whether a tensor has no elements of its own: every one has."""
    return False
