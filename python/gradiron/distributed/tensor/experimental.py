"""What else PyTorch does with such tensors. There are none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["implicit_replication"]


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Changes nothing: every tensor lies here whole."""
    yield
