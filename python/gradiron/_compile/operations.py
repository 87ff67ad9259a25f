"""Operators, observed: what they depend on besides their operands."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from .. import _core
from .._core import Tensor
from .._creation import strided
from . import containers
from .attributes import lookup
from .guards import MISSING, is_constant
from .live import ReadNumber, is_live, plain
from .signs import BINARY, COMPARE, INPLACE, MIRRORED, UNARY

if TYPE_CHECKING:
    from .observer import Observer

__all__ = ["binary", "compare", "formatted", "inplace", "is_printable", "tested", "unary"]

_SINGLE = frozenset((type(None), bool, type(...), type(NotImplemented)))


_KNOWN: Any = (Tensor, list, dict, set, tuple, frozenset, str, bytes, type, type({}.keys()), type({}.items()))


def _note_operands(o: Observer, names: tuple[str, ...], *operands: Any) -> None:
    """Note what decides which method runs, and what C reads of the operands."""
    for value in operands:
        if isinstance(value, Tensor):
            o.use(value)
        elif isinstance(value, (list, set)):
            o.note_elements(value)
        elif isinstance(value, dict):
            o.note_dict(value)
        if is_constant(value):
            continue
        o.note_type(value)
        for name in names:
            o.note_class(type(value), name)
            found = lookup(type(value), name)
            own = found is MISSING or isinstance(found, types.FunctionType) or found is getattr(object, name, MISSING)
            if not own and not isinstance(value, _KNOWN) and not _has_plain_value(value):
                o.stop(f"it calls {name} of a {type(value).__name__}, which is not known to be free of hidden inputs")


def _has_plain_value(value: Any) -> bool:
    """Return whether it is an immutable value of Python's in a class of its own, such as a member of an `IntEnum`."""
    return isinstance(value, (int, float, complex)) or callable(value) or value is NotImplemented or isinstance(value, range)


# Where kernels take a number from a tensor as they take one from Python, to the bit.
_TAKES_TENSOR = frozenset(("+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!="))


def _with_tensors(o: Observer, sign: str, left: Any, right: Any) -> tuple[Any, Any]:
    """Return the operands of an operator, a tensor in place of a live number beside a tensor."""
    if sign in _TAKES_TENSOR:
        if is_live(right) and isinstance(left, Tensor):
            made = o.tensor_of(right, left)
            return (left, right) if made is None else (left, made)
        if is_live(left) and isinstance(right, Tensor) and sign in "+*":
            made = o.tensor_of(left, right)
            return (left, right) if made is None else (made, right)
    return left, right


def _name(function: Any) -> str:
    """Return what the method of an operator is called, without underscores."""
    return str(function.__name__).strip("_")


def binary(o: Observer, sign: str, left: Any, right: Any) -> Any:
    """Return `left + right`, observed."""
    if is_live(left) or is_live(right):
        found = o.tape.binary(sign, left, right)
        if found is not MISSING:
            return found
        left, right = _with_tensors(o, sign, left, right)
    left, right = plain(left), plain(right)
    function, name = BINARY[sign], _name(BINARY[sign])
    if is_constant(left) and is_constant(right):
        return function(left, right)
    forward, backward = f"__{name}__", f"__r{name}__"
    _note_operands(o, (forward, backward), left, right)
    if sign == "%" and isinstance(left, str) and not is_printable(o, right):
        o.stop(f"it formats a {type(right).__name__}")
    own, other = lookup(type(left), forward), lookup(type(right), backward)
    if isinstance(own, types.FunctionType) and not (
        type(right) is not type(left) and issubclass(type(right), type(left)) and isinstance(other, types.FunctionType)
    ):
        found = o.call(own, left, right)
        if found is not NotImplemented:
            return found
        if isinstance(other, types.FunctionType) and type(right) is not type(left):
            found = o.call(other, right, left)
            if found is not NotImplemented:
                return found
    return o.make(function(left, right))


