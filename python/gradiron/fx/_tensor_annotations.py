"""Tensors in few letters, for listings of graphs."""

from __future__ import annotations

import re
from collections.abc import Callable

from .. import _core
from .._core import Tensor

_WIDTHS = re.compile(r"(bfloat|complex|float|uint|int)(\d+)(.*)")


def dtype_abbreviation(dtype: _core.dtype) -> str:
    """A dtype in few letters: `f32`, `i64`, `bf16`, `b8`."""
    name = str(dtype).partition(".")[2]
    found = _WIDTHS.fullmatch(name)
    if found is None:
        return "b8" if name == "bool" else name
    kind, width, rest = found.groups()
    return {"bfloat": "bf", "complex": "c", "float": "f", "uint": "u", "int": "i"}[kind] + width + rest


def tensor_annotation(
    value: Tensor, include_stride: bool = False, include_device: bool = False, paint: Callable[[str, str], str] | None = None
) -> str:
    """Type and shape of a tensor, and its strides and device if they are asked for: `f32[2, 3][3, 1]cpu`."""
    color = paint or (lambda _, text: text)
    parts = [color("red", dtype_abbreviation(value.dtype)), color("blue", str(list(value.shape)))]
    parts.append(color("dim_blue", str(list(value.stride())) if include_stride else ""))
    parts.append(color("dim_green", str(value.device) if include_device else ""))
    return "".join(parts)
