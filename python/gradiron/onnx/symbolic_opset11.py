"""A module that functions which would write ONNX name inside; nobody calls them."""

from __future__ import annotations

__all__: list[str] = []
