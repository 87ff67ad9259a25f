"""ONNX: names that programs ask for; nothing is exported."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["export", "is_in_onnx_export"]


def export(model: Any, args: Any = (), f: Any = None, **options: Any) -> NoReturn:
    """Refused."""
    raise NotImplementedError("torch.onnx.export: gradiron writes no ONNX; torch.save writes the module's state_dict")


def is_in_onnx_export() -> bool:
    return False
