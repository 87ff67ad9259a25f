"""Options of an export: modes of the module, and enumerations that PyTorch has."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator

from ..nn import Module

__all__ = ["OperatorExportTypes", "TensorProtoDataType", "TrainingMode", "select_model_mode_for_export"]


class TrainingMode(enum.IntEnum):
    """The mode in which a module is exported.

    Examples:
        >>> torch.onnx.TrainingMode.EVAL.name
        'EVAL'
    """

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.IntEnum):
    """What PyTorch did with operators that ONNX does not have; here they are always refused.

    Examples:
        >>> torch.onnx.OperatorExportTypes.ONNX.value
        0
    """

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TensorProtoDataType(enum.IntEnum):
    """Element types of ONNX.

    Examples:
        >>> torch.onnx.TensorProtoDataType.INT64.value
        7
    """

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20


@contextlib.contextmanager
def select_model_mode_for_export(model: Module, mode: TrainingMode) -> Iterator[None]:
    """Return a context manager in which a module is in a mode; afterwards each of its modules has its own again.

    Args:
        model: module.
        mode: mode.

    Examples:
        >>> layer = nn.Dropout()
        >>> with torch.onnx.select_model_mode_for_export(layer, torch.onnx.TrainingMode.EVAL):
        ...     print(layer.training)
        False
        >>> layer.training
        True
    """
    if not isinstance(mode, TrainingMode):
        raise TypeError(f"'mode' should be a torch.onnx.TrainingMode enum, but got '{type(mode)}'.")
    before = {module: module.training for module in model.modules()}
    try:
        if mode != TrainingMode.PRESERVE:
            model.train(mode == TrainingMode.TRAINING)
        yield
    finally:
        for module, training in before.items():
            module.training = training
