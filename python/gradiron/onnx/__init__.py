"""Export of modules to ONNX, by the package `onnx`: `pip install "gradiron[onnx]"`."""

from __future__ import annotations

from typing import Any

from .._as_torch.refused import refused as _refused
from ..version import __version__
from . import errors, operators, symbolic_helper, symbolic_opset9, symbolic_opset10, symbolic_opset11, symbolic_opset12
from ._export import export
from ._modes import OperatorExportTypes, TensorProtoDataType, TrainingMode, select_model_mode_for_export
from ._program import ONNXProgram
from ._tracing import is_tracing as _is_tracing
from .errors import OnnxExporterError

__all__ = [
    "ONNXProgram",
    "OnnxExporterError",
    "OperatorExportTypes",
    "TensorProtoDataType",
    "TrainingMode",
    "errors",
    "export",
    "is_in_onnx_export",
    "operators",
    "register_custom_op_symbolic",
    "select_model_mode_for_export",
    "symbolic_helper",
    "symbolic_opset9",
    "symbolic_opset10",
    "symbolic_opset11",
    "symbolic_opset12",
    "unregister_custom_op_symbolic",
]

producer_name = "gradiron"
producer_version = __version__


def is_in_onnx_export() -> bool:
    """Return whether a module runs for an export.

    Examples:
        >>> torch.onnx.is_in_onnx_export()
        False
    """
    return _is_tracing()


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Any, opset_version: int) -> None:
    """Accept a function that writes an operator of TorchScript. It is never called: the export refuses the operator by name.

    Args:
        symbolic_name, symbolic_fn, opset_version: ignored.

    Examples:
        >>> torch.onnx.register_custom_op_symbolic("example::f", None, 11)
    """


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Accept the name of an operator that `register_custom_op_symbolic` was given.

    Args:
        symbolic_name, opset_version: ignored.

    Examples:
        >>> torch.onnx.unregister_custom_op_symbolic("example::f", 11)
    """


ExportableModule = _refused("onnx.ExportableModule", "torch.onnx.export takes any module")
InputObserver = _refused("onnx.InputObserver", "torch.onnx.export takes dynamic_axes")
JitScalarType = _refused("onnx.JitScalarType", "there is no TorchScript")
