"""`assert_close`: comparison of results up to rounding errors."""

from __future__ import annotations

import cmath
import dataclasses
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import gradiron

if TYPE_CHECKING:
    from gradiron import Tensor

Path = tuple[Any, ...]
Message = str | Callable[[str], str] | None

# (relative, absolute), by dtype; whatever is not listed has to be equal
TOLERANCES = {
    "torch.float16": (1e-3, 1e-5),
    "torch.bfloat16": (1.6e-2, 1e-5),
    "torch.float32": (1.3e-6, 1e-5),
    "torch.float64": (1e-7, 1e-7),
    "torch.complex64": (1.3e-6, 1e-5),
    "torch.complex128": (1e-7, 1e-7),
}
DTYPE_OF_NUMBER: dict[type, str] = {int: "torch.int64", float: "torch.float64", complex: "torch.complex128"}


class Mismatch(Exception):
    """A mismatch, before it becomes the user's exception."""

    def __init__(self, kind: type[Exception], text: str, path: Path) -> None:
        super().__init__(text)
        self.kind, self.text, self.path = kind, text, path

    def as_error(self, message: Message = None) -> Exception:
        if isinstance(message, str):
            return self.kind(message)
        where = "".join(f"[{key!r}]" for key in self.path)
        text = f"{self.text}\n\nThe failure occurred for item {where}" if where else self.text
        return self.kind(message(text) if message else text)


@dataclasses.dataclass(frozen=True)
class Options:
    """The keyword arguments of `assert_close`."""

    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool


Comparison = Callable[[], None]


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """Assert that two results are close: `abs(actual - expected) <= atol + rtol * abs(expected)`.

    It compares tensors, what `as_tensor` accepts, and sequences, mappings and dataclasses of these. Shapes must match.
    Infinities are close only if equal. Give both tolerances or none.

    Args:
        actual: result to test.
        expected: result to compare with.
        allow_subclasses: allow different classes, if one is a subclass of the other. Default: `True`
        rtol: relative tolerance; depends on the dtype if `None`.
        atol: absolute tolerance; depends on the dtype if `None`.
        equal_nan: treat NaNs as equal. Default: `False`
        check_device: require equal devices. Default: `True`
        check_dtype: require equal dtypes. Default: `True`
        check_layout: require equal layouts. Default: `True`
        check_stride: require equal strides. Default: `False`
        msg: message of the error, or a function that makes one from the automatic message.

    Raises:
        AssertionError: if they are not close.

    Examples:
        >>> torch.testing.assert_close(torch.tensor(1.0), torch.tensor(1.0000001))
        >>> torch.testing.assert_close(torch.ones(2), torch.tensor([1.0, 2.0]))
        Traceback (most recent call last):
        AssertionError: Tensor-likes are not close!
    """
    __tracebackhide__ = True
    options = Options(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride)
    try:
        comparisons = list(_comparisons(actual, expected, (), options))
    except Mismatch as found:
        raise found.as_error() from None
    for compare in comparisons:
        try:
            compare()
        except Mismatch as found:
            raise found.as_error(msg) from None


def _comparisons(actual: Any, expected: Any, path: Path, options: Options) -> Iterator[Comparison]:
    """The comparisons that the two structures ask for; shapes of structures are compared right here."""
    if _are(Sequence, actual, expected) and not isinstance(actual, str) and not isinstance(expected, str):
        if len(actual) != len(expected):
            text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            raise Mismatch(AssertionError, text, path)
        for position in range(len(actual)):
            yield from _comparisons(actual[position], expected[position], (*path, position), options)
    elif _are(Mapping, actual, expected):
        for key in _common_keys(actual, expected, path):
            yield from _comparisons(actual[key], expected[key], (*path, key), options)
    elif _is_dataclass(actual) and type(actual) is type(expected):
        for field in dataclasses.fields(actual):
            if field.compare:
                parts = getattr(actual, field.name), getattr(expected, field.name)
                yield from _comparisons(*parts, (*path, field.name), options)
    else:
        yield _comparison(actual, expected, path, options)


