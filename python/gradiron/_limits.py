"""Numeric limits of dtypes: `finfo` and `iinfo`."""

from __future__ import annotations

from typing import Any

from . import _core
from ._core import dtype

# Bits of the exponent and of the fraction, and PyTorch's decimal resolution.
_FLOATS = {"float16": (5, 10, 1e-3), "bfloat16": (8, 7, 1e-2), "float32": (8, 23, 1e-6), "float64": (11, 52, 1e-15)}

# Formats of one byte: their `eps`, `max`, `min`, `tiny`.
_BYTES = {
    "float8_e4m3fn": (0.125, 448.0, -448.0, 2.0**-6),
    "float8_e4m3fnuz": (0.125, 240.0, -240.0, 2.0**-7),
    "float8_e5m2": (0.25, 57344.0, -57344.0, 2.0**-14),
    "float8_e5m2fnuz": (0.25, 57344.0, -57344.0, 2.0**-15),
    "float8_e8m0fnu": (1.0, 2.0**127, 2.0**-127, 2.0**-127),
}

# Cached, since masked models ask in every step.
_known: dict[dtype, dict[str, Any]] = {}


def _known_dtype(function: str, given: Any) -> Any:
    """A dtype, or the one that a type of Python's stands for."""
    if isinstance(given, _core.AbsentDType):
        return given
    found = _core.dtype_of(given)
    if not isinstance(found, dtype):
        raise TypeError(f"{function}(): argument 'type' (position 1) must be torch.dtype, not {type(given).__name__}")
    return found


class _Info:
    """The limits of one dtype; two of the same dtype are equal."""

    def __init__(self, kind: dtype) -> None:
        self.dtype = str(kind).removeprefix("torch.")
        self.bits = 8 * kind.itemsize

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.dtype == self.dtype

    def __hash__(self) -> int:
        return hash((type(self), self.dtype))


class finfo(_Info):
    """Numeric limits of a floating point dtype.

    Args:
        type: dtype; the default dtype if `None`. A complex one stands for its real part.

    Attributes:
        bits: size in bits.
        eps: difference between 1 and the next larger number.
        max, min: largest and smallest (most negative) number.
        tiny, smallest_normal: smallest positive normal number.
        resolution: approximate decimal resolution.

    Examples:
        >>> torch.finfo(torch.float32).eps
        1.1920928955078125e-07
    """

    def __init__(self, type: dtype | None = None) -> None:
        kind = _core.get_default_dtype() if type is None else _known_dtype("finfo", type)
        if kind.is_complex:
            kind = kind.to_real()  # of each part
        if not kind.is_floating_point:
            raise TypeError("torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'")
        if kind in _known:
            self.__dict__.update(_known[kind])
            return
        super().__init__(kind)
        if self.dtype in _BYTES:
            self.resolution = 1.0
            self.eps, self.max, self.min, self.tiny = _BYTES[self.dtype]
            self.smallest_normal = self.tiny
            return
        if isinstance(kind, _core.AbsentDType):
            raise NotImplementedError(f'"finfo" not implemented for {self.dtype!r}')
        exponent, fraction, self.resolution = _FLOATS[self.dtype]
        largest = 2 ** (exponent - 1) - 1
        self.eps = 2.0**-fraction
        self.max = (2.0 - self.eps) * 2.0**largest
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - largest)
        _known[kind] = dict(self.__dict__)

    def __repr__(self) -> str:
        shown = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{name}={getattr(self, name):g}' for name in shown)}, dtype={self.dtype})"


class iinfo(_Info):
    """Numeric limits of an integer dtype.

    Args:
        type: integer dtype.

    Attributes:
        bits: size in bits.
        max, min: largest and smallest number.

    Examples:
        >>> torch.iinfo(torch.int8).max
        127
    """

    def __init__(self, type: dtype) -> None:
        type = _known_dtype("iinfo", type)
        if type.is_floating_point or type.is_complex:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if type == _core.bool:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        super().__init__(type)
        self.min = -(2 ** (self.bits - 1)) if type.is_signed else 0
        self.max = 2 ** (self.bits - type.is_signed) - 1

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
