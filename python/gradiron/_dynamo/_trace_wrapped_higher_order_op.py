"""The name of a mode that `x[i]` needs under PyTorch's `vmap`."""

from __future__ import annotations

from typing import Any

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex:
    """Under `with`, samples may be indices. Here they always may."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        return None