def inplace(o: Observer, sign: str, left: Any, right: Any) -> Any:
    """Return the result of `left += right`, observed."""
    if is_live(left):
        return binary(o, sign, left, right)
    if is_live(right):
        if is_constant(left):
            return binary(o, sign, left, right)
        left, right = _with_tensors(o, sign, left, right)
    left, right = plain(left), plain(right)
    name = _name(BINARY[sign])
    if is_constant(left):
        return binary(o, sign, left, right)
    own = lookup(type(left), f"__i{name}__")
    o.note_type(left)
    o.note_class(type(left), f"__i{name}__")
    if isinstance(own, types.FunctionType):
        return o.call(own, left, right)
    if isinstance(left, Tensor):
        _note_operands(o, (), left, right)
        return INPLACE[sign](left, right)
    if type(left) is list and sign == "+" and not o.is_fresh(left) and id(left) not in o.containers:
        containers.append_each(o, left, right)
        return left
    if isinstance(left, (list, dict, set)) and not o.is_fresh(left):
        o.stop(f"it changes a {type(left).__name__} that is older than the call by {sign}=")
    if isinstance(left, list):
        left += containers.walked(o, right)
        return left
    if isinstance(left, (dict, set)):
        _note_operands(o, (), right)
        return INPLACE[sign](left, right)
    return binary(o, sign, left, right)


def unary(o: Observer, sign: str, value: Any) -> Any:
    """Return `-value`, observed."""
    if is_live(value):
        found = o.tape.unary(sign, value)
        if found is not MISSING:
            return found
    value = plain(value)
    function, name = UNARY[sign], f"__{_name(UNARY[sign])}__"
    if is_constant(value):
        return function(value)
    _note_operands(o, (name,), value)
    own = lookup(type(value), name)
    if isinstance(own, types.FunctionType):
        return o.call(own, value)
    return o.make(function(value))


def compare(o: Observer, sign: str, left: Any, right: Any) -> Any:
    """Return `left < right`, observed."""
    if is_live(left) or is_live(right):
        found = o.tape.compare(sign, left, right)
        if found is not MISSING:
            return found
        if sign in ("is", "is not") and not all(isinstance(each, (int, float)) for each in (left, right)):
            return sign == "is not"
        left, right = _with_tensors(o, sign, left, right)
    left, right = plain(left), plain(right)
    if sign in ("is", "is not"):
        kind = type(left)
        if kind is type(right) and is_constant(left) and kind not in _SINGLE and kind is not _core.dtype:
            o.stop(f"it asks whether a {kind.__name__} is the same object as another")
        _pin_identity(o, left, right)
        return (left is right) if sign == "is" else (left is not right)
    if sign in ("in", "not in"):
        found = _contains(o, right, left)
        return found if sign == "in" else not found
    function = COMPARE[sign]
    forward, backward = (f"__{_name(COMPARE[each])}__" for each in (sign, MIRRORED[sign]))
    if is_constant(left) and is_constant(right):
        return function(left, right)
    _note_operands(o, (forward, backward, *(("__eq__",) if sign == "!=" else ())), left, right)
    for one, two, name in ((left, right, forward), (right, left, backward)):
        own = lookup(type(one), name)
        # `!=` is the contrary of `==` where a class has only that.
        contrary = sign == "!=" and own is object.__ne__
        own = lookup(type(one), "__eq__") if contrary else own
        if isinstance(own, types.FunctionType):
            found = o.call(own, one, two)
            if found is not NotImplemented:
                return not o.tested(found) if contrary else found
    if not isinstance(left, Tensor) and not isinstance(right, Tensor):
        for value in (left, right):
            if not _compares_by_content(value):
                o.stop(f"it compares a {type(value).__name__}")
            o.pin(value)
    found = function(left, right)
    return o.make(found) if isinstance(found, Tensor) else found


def _pin_identity(o: Observer, left: Any, right: Any) -> None:
    """Note that the call asks whether two tensors are the same object. Of two arguments that is part of their structure, and
    what the call made is no other object."""
    if isinstance(left, Tensor) and isinstance(right, Tensor) and not (o.is_argument(left) and o.is_argument(right)):
        if not o.is_fresh(left) and not o.is_fresh(right):
            o.pin(left)
            o.pin(right)


