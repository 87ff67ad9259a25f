"""Functions of each element, activations and comparisons."""

from __future__ import annotations

import math
from typing import Any

import gradiron

from ..._core import Tensor
from .._table import form
from .._writer import Value, Writer

__all__: list[str] = []

# Operators that ONNX has for one element. Integers are converted where the result is a floating-point number.
_SAME = {
    "__abs__": "Abs",
    "__neg__": "Neg",
    "abs": "Abs",
    "absolute": "Abs",
    "acos": "Acos",
    "acosh": "Acosh",
    "arccos": "Acos",
    "arccosh": "Acosh",
    "arcsin": "Asin",
    "arcsinh": "Asinh",
    "arctan": "Atan",
    "arctanh": "Atanh",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "bitwise_not": "BitwiseNot",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "log": "Log",
    "neg": "Neg",
    "negative": "Neg",
    "reciprocal": "Reciprocal",
    "sgn": "Sign",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "softsign": "Softsign",
    "sqrt": "Sqrt",
    "tan": "Tan",
    "tanh": "Tanh",
}
_WHOLE = frozenset(("Ceil", "Floor", "Round"))


def _add_same(name: str, kind: str) -> None:
    @form(name)
    def write(g: Writer, input: Any) -> Any:
        if kind in _WHOLE and not input.dtype.is_floating_point:
            return input
        if kind == "BitwiseNot":
            if input.dtype == gradiron.bool:
                return g.Not(input)
            g.need(18)
        return getattr(g, kind)(g.cast(input, g.dtype))


for _name, _kind in _SAME.items():
    _add_same(_name, _kind)


@form("round")
def _round(g: Writer, input: Any, *, decimals: int = 0) -> Any:
    if not input.dtype.is_floating_point:
        return input
    return g.Round(input) if decimals == 0 else g.Div(g.Round(g.Mul(input, 10.0**decimals)), 10.0**decimals)


@form("rsqrt")
def _rsqrt(g: Writer, input: Any) -> Any:
    return g.Reciprocal(g.Sqrt(g.cast(input, g.dtype)))


@form("square")
def _square(g: Writer, input: Any) -> Any:
    return g.Mul(input, input)


@form("log2")
def _log2(g: Writer, input: Any) -> Any:
    return g.Div(g.Log(g.cast(input, g.dtype)), math.log(2))


@form("log10")
def _log10(g: Writer, input: Any) -> Any:
    return g.Div(g.Log(g.cast(input, g.dtype)), math.log(10))


@form("log1p")
def _log1p(g: Writer, input: Any) -> Any:
    return g.Log(g.Add(g.cast(input, g.dtype), 1))


@form("exp2")
def _exp2(g: Writer, input: Any) -> Any:
    return g.Exp(g.Mul(g.cast(input, g.dtype), math.log(2)))


@form("expm1")
def _expm1(g: Writer, input: Any) -> Any:
    return g.Sub(g.Exp(g.cast(input, g.dtype)), 1)


@form("erfc")
def _erfc(g: Writer, input: Any) -> Any:
    return g.Sub(g.value(1, g.dtype), g.Erf(g.cast(input, g.dtype)))


@form("trunc", "fix")
def _trunc(g: Writer, input: Any) -> Any:
    return input if not input.dtype.is_floating_point else _truncated(g, input)


def _truncated(g: Writer, x: Any) -> Any:
    return g.Mul(g.Sign(x), g.Floor(g.Abs(x)))


@form("frac")
def _frac(g: Writer, input: Any) -> Any:
    return g.Sub(input, _truncated(g, input))


@form("deg2rad")
def _deg2rad(g: Writer, input: Any) -> Any:
    return g.Mul(g.cast(input, g.dtype), math.pi / 180)


@form("rad2deg")
def _rad2deg(g: Writer, input: Any) -> Any:
    return g.Mul(g.cast(input, g.dtype), 180 / math.pi)


# Two operands.


def pair(g: Writer, input: Any, other: Any) -> tuple[Any, Any]:
    """Return two operands in the dtype of the result.

    Args:
        g: writer.
        input, other: values or numbers.
    """
    return g.cast(input, g.dtype), g.cast(other, g.dtype)


def _stand_in(given: Any) -> Any:
    """A tensor or number of the same dtype and kind, to ask for the dtype of results."""
    if not isinstance(given, (Value, Tensor)):
        return given
    if isinstance(given, Value) and given.is_number:
        return 0
    return gradiron.empty(() if given.ndim == 0 else (0,), dtype=given.dtype)


