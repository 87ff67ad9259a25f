"""`make_tensor`: random tensors for tests of operators."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gradiron

if TYPE_CHECKING:
    from gradiron import Tensor

# the least and the greatest value, and the least normal one
FLOATS = {
    "torch.float16": (65504.0, 2.0**-14),
    "torch.bfloat16": (3.3895313892515355e38, 2.0**-126),
    "torch.float32": (3.4028234663852886e38, 2.0**-126),
    "torch.float64": (1.7976931348623157e308, 2.0**-1022),
}
COMPLEX = {"torch.complex64": "torch.float32", "torch.complex128": "torch.float64"}  # and the type of the parts
INTEGERS = {
    "torch.bool": (0, 2),
    "torch.uint8": (0, 2**8),
    "torch.int8": (-(2**7), 2**7),
    "torch.int16": (-(2**15), 2**15),
    "torch.int32": (-(2**31), 2**31),
    "torch.int64": (-(2**63), 2**63 - 1),
}


def make_tensor(
    *shape: int | Sequence[int],
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Create a tensor of uniformly distributed random values, for tests.

    Args:
        shape: shape of the result.
        dtype: dtype of the result.
        device: device of the result.
        low: lower bound; -9 if `None`.
        high: upper bound, which is excluded; 9, for integers 10, if `None`.
        requires_grad: whether the result requires a gradient. Default: `False`
        noncontiguous: make the result noncontiguous. Default: `False`
        exclude_zero: replace zeros by 1, or by the smallest normal number. Default: `False`
        memory_format: memory format of the result.

    Examples:
        >>> torch.testing.make_tensor((2, 3), dtype=torch.float32, device="cpu").shape
        torch.Size([2, 3])
    """
    sizes = _sizes(shape)
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got {noncontiguous=} and {memory_format=}"
        )
    name = str(dtype) if isinstance(dtype, gradiron.dtype) else ""
    if requires_grad and name in INTEGERS:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    gaps = noncontiguous and math.prod(sizes) > 1
    drawn = [*sizes[:-1], 2 * sizes[-1]] if gaps else sizes
    if name in INTEGERS:
        least, end = INTEGERS[name]
        usual = (0, 2) if name == "torch.bool" else (-9, 10)
        start, stop = _bounds(dtype, low, high, usual, (least, end))
        result = gradiron.randint(math.ceil(start), math.ceil(stop), drawn, device=device, dtype=dtype)
    elif name in FLOATS or name in COMPLEX:
        greatest = FLOATS[COMPLEX.get(name, name)][0]
        start, stop = _bounds(dtype, low, high, (-9, 9), (-greatest, greatest))
        result = gradiron.empty(drawn, device=device, dtype=dtype)
        parts = gradiron.view_as_real(result) if name in COMPLEX else result
        if stop - start >= greatest:  # the width itself would overflow
            parts.uniform_(start / 2, stop / 2).mul_(2)
        else:
            parts.uniform_(start, stop)
    else:
        raise TypeError(f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor().")
    if gaps:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = 1 if name in INTEGERS else FLOATS[COMPLEX.get(name, name)][1]
    if requires_grad:
        gradiron._core.tracked(result)
    return result


def _sizes(shape: Sequence[Any]) -> list[int]:
    return list(shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape)


def _bounds(
    dtype: Any, low: float | None, high: float | None, usual: tuple[float, float], limits: tuple[float, float]
) -> tuple[float, float]:
    low = usual[0] if low is None else low
    high = usual[1] if high is None else high
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and str(dtype) not in INTEGERS:
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types "
            "is deprecated since 2.1 and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < limits[0] or low >= limits[1]:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), "
            f"but {dtype} only supports [{limits[0]}, {limits[1]})"
        )
    return max(low, limits[0]), min(high, limits[1])