def _are(kind: type | tuple[type, ...], actual: Any, expected: Any) -> bool:
    return isinstance(actual, kind) and isinstance(expected, kind)


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _common_keys(actual: Mapping[Any, Any], expected: Mapping[Any, Any], path: Path) -> list[Any]:
    if actual.keys() != expected.keys():
        raise Mismatch(
            AssertionError,
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(expected.keys() - actual.keys())}\n"
            f"Additional keys in the actual mapping: {sorted(actual.keys() - expected.keys())}",
            path,
        )
    keys = list(actual)
    with suppress(TypeError):  # keys of several types have no order
        keys.sort()
    return keys


def _comparison(actual: Any, expected: Any, path: Path, options: Options) -> Comparison:
    """How to compare two things that are not structures."""
    if actual is None or expected is None:
        return lambda: _compare_none(actual, expected, path)
    actual, expected = (v.item() if _is_numpy_number(v) else v for v in (actual, expected))
    if _are(bool, actual, expected):
        return lambda: _compare_bools(actual, expected, path)
    if type(actual) in DTYPE_OF_NUMBER and type(expected) in DTYPE_OF_NUMBER:
        dtypes = (DTYPE_OF_NUMBER[type(actual)], DTYPE_OF_NUMBER[type(expected)])
        rtol, atol = _tolerances(dtypes, options, path)
        return lambda: _compare_numbers(actual, expected, rtol, atol, path, options)
    tensors = _as_tensors(actual, expected) if _related(actual, expected, options) else None
    if tensors is not None:
        a, e = tensors
        rtol, atol = _tolerances((str(a.dtype), str(e.dtype)), options, path)
        return lambda: _compare_tensors(a, e, rtol, atol, path, options)
    text = f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
    raise Mismatch(TypeError, text, path)


def _is_numpy_number(value: Any) -> bool:
    return type(value).__module__ == "numpy" and isinstance(value, numbers.Number)


def _related(actual: Any, expected: Any, options: Options) -> bool:
    if not options.allow_subclasses:
        return type(actual) is type(expected)
    return isinstance(actual, type(expected)) or isinstance(expected, type(actual))


def _as_tensors(actual: Any, expected: Any) -> tuple[Tensor, Tensor] | None:
    try:
        return gradiron.as_tensor(actual), gradiron.as_tensor(expected)
    except (TypeError, ValueError, RuntimeError):
        return None


def _tolerances(dtypes: Sequence[str], options: Options, path: Path) -> tuple[float, float]:
    rtol, atol = options.rtol, options.atol
    if rtol is not None and atol is not None:
        return rtol, atol
    if rtol is not None or atol is not None:
        missing = "rtol" if rtol is None else "atol"
        text = f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
        raise Mismatch(ValueError, text, path)
    usual = [TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
    return max(r for r, _ in usual), max(a for _, a in usual)


# --- the comparisons ---


def _compare_none(actual: Any, expected: Any, path: Path) -> None:
    if actual is not expected:
        raise Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}", path)


def _compare_bools(actual: bool, expected: bool, path: Path) -> None:
    if actual is not expected:
        raise Mismatch(AssertionError, f"Booleans mismatch: {actual} is not {expected}", path)


