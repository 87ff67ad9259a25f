"""Parameters and buffers of modules, and uninitialized ones whose shape is not known yet."""

from .._parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
    UninitializedTensorMixin,
    is_lazy,
)
from .._parameter import (
    _rebuild as _rebuild,
)

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin", "is_lazy"]
