"""`_foreach_*`: one operator over every tensor of a list, as optimizers call them. In place they give their first list back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from . import _core
from ._core import Tensor

_UNARY = """
    abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt
    sigmoid sign sin sinh sqrt tan tanh trunc
""".split()
# Operators with a number, a number for each tensor, or a list of tensors beside the first list.
_WITH_ANOTHER = "add sub mul div clamp_max clamp_min maximum minimum pow".split()
_BOUNDS = {"maximum": "clamp_min", "minimum": "clamp_max"}
_LIST = "tuple of Tensors"


def _refuse(name: str, given: Sequence[Any], named: dict[str, Any], forms: Sequence[str]) -> NoReturn:
    got = ", ".join([type(x).__name__ for x in given] + [f"{key}={type(x).__name__}" for key, x in named.items()])
    lines = "".join(f" * ({form})\n" for form in forms)
    raise TypeError(f"{name}() received an invalid combination of arguments - got ({got}), but expected one of:\n{lines}")


def _is_number(x: Any) -> bool:
    return isinstance(x, (bool, int, float, complex)) or (isinstance(x, Tensor) and x.dim() == 0)


def _is_sequence(x: Any) -> bool:
    return isinstance(x, (list, tuple))


def _is_numbers(x: Any) -> bool:
    return _is_sequence(x) and all(isinstance(v, (bool, int, float, complex)) for v in x)


def _tensors(name: str, x: Any, position: int, parameter: str) -> Sequence[Tensor]:
    if not _is_sequence(x):
        kind = type(x).__name__
        raise TypeError(f"{name}(): argument '{parameter}' (position {position + 1}) must be {_LIST}, not {kind}")
    for i, tensor in enumerate(x):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument {position}, but got {type(tensor).__name__}")
    return x


def _filled(first: Sequence[Tensor], *others: Sequence[Tensor]) -> None:
    """Refuses lists of several lengths, and empty ones."""
    for other in others:
        if len(other) != len(first):
            raise RuntimeError(f"Tensor lists must have the same number of tensors, got {len(first)} and {len(other)}")
    if not first:
        raise RuntimeError("Tensor list must have at least one tensor.")


def _each(first: Sequence[Tensor], numbers: Sequence[Any]) -> Sequence[Any]:
    if len(first) != len(numbers):
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")
    return numbers


def _result(self: Sequence[Tensor], made: Iterable[Tensor], inplace: bool) -> Any:
    found = tuple(made)
    return self if inplace else found


def _method(name: str, inplace: bool) -> Callable[..., Tensor]:
    return getattr(Tensor, f"{name}_" if inplace else name)


def _unary(operator: str, inplace: bool) -> Callable[..., Any]:
    name, method = _name(operator, inplace), _method(operator, inplace)

    def function(self: Any) -> Any:
        _filled(_tensors(name, self, 0, "self"))
        return _result(self, map(method, self), inplace)

    return function


def _with_another(operator: str, inplace: bool) -> Callable[..., Any]:
    name = _name(operator, inplace)
    by_tensor = operator in ("add", "mul", "div")
    scaled = operator in ("add", "sub")
    says = ("exponent", "exponent", "exponent") if operator == "pow" else ("scalar", "scalars", "other")
    alpha_text = ", *, Number alpha = 1" if scaled else ""
    forms = [f"{_LIST} self, Number {says[0]}", f"{_LIST} self, tuple of Scalars {says[1]}"]
    if by_tensor:
        forms.append(f"{_LIST} self, Tensor {says[2]}{', *, Number alpha = 1' if operator == 'add' else ''}")
    forms.append(f"{_LIST} self, {_LIST} {says[2]}{alpha_text}")
    if operator == "pow" and not inplace:
        forms.insert(0, f"Number self, {_LIST} exponent")
    # The limits of `clamp_` may be numbers or tensors; `maximum` has no method in place.
    method = _method(_BOUNDS.get(operator, operator), inplace)

    def function(*given: Any, **named: Any) -> Any:
        arguments = dict(named)
        alpha = arguments.pop("alpha", 1)
        self = given[0] if given else arguments.pop("self", None)
        if len(given) > 1:
            other = given[1]
        else:
            other = next((arguments.pop(key) for key in dict.fromkeys(says) if key in arguments), None)
        if operator == "pow" and not inplace and not _is_sequence(self) and _is_number(self) and _is_sequence(other):
            _filled(_tensors(name, other, 1, "exponent"))
            return tuple(_core.pow(self, x) for x in other)
        if arguments or len(given) > 2 or not _is_sequence(self) or ("alpha" in named and not scaled):
            _refuse(name, given, named, forms)
        _tensors(name, self, 0, "self")
        if _is_sequence(other) and not ("alpha" not in named and _is_numbers(other)):
            _tensors(name, other, 1, says[2])
            _filled(self, other)
            if scaled:
                return _result(self, (method(x, y, alpha=alpha) for x, y in zip(self, other, strict=True)), inplace)
            return _result(self, map(method, self, other), inplace)
        if _is_sequence(other):
            _filled(self)
            return _result(self, map(method, self, _each(self, other)), inplace)
        if isinstance(other, Tensor) and by_tensor:
            if other.dim():
                raise RuntimeError(
                    f"scalar tensor expected to be 0 dim but it has {other.dim()} dimensions and {other.numel()} elements."
                )
            _filled(self)
            return _result(self, (method(x, other, alpha=alpha) if scaled else method(x, other) for x in self), inplace)
        if "alpha" in named or not _is_number(other):
            _refuse(name, given, named, forms)
        _filled(self)
        number = other.item() if isinstance(other, Tensor) else other
        return _result(self, (method(x, number) for x in self), inplace)

    return function


def _with_products(operator: str, inplace: bool) -> Callable[..., Any]:
    """`addcmul` and `addcdiv`: the last argument is a number, one for each tensor, or those in a tensor."""
    name, method = _name(operator, inplace), _method(operator, inplace)
    lists = f"{_LIST} self, {_LIST} tensor1, {_LIST} tensor2"
    forms = [f"{lists}, tuple of Scalars scalars", f"{lists}, Tensor scalars", f"{lists}, Number value = 1"]

    def function(self: Any, tensor1: Any, tensor2: Any, *last: Any, **named: Any) -> Any:
        values = [*last, *named.values()]
        value: Any = values[0] if values else 1
        fits = _is_numbers(value) or isinstance(value, Tensor) or _is_number(value)
        fits = fits and (_is_number(value) if "value" in named else "scalars" not in named or not _is_number(value))
        if (
            len(values) > 1
            or not set(named) <= {"value", "scalars"}
            or not fits
            or not all(map(_is_sequence, (self, tensor1, tensor2)))
        ):
            _refuse(name, (self, tensor1, tensor2, *last), named, forms)
        for at, (tensors, parameter) in enumerate(((self, "self"), (tensor1, "tensor1"), (tensor2, "tensor2"))):
            _tensors(name, tensors, at, parameter)
        if isinstance(value, Tensor):
            if value.dim() != 1:
                raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {value.dim()} instead.")
            if len(value) != len(self):
                raise RuntimeError(
                    f"Expected length of scalars to match input of length {len(self)} but got {len(value)} instead."
                )
            value = value.tolist()
        _filled(self, tensor1, tensor2)
        factors = _each(self, value) if _is_sequence(value) else [value] * len(self)
        made = (method(x, a, b, value=v) for x, a, b, v in zip(self, tensor1, tensor2, factors, strict=True))
        return _result(self, made, inplace)

    return function


def _lerp(inplace: bool) -> Callable[..., Any]:
    name, method = _name("lerp", inplace), _method("lerp", inplace)
    lists = f"{_LIST} self, {_LIST} tensors1"
    forms = [f"{lists}, Number weight", f"{lists}, tuple of Scalars weight", f"{lists}, {_LIST} weights"]

    def function(self: Any, tensors1: Any, *last: Any, **named: Any) -> Any:
        values = [*last, *named.values()]
        fits = len(values) == 1 and set(named) <= {"weight", "weights"} and (_is_sequence(values[0]) or _is_number(values[0]))
        if not fits or not _is_sequence(self) or not _is_sequence(tensors1):
            _refuse(name, (self, tensors1, *last), named, forms)
        weight = values[0]
        _tensors(name, self, 0, "self")
        _tensors(name, tensors1, 1, "tensors1")
        if _is_numbers(weight):
            _filled(self, tensors1)
            weights: Sequence[Any] = _each(self, weight)
        elif _is_sequence(weight):
            weights = _tensors(name, weight, 2, "weights")
            _filled(self, tensors1, weights)
        else:
            _filled(self, tensors1)
            weights = [weight.item() if isinstance(weight, Tensor) else weight] * len(self)
        return _result(self, map(method, self, tensors1, weights), inplace)

    return function


def _order(name: str, ord: Any) -> Any:
    if not _is_number(ord):
        raise TypeError(f"{name}(): argument 'ord' (position 2) must be Number, not {type(ord).__name__}")
    return ord.item() if isinstance(ord, Tensor) else ord


def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The norm of each tensor as a vector."""
    _filled(_tensors("_foreach_norm", self, 0, "self"))
    ord = _order("_foreach_norm", ord)
    return tuple(_core.linalg_vector_norm(x, ord, dtype=dtype) for x in self)


