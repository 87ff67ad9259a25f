"""What operators are in ONNX, one module for each family."""

from .._table import find_form
from . import (
    attention,
    creation,
    indexing,
    layers,
    losses,
    normalization,
    pointwise,
    pooling,
    products,
    recurrent,
    reductions,
    resizing,
    shapes,
)

__all__ = [
    "attention",
    "creation",
    "find_form",
    "indexing",
    "layers",
    "losses",
    "normalization",
    "pointwise",
    "pooling",
    "products",
    "recurrent",
    "reductions",
    "resizing",
    "shapes",
]
