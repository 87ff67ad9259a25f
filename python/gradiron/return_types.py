"""The named tuples that operators return, by the operator's name."""

from __future__ import annotations

from typing import Any

from . import _core
from ._types import named_kind


def __getattr__(name: str) -> Any:
    for row in () if name.startswith("__") else _core.rows():
        if name in (row["name"], *row["aliases"]):
            for signature in row["signatures"]:
                if signature[1].startswith("("):
                    return named_kind(name, tuple(signature[1].strip("()").split(", ")))
    raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")
