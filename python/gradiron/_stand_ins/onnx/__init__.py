"""Names of `torch.onnx`; nothing can be exported."""

from __future__ import annotations

from typing import Any, NoReturn

from gradiron._as_torch.refused import refuse

from . import symbolic_helper, symbolic_opset11

__all__ = ["export", "is_in_onnx_export", "register_custom_op_symbolic", "symbolic_helper", "symbolic_opset11"]


def export(model: Any, args: Any = (), f: Any = None, **options: Any) -> NoReturn:
    """Export a model to ONNX, which is not supported.

    Args:
        model: model.
        args, f, options: ignored. Default: none

    Examples:
        >>> torch.onnx.export(nn.Linear(2, 1))
        Traceback (most recent call last):
        NotImplementedError: torch.onnx.export: gradiron writes no ONNX
    """
    refuse("onnx.export", "gradiron writes no ONNX; torch.save writes the module's state_dict")


def is_in_onnx_export() -> bool:
    """Return whether a model is being exported, which it never is.

    Examples:
        >>> torch.onnx.is_in_onnx_export()
        False
    """
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Accept a function for the export of an operator, which is never called.

    Args:
        symbolic_name, symbolic_fn, opset_version: ignored.

    Examples:
        >>> torch.onnx.register_custom_op_symbolic("example::f", None, 11)
    """
