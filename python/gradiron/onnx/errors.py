"""Errors of the export to ONNX."""

from __future__ import annotations

from typing import Any

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """Warning of the export to ONNX.

    Examples:
        >>> issubclass(torch.onnx.errors.OnnxExporterWarning, UserWarning)
        True
    """


class OnnxExporterError(RuntimeError):
    """Base class of the errors of the export to ONNX.

    Examples:
        >>> issubclass(torch.onnx.OnnxExporterError, RuntimeError)
        True
    """


class UnsupportedOperatorError(OnnxExporterError):
    """Raised when ONNX has no form for an operator, or for the way it is called.

    Args:
        name: operator.
        version: opset version of the export.
        supported_version: version that has a form for it, or None.
        detail: what is not supported and the lines of the program where it is called. Default: none

    Examples:
        >>> print(torch.onnx.errors.UnsupportedOperatorError("grid_sample", 13, 16))
        Exporting the operator 'grid_sample' to ONNX opset version 13 is not supported. Support for this operator was \
added in version 16, try exporting with this version.
    """

    def __init__(self, name: str, version: int, supported_version: int | None, detail: str = "") -> None:
        message = f"Exporting the operator '{name}' to ONNX opset version {version} is not supported."
        if supported_version is not None:
            message += f" Support for this operator was added in version {supported_version}, try exporting with this version."
        super().__init__(message + detail)


class SymbolicValueError(OnnxExporterError):
    """Raised by PyTorch's functions that write operators of TorchScript; nothing raises it here.

    Args:
        msg: what is wrong.
        value: value that it is about.

    Examples:
        >>> print(torch.onnx.errors.SymbolicValueError("no rank", "x"))
        no rank  [Caused by the value 'x']
    """

    def __init__(self, msg: str, value: Any) -> None:
        super().__init__(f"{msg}  [Caused by the value '{value}']")
