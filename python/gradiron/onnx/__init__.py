"""ONNX: names that programs ask for and tell of; nothing is exported."""

from __future__ import annotations

from typing import Any, NoReturn

from . import symbolic_helper, symbolic_opset11

__all__ = ["export", "is_in_onnx_export", "register_custom_op_symbolic", "symbolic_helper", "symbolic_opset11"]


def export(model: Any, args: Any = (), f: Any = None, **options: Any) -> NoReturn:
    """Refused."""
    raise NotImplementedError("torch.onnx.export: gradiron writes no ONNX; torch.save writes the module's state_dict")


def is_in_onnx_export() -> bool:
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """How an operator would be written; there is nothing that would write it."""