def _compare_numbers(actual: complex, expected: complex, rtol: float, atol: float, path: Path, options: Options) -> None:
    if options.check_dtype and type(actual) is not type(expected):
        text = f"The (d)types do not match: {type(actual)} != {type(expected)}."
        raise Mismatch(AssertionError, text, path)
    if actual == expected or (options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return
    difference = abs(actual - expected)
    if not cmath.isfinite(difference) or difference > atol + rtol * abs(expected):
        raise Mismatch(AssertionError, _scalar_report(actual, expected, rtol, atol), path)


def _compare_tensors(actual: Tensor, expected: Tensor, rtol: float, atol: float, path: Path, options: Options) -> None:
    _compare_attributes(actual, expected, path, options)
    if actual.device != expected.device or actual.device.type != "cpu":
        actual, expected = actual.cpu(), expected.cpu()
    if actual.dtype != expected.dtype:
        dtype = gradiron.promote_types(actual.dtype, expected.dtype)
        actual, expected = actual.to(dtype), expected.to(dtype)
    actual, expected = _plain(actual.detach()), _plain(expected.detach())
    close = _isclose(actual, expected, rtol, atol, options.equal_nan)
    if close.all().item():
        return
    if actual.dim() == 0:
        report = _scalar_report(actual.item(), expected.item(), rtol, atol)
    else:
        report = _tensor_report(actual, expected, close, rtol, atol)
    raise Mismatch(AssertionError, report, path)


def _plain(x: Tensor) -> Tensor:
    """A tensor without a class whose operators may do something else."""
    return x.as_subclass(gradiron.Tensor) if x.layout == gradiron.strided else x


def _compare_attributes(actual: Tensor, expected: Tensor, path: Path, options: Options) -> None:
    checks: list[tuple[str, bool, Any, Any]] = [("shape", True, actual.shape, expected.shape)]
    if options.check_layout and hasattr(actual, "layout"):
        checks.append(("layout", True, actual.layout, expected.layout))
    checks += [
        ("stride()", options.check_stride, actual.stride(), expected.stride()),
        ("device", options.check_device, actual.device, expected.device),
        ("dtype", options.check_dtype, actual.dtype, expected.dtype),
    ]
    for name, checked, a, e in checks:
        if checked and a != e:
            text = f"The values for attribute '{name}' do not match: {a} != {e}."
            raise Mismatch(AssertionError, text, path)


def _is_inexact(t: Tensor) -> bool:
    return t.dtype.is_floating_point or t.dtype.is_complex


def _isclose(actual: Tensor, expected: Tensor, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance}")
    close = actual == expected
    if equal_nan and _is_inexact(actual):
        close = close | ((actual != actual) & (expected != expected))
    if rtol == 0 and atol == 0:
        return close
    if not _is_inexact(actual):
        actual, expected = actual.to(gradiron.float64), expected.to(gradiron.float64)
    difference = (actual - expected).abs()
    return close | ((difference <= atol + (expected * rtol).abs()) & (difference < float("inf")))


# --- the reports ---


def _scalar_report(actual: Any, expected: Any, rtol: float, atol: float) -> str:
    absolute = abs(actual - expected)
    relative = float("inf") if expected == 0 else absolute / abs(expected)
    lines = [f"Scalars are not {_wanted(rtol, atol)}!", "", f"Expected {expected} but got {actual}."]
    lines.append(f"Absolute difference: {absolute}{_allowed(atol, rtol, atol)}")
    lines.append(f"Relative difference: {relative}{_allowed(rtol, rtol, atol)}")
    return "\n".join(lines)


def _tensor_report(actual: Tensor, expected: Tensor, close: Tensor, rtol: float, atol: float) -> str:
    shape, count = list(close.shape), close.numel()
    wrong = count - int(close.sum().item())
    lines = [f"Tensor-likes are not {_wanted(rtol, atol)}!", ""]
    lines.append(f"Mismatched elements: {wrong} / {count} ({wrong / count:.1%})")
    if not _is_inexact(actual):
        actual, expected = actual.to(gradiron.int64), expected.to(gradiron.int64)
    difference = (actual - expected).abs().reshape(-1).masked_fill(close.reshape(-1), 0)
    ratio = (difference / expected.abs().reshape(-1)).masked_fill(close.reshape(-1), 0)
    for name, values, tolerance in (("absolute", difference, atol), ("relative", ratio, rtol)):
        greatest, position = values.max(0)
        place = _unravelled(int(position.item()), shape)
        allowed = _allowed(tolerance, rtol, atol)
        lines.append(f"Greatest {name} difference: {greatest.item()} at index {place}{allowed}")
    return "\n".join(lines)


def _wanted(rtol: float, atol: float) -> str:
    return "equal" if rtol == 0 and atol == 0 else "close"


def _allowed(tolerance: float, rtol: float, atol: float) -> str:
    return "" if rtol == 0 and atol == 0 else f" (up to {tolerance} allowed)"


def _unravelled(position: int, shape: list[int]) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        position, place = divmod(position, size)
        index.insert(0, place)
    return tuple(index)