def _foreach_powsum(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The sum of the powers of each tensor's absolute values."""
    _filled(_tensors("_foreach_powsum", self, 0, "self"))
    ord = _order("_foreach_powsum", ord)
    for x in self:
        if not (x.is_floating_point() or x.is_complex()):
            raise NotImplementedError(
                f"\"powsum_cpu\" not implemented for '{x.type().removeprefix('torch.').removesuffix('Tensor')}'"
            )
    return tuple((x if dtype is None else x.to(dtype)).abs().pow(ord).sum() for x in self)


def _foreach_max(self: Any) -> tuple[Tensor, ...]:
    """The largest element of each tensor."""
    _filled(_tensors("_foreach_max", self, 0, "self"))
    if not all(x.numel() for x in self):
        raise RuntimeError("_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is undefined.")
    return tuple(x.max() for x in self)


def _foreach_mm(self: Any, mat2: Any) -> tuple[Tensor, ...]:
    """Products of matrices."""
    _tensors("_foreach_mm", self, 0, "self")
    _tensors("_foreach_mm", mat2, 1, "mat2")
    if len(self) != len(mat2):
        raise RuntimeError("_foreach_mm: self and mat2 must have the same number of tensors")
    return tuple(map(_core.mm, self, mat2))


def _foreach_clone(self: Any, *, memory_format: Any = None) -> tuple[Tensor, ...]:
    """Copies."""
    _filled(_tensors("_foreach_clone", self, 0, "self"))
    return tuple(x.clone() if memory_format is None else x.clone(memory_format=memory_format) for x in self)


def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """What the second list holds, written over the first."""
    _tensors("_foreach_copy_", self, 0, "self")
    _filled(self, _tensors("_foreach_copy_", src, 1, "src"))
    return _result(self, (x.copy_(y, non_blocking) for x, y in zip(self, src, strict=True)), True)


def _foreach_zero_(self: Any) -> Any:
    """Zeros everywhere."""
    _filled(_tensors("_foreach_zero_", self, 0, "self"))
    return _result(self, map(Tensor.zero_, self), True)


def _name(operator: str, inplace: bool) -> str:
    return f"_foreach_{operator}{'_' if inplace else ''}"


def _declare(operator: str, make: Callable[[bool], Callable[..., Any]]) -> None:
    for inplace in (False, True):
        function = make(inplace)
        function.__name__ = function.__qualname__ = _name(operator, inplace)
        function.__doc__ = f"`{operator}` of each tensor{', in place' if inplace else ''}."
        globals()[function.__name__] = function


for _operator in _UNARY:
    _declare(_operator, lambda inplace, of=_operator: _unary(of, inplace))  # type: ignore[misc]
for _operator in _WITH_ANOTHER:
    _declare(_operator, lambda inplace, of=_operator: _with_another(of, inplace))  # type: ignore[misc]
for _operator in ("addcmul", "addcdiv"):
    _declare(_operator, lambda inplace, of=_operator: _with_products(of, inplace))  # type: ignore[misc]
_declare("lerp", _lerp)