def common(g: Writer, input: Any, other: Any) -> tuple[Any, Any]:
    """Return two operands in the dtype that they have in common.

    Args:
        g: writer.
        input, other: values or numbers.
    """
    dtype = gradiron.result_type(_stand_in(input), _stand_in(other))
    return g.cast(input, dtype), g.cast(other, dtype)


@form("add", "__add__", "__radd__", "__iadd__")
def _add(g: Writer, input: Any, other: Any, *, alpha: Any = 1) -> Any:
    input, other = pair(g, input, other)
    if g.dtype == gradiron.bool:
        return g.Or(input, other)
    return g.Add(input, other if _is_one(alpha) else g.Mul(other, alpha))


@form("sub", "subtract", "__sub__", "__isub__")
def _sub(g: Writer, input: Any, other: Any, *, alpha: Any = 1) -> Any:
    input, other = pair(g, input, other)
    return g.Sub(input, other if _is_one(alpha) else g.Mul(other, alpha))


@form("rsub", "__rsub__")
def _rsub(g: Writer, input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return _sub(g, other, input, alpha=alpha)


def _is_one(alpha: Any) -> bool:
    return not isinstance(alpha, Value) and alpha == 1


@form("mul", "multiply", "__mul__", "__rmul__", "__imul__")
def _mul(g: Writer, input: Any, other: Any) -> Any:
    input, other = pair(g, input, other)
    return g.And(input, other) if g.dtype == gradiron.bool else g.Mul(input, other)


@form("div", "divide", "true_divide", "__truediv__", "__itruediv__")
def _div(g: Writer, input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    input, other = pair(g, input, other)
    if rounding_mode is None:
        return g.Div(input, other)
    if rounding_mode == "floor":
        return _floor_divide(g, input, other)
    return _truncated(g, g.Div(input, other)) if g.dtype.is_floating_point else g.Div(input, other)


@form("__rtruediv__", "__rdiv__")
def _rdiv(g: Writer, input: Any, other: Any) -> Any:
    return _div(g, other, input)


@form("floor_divide", "__floordiv__", "__ifloordiv__")
def _floor_divide(g: Writer, input: Any, other: Any) -> Any:
    input, other = pair(g, input, other)
    if g.dtype.is_floating_point:
        return g.Floor(g.Div(input, other))
    return g.Div(g.Sub(input, g.Mod(input, other)), other)


@form("__rfloordiv__")
def _rfloor_divide(g: Writer, input: Any, other: Any) -> Any:
    return _floor_divide(g, other, input)


@form("remainder", "__mod__", "__imod__")
def _remainder(g: Writer, input: Any, other: Any) -> Any:
    input, other = pair(g, input, other)
    if g.dtype.is_floating_point:
        return g.Sub(input, g.Mul(g.Floor(g.Div(input, other)), other))
    return g.Mod(input, other)


@form("fmod")
def _fmod(g: Writer, input: Any, other: Any) -> Any:
    return g.Mod(*pair(g, input, other), fmod=1)


@form("pow", "float_power", "__pow__", "__ipow__")
def _pow(g: Writer, input: Any, exponent: Any) -> Any:
    return g.Pow(*pair(g, input, exponent))


@form("__rpow__")
def _rpow(g: Writer, input: Any, other: Any) -> Any:
    return _pow(g, other, input)


@form("maximum", "fmax")
def _maximum(g: Writer, input: Any, other: Any) -> Any:
    return g.Max(*pair(g, input, other))


@form("minimum", "fmin")
def _minimum(g: Writer, input: Any, other: Any) -> Any:
    return g.Min(*pair(g, input, other))


@form("atan2", "arctan2")
def _atan2(g: Writer, input: Any, other: Any) -> Any:
    y, x = pair(g, input, other)
    ratio = g.Atan(g.Div(y, x))
    zero = g.value(0, g.dtype)
    half = g.Where(g.Less(y, zero, dtype=gradiron.bool), g.Sub(ratio, math.pi), g.Add(ratio, math.pi), dtype=g.dtype)
    turned = g.Where(g.Less(x, zero, dtype=gradiron.bool), half, ratio, dtype=g.dtype)
    # Nothing divided by nothing is no number.
    nothing = g.And(g.Equal(x, zero, dtype=gradiron.bool), g.Equal(y, zero, dtype=gradiron.bool))
    return g.Where(nothing, zero, turned, dtype=g.dtype)


@form("hypot")
def _hypot(g: Writer, input: Any, other: Any) -> Any:
    x, y = pair(g, input, other)
    return g.Sqrt(g.Add(g.Mul(x, x), g.Mul(y, y)))


@form("lerp")
def _lerp(g: Writer, input: Any, end: Any, weight: Any) -> Any:
    return g.Add(input, g.Mul(g.Sub(end, input), g.cast(weight, g.dtype)))


@form("addcmul")
def _addcmul(g: Writer, input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    return g.Add(input, g.Mul(g.Mul(tensor1, tensor2), value))


@form("addcdiv")
def _addcdiv(g: Writer, input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    return g.Add(input, g.Mul(g.Div(tensor1, tensor2), value))


@form("xlogy")
def _xlogy(g: Writer, input: Any, other: Any) -> Any:
    x, y = pair(g, input, other)
    zero = g.Equal(x, g.value(0, g.dtype), dtype=gradiron.bool)
    nothing = g.And(zero, g.Not(g.IsNaN(y, dtype=gradiron.bool)))
    return g.Where(nothing, g.value(0, g.dtype), g.Mul(x, g.Log(y)), dtype=g.dtype)


@form("logaddexp")
def _logaddexp(g: Writer, input: Any, other: Any) -> Any:
    x, y = pair(g, input, other)
    return g.Add(g.Max(x, y), g.Log(g.Add(g.Exp(g.Neg(g.Abs(g.Sub(x, y)))), 1)))


@form("heaviside")
def _heaviside(g: Writer, input: Any, values: Any) -> Any:
    zero = g.value(0, g.dtype)
    above = g.cast(g.Greater(input, zero, dtype=gradiron.bool), g.dtype)
    return g.Where(g.Equal(input, zero, dtype=gradiron.bool), values, above, dtype=g.dtype)


@form("sinc")
def _sinc(g: Writer, input: Any) -> Any:
    angle = g.Mul(g.cast(input, g.dtype), math.pi)
    one = g.value(1, g.dtype)
    zero = g.Equal(angle, g.value(0, g.dtype), dtype=gradiron.bool)
    angle = g.Where(zero, one, angle, dtype=g.dtype)
    return g.Where(zero, one, g.Div(g.Sin(angle), angle), dtype=g.dtype)


def _add_shift(name: str, slot: str, direction: str) -> None:
    @form(f"__r{slot}__")
    def reflected(g: Writer, input: Any, other: Any) -> Any:
        return write(g, other, input)

    @form(name, f"__{slot}__")
    def write(g: Writer, input: Any, other: Any) -> Any:
        input, other = pair(g, input, other)
        if g.dtype == gradiron.uint8:
            return g.BitShift(input, other, direction=direction)
        # ONNX shifts unsigned integers only.
        factor = g.Pow(g.value(2, g.dtype), other)
        return g.Mul(input, factor) if direction == "LEFT" else _floor_divide(g, input, factor)


_add_shift("bitwise_left_shift", "lshift", "LEFT")
_add_shift("bitwise_right_shift", "rshift", "RIGHT")


# Comparisons and logic.

_COMPARISONS = {
    ("eq", "__eq__"): "Equal",
    ("ge", "greater_equal", "__ge__"): "GreaterOrEqual",
    ("gt", "greater", "__gt__"): "Greater",
    ("le", "less_equal", "__le__"): "LessOrEqual",
    ("lt", "less", "__lt__"): "Less",
}


def _add_comparison(names: tuple[str, ...], kind: str) -> None:
    @form(*names)
    def write(g: Writer, input: Any, other: Any) -> Any:
        return getattr(g, kind)(*common(g, input, other), dtype=gradiron.bool)


for _names, _kind in _COMPARISONS.items():
    _add_comparison(_names, _kind)


@form("ne", "not_equal", "__ne__")
def _ne(g: Writer, input: Any, other: Any) -> Any:
    return g.Not(g.Equal(*common(g, input, other), dtype=gradiron.bool))


_LOGIC = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
_BITS = {
    ("bitwise_and", "__and__", "__rand__", "__iand__"): "And",
    ("bitwise_or", "__or__", "__ror__", "__ior__"): "Or",
    ("bitwise_xor", "__xor__", "__rxor__", "__ixor__"): "Xor",
}


def _add_logic(names: tuple[str, ...], kind: str, bitwise: bool) -> None:
    @form(*names)
    def write(g: Writer, input: Any, other: Any) -> Any:
        if bitwise and g.dtype != gradiron.bool:
            g.need(18)
            return getattr(g, f"Bitwise{kind}")(*pair(g, input, other))
        return getattr(g, kind)(g.cast(input, gradiron.bool), g.cast(other, gradiron.bool))


for _name, _kind in _LOGIC.items():
    _add_logic((_name,), _kind, bitwise=False)
for _names, _kind in _BITS.items():
    _add_logic(_names, _kind, bitwise=True)


@form("logical_not")
def _logical_not(g: Writer, input: Any) -> Any:
    return g.Not(g.cast(input, gradiron.bool))


@form("__invert__")
def _invert(g: Writer, input: Any) -> Any:
    if input.dtype == gradiron.bool:
        return g.Not(input)
    g.need(18)
    return g.BitwiseNot(input)


@form("isnan")
def _isnan(g: Writer, input: Any) -> Any:
    return g.IsNaN(input, dtype=gradiron.bool)


@form("isinf")
def _isinf(g: Writer, input: Any) -> Any:
    return g.IsInf(input, dtype=gradiron.bool)


@form("isfinite")
def _isfinite(g: Writer, input: Any) -> Any:
    return g.Not(g.Or(g.IsInf(input, dtype=gradiron.bool), g.IsNaN(input, dtype=gradiron.bool)))


@form("isclose")
def _isclose(g: Writer, input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    if equal_nan:
        g.refuse("equal_nan is not supported.")
    x, y = common(g, input, other)
    near = g.Add(g.Mul(g.Abs(y), rtol), atol)
    return g.Or(g.LessOrEqual(g.Abs(g.Sub(x, y)), near, dtype=gradiron.bool), g.Equal(x, y, dtype=gradiron.bool))


@form("where")
def _where(g: Writer, condition: Any, input: Any, other: Any) -> Any:
    return g.Where(g.cast(condition, gradiron.bool), *pair(g, input, other), dtype=g.dtype)


@form("Tensor.where")
def _where_method(g: Writer, input: Any, condition: Any, other: Any) -> Any:
    return _where(g, condition, input, other)


@form("masked_fill")
def masked_fill(g: Writer, input: Any, mask: Any, value: Any) -> Any:
    """Write another value where a mask is true.

    Args:
        g: writer.
        input: value.
        mask: mask that broadcasts to its shape.
        value: number or value of no dimensions.
    """
    return g.Where(mask, g.cast(value, input.dtype), input, dtype=input.dtype)


@form("nan_to_num")
def _nan_to_num(g: Writer, input: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    limits = gradiron.finfo(input.dtype)
    found = masked_fill(g, input, g.IsNaN(input, dtype=gradiron.bool), 0.0 if nan is None else nan)
    up = g.IsInf(input, detect_negative=0, dtype=gradiron.bool)
    found = masked_fill(g, found, up, limits.max if posinf is None else posinf)
    down = g.IsInf(input, detect_positive=0, dtype=gradiron.bool)
    return masked_fill(g, found, down, limits.min if neginf is None else neginf)


@form("clamp", "clip")
def _clamp(g: Writer, input: Any, min: Any = None, max: Any = None) -> Any:
    input = g.cast(input, g.dtype)
    if not any(isinstance(limit, (Value, Tensor)) for limit in (min, max)):
        return g.Clip(input, min, max)
    if min is not None:
        input = g.Max(input, g.cast(min, g.dtype))
    return input if max is None else g.Min(input, g.cast(max, g.dtype))


@form("clamp_min")
def _clamp_min(g: Writer, input: Any, min: Any) -> Any:
    return _clamp(g, input, min)


@form("clamp_max")
def _clamp_max(g: Writer, input: Any, max: Any) -> Any:
    return _clamp(g, input, None, max)


# Activations.


@form("relu")
def _relu(g: Writer, input: Any, inplace: bool = False) -> Any:
    if input.dtype.is_floating_point or g.opset >= 14:
        return g.Relu(input)
    return g.Max(input, 0)


@form("sigmoid", "expit")
def _sigmoid(g: Writer, input: Any) -> Any:
    return g.Sigmoid(g.cast(input, g.dtype))


@form("logit")
def _logit(g: Writer, input: Any, eps: float | None = None) -> Any:
    if eps is not None:
        input = g.Clip(input, eps, 1 - eps)
    return g.Log(g.Div(input, g.Sub(g.value(1, g.dtype), input)))


@form("relu6")
def _relu6(g: Writer, input: Any, inplace: bool = False) -> Any:
    return g.Clip(input, 0, 6)


@form("hardtanh")
def _hardtanh(g: Writer, input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    return g.Clip(input, min_val, max_val)


@form("leaky_relu")
def _leaky_relu(g: Writer, input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    return g.LeakyRelu(input, alpha=float(negative_slope))


@form("rrelu")
def _rrelu(
    g: Writer, input: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Any:
    if training:
        g.refuse("It draws random slopes in training.")
    return g.LeakyRelu(input, alpha=(lower + upper) / 2)


@form("prelu")
def _prelu(g: Writer, input: Any, weight: Any) -> Any:
    if weight.ndim and weight.shape == (1,):
        weight = g.squeeze(weight, 0)  # so that a number stays one
    elif input.ndim > 2:
        weight = g.unsqueeze(weight, *range(1, input.ndim - 1))
    return g.PRelu(input, weight)


@form("elu")
def _elu(g: Writer, input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    return g.Elu(input, alpha=float(alpha))


@form("selu")
def _selu(g: Writer, input: Any, inplace: bool = False) -> Any:
    return g.Selu(input)


@form("celu")
def _celu(g: Writer, input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    return g.Celu(input, alpha=float(alpha))


@form("gelu")
def _gelu(g: Writer, input: Any, approximate: str = "none") -> Any:
    if g.opset >= 20:
        return g.Gelu(input, approximate=approximate)
    if approximate == "tanh":
        cubed = g.Mul(g.Mul(input, input), input)
        inner = g.Mul(g.Add(input, g.Mul(cubed, 0.044715)), math.sqrt(2 / math.pi))
        bent = g.Tanh(inner)
    else:
        bent = g.Erf(g.Div(input, math.sqrt(2)))
    return g.Mul(g.Mul(input, g.Add(bent, 1)), 0.5)


@form("silu")
def _silu(g: Writer, input: Any, inplace: bool = False) -> Any:
    return g.Mul(input, g.Sigmoid(input))


@form("mish")
def _mish(g: Writer, input: Any, inplace: bool = False) -> Any:
    return g.Mul(input, g.Tanh(g.Softplus(input)))


@form("hardsigmoid")
def _hardsigmoid(g: Writer, input: Any, inplace: bool = False) -> Any:
    return g.HardSigmoid(input, alpha=1 / 6, beta=0.5)


@form("hardswish")
def _hardswish(g: Writer, input: Any, inplace: bool = False) -> Any:
    return g.Mul(input, g.HardSigmoid(input, alpha=1 / 6, beta=0.5))


@form("softplus")
def _softplus(g: Writer, input: Any, beta: float = 1, threshold: float = 20) -> Any:
    if beta == 1 and threshold >= 20:
        return g.Softplus(input)
    scaled = g.Mul(input, beta)
    steep = g.Greater(scaled, threshold, dtype=gradiron.bool)
    return g.Where(steep, input, g.Div(g.Softplus(scaled), beta), dtype=g.dtype)


@form("logsigmoid")
def _logsigmoid(g: Writer, input: Any) -> Any:
    return g.Neg(g.Softplus(g.Neg(input)))


@form("tanhshrink")
def _tanhshrink(g: Writer, input: Any) -> Any:
    return g.Sub(input, g.Tanh(input))


@form("hardshrink")
def _hardshrink(g: Writer, input: Any, lambd: float = 0.5) -> Any:
    return g.Shrink(input, lambd=float(lambd), bias=0.0)


@form("softshrink")
def _softshrink(g: Writer, input: Any, lambd: float = 0.5) -> Any:
    return g.Shrink(input, lambd=float(lambd), bias=float(lambd))


@form("threshold")
def _threshold(g: Writer, input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    above = g.Greater(input, threshold, dtype=gradiron.bool)
    return g.Where(above, input, g.value(value, g.dtype), dtype=g.dtype)


@form("glu")
def _glu(g: Writer, input: Any, dim: int = -1) -> Any:
    size = input.shape[dim]
    if size is None:
        g.refuse("The dimension that is halved is dynamic.")
    first, second = g.several("Split", input, [size // 2, size // 2], outputs=2, axis=dim)
    return g.Mul(first, g.Sigmoid(second))


# Conversions, and what changes no element.


@form(
    "bfloat16", "bool", "char", "double", "float", "half", "int", "long", "short", "to", "type", "type_as", "byte", "_cast_as"
)
def _converted(g: Writer, input: Any, *options: Any, **named: Any) -> Any:
    return g.cast(input, g.dtype)


@form("alias", "clone", "contiguous", "cpu", "cuda", "data", "detach", "positive", "real", "requires_grad_", "__pos__", "conj")
def _unchanged(g: Writer, input: Any, *options: Any, **named: Any) -> Any:
    return input