def _compares_by_content(value: Any) -> bool:
    """Return whether `==` asks nothing but what was noted: plain values, and objects that are compared by identity."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(_compares_by_content, value))
    if isinstance(value, dict):
        return all(map(_compares_by_content, value.values()))
    return (
        is_constant(value)
        or (lookup(type(value), "__eq__") is object.__eq__ and not isinstance(value, Tensor))
        or isinstance(value, type)
    )


def _contains(o: Observer, owner: Any, value: Any) -> bool:
    kind = type(owner)
    own = lookup(kind, "__contains__")
    if isinstance(own, types.FunctionType):
        o.note_type(owner)
        o.note_class(kind, "__contains__")
        return bool(o.tested(o.call(own, owner, value)))
    if isinstance(owner, Tensor):
        o.stop("it asks what is in a tensor")
        return value in owner
    if isinstance(owner, dict) and not o.is_fresh(owner) and id(owner) not in o.containers:
        return bool(containers.method(o, owner.__contains__, owner, "__contains__", (value,), {}))
    if isinstance(owner, (list, set)):
        o.note_elements(owner)
    elif isinstance(owner, frozenset) and all(map(_compares_by_content, owner)):
        pass
    elif not is_constant(owner) and not isinstance(owner, tuple) and not o.is_fresh(owner) and id(owner) not in o.containers:
        o.stop(f"it asks what is in a {kind.__name__}")
    if isinstance(owner, (list, tuple)) and not all(map(_compares_by_content, (*owner, value))):
        o.stop(f"it looks for a {type(value).__name__} among tensors or objects")
    o.pin(value)
    return value in owner


def decided(o: Observer, value: Tensor, truth: bool) -> Any:
    """Return the number in a tensor, or its truth: a replay in which it is another one gives up. The tensor itself if that
    cannot be."""
    if value.numel() != 1 or value.is_meta or value.layout is not strided:
        o.stop("it decides by the elements of a tensor")
        return value
    found = _core.decide(value, truth)
    reason = _core.capture_reason()
    if reason is not None and o.reason is None:
        o.stop(reason)
    return bool(found) if truth else found


def number(o: Observer, value: Tensor) -> Any:
    """Return `value.item()`, observed."""
    if value.numel() != 1 or value.is_meta or value.layout is not strided or value.is_complex():
        o.stop("it reads the elements of a tensor")
        return value.item()
    o.use(value)
    return o.read_number(value) if value.is_floating_point() else decided(o, value, truth=False)


def tested(o: Observer, value: Any) -> Any:
    """Return a value whose truth is asked for, observed."""
    if is_live(value) and not isinstance(value, ReadNumber):
        return value  # it notes that itself
    value = plain(value)
    if is_constant(value):
        return value
    if isinstance(value, Tensor):
        return decided(o, value, truth=True)
    kind = type(value)
    o.note_type(value)
    for name in ("__bool__", "__len__"):
        o.note_class(kind, name)
        own = lookup(kind, name)
        if isinstance(own, types.FunctionType):
            return bool(o.call(own, value))
        if own is MISSING:
            continue
        if name == "__len__" and isinstance(value, (list, dict, set)):
            containers.note_len(o, value)
        elif not isinstance(value, _KNOWN) and not _has_plain_value(value) and not o.is_fresh(value):
            o.stop(f"it asks for the truth of a {kind.__name__}")
    return value


def is_printable(o: Observer, value: Any) -> bool:
    """Return whether showing a value runs no code and reads nothing that was not noted."""
    if is_constant(value):
        return True
    if isinstance(value, (list, tuple, set, frozenset)) and type(value) in (list, tuple, set, frozenset):
        if isinstance(value, (list, set)):
            o.note_elements(value)
        return all(is_printable(o, each) for each in value)
    if type(value) is dict:
        o.note_dict(value)
        return all(is_printable(o, each) for each in (*value, *value.values()))
    return isinstance(value, _core.dtype) or isinstance(value, BaseException)


def formatted(o: Observer, value: Any) -> Any:
    """Return a value that is shown, observed."""
    value = plain(value)
    if not is_printable(o, value):
        o.stop(f"it shows a {'tensor' if isinstance(value, Tensor) else type(value).__name__}")
    return value
