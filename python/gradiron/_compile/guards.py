"""Guards: what a captured call read, compared before each replay.

A read is a tuple `(kind, object, key, expected)`:

    "type"    `type(object)` is `expected`
    "vars"    `object.__dict__` is `expected`
    "item"    the dict `object` holds `expected` under `key`, or nothing if `expected` is `MISSING`
    "element" the list `object` is longer than the int `key` and holds `expected` there
    "cell"    the cell `object` holds `expected`, or is empty if that is `MISSING`
    "attr"    `getattr(object, key)` is `expected`, or there is no such attribute: only where no Python code answers
    "len"     `len(object)` is `expected`
    "list"    the list `object` has the elements of the tuple `expected`
    "set"     the set `object` has the elements of the tuple `expected`, in this order
    "keys"    the dict `object` has the keys of the tuple `expected`, in this order
    "dict"    the dict `object` has the keys and values `(keys, values)`, in this order
    "tensor"  `fingerprint(object)` equals `expected`

Values are compared by `matches`: plain constants by type and value, anything else by identity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import strided
from ..amp.autocast_mode import _state as _autocast_state

__all__ = [
    "MISSING",
    "Guards",
    "fingerprint",
    "is_constant",
    "matches",
    "quick_kind",
    "sharing",
    "thread_state",
]

Read = tuple[str, Any, Any, Any]


class _Missing:
    """Stands for what is not there."""

    def __repr__(self) -> str:
        return "nothing"


MISSING = _Missing()

_PLAIN = (int, str, bytes, bool, type(None), type(...))
_CONSTANT = frozenset((*_PLAIN, float, complex, tuple, frozenset, range, slice, _core.device, _core.dtype))
_BY_VALUE = frozenset((int, str, bytes, float, complex, tuple, frozenset, range, slice, _core.device))


def is_constant(value: Any) -> bool:
    """Return whether a value is a plain constant, all the way down."""
    kind = type(value)
    if kind in (tuple, frozenset):
        return all(map(is_constant, value))
    return kind in _CONSTANT or (isinstance(value, tuple) and isinstance(value, _core.Sizes))


def matches(value: Any, expected: Any) -> bool:
    """Return whether a value is the same object as expected, or an equal plain constant."""
    if value is expected:
        return True
    kind = type(value)
    if kind is not type(expected):
        return False
    if kind in (tuple, frozenset) or isinstance(value, _core.Sizes):
        if kind is frozenset:
            return is_constant(value) and is_constant(expected) and bool(value == expected)
        return len(value) == len(expected) and all(map(matches, value, expected))
    if kind is float:
        return bool(value == expected and math.copysign(1.0, value) == math.copysign(1.0, expected))
    if kind is slice:
        return matches((value.start, value.stop, value.step), (expected.start, expected.stop, expected.step))
    if kind is complex:
        return matches((value.real, value.imag), (expected.real, expected.imag))
    return kind in _BY_VALUE and bool(value == expected)


def fingerprint(tensor: Tensor) -> tuple[Any, ...]:
    """Return what decides which kernels run on a tensor: all but its elements and its memory."""
    return (*_layout(tensor), _hooks(tensor), _gradient(tensor))


def _layout(tensor: Tensor) -> tuple[Any, ...]:
    return (
        type(tensor),
        tensor.dtype,
        str(tensor.device),
        tuple(tensor.shape),
        tensor.stride() if tensor.layout is strided else None,
        tensor.storage_offset() if tensor.layout is strided else None,
        tensor.requires_grad,
        tensor.is_leaf,
        tensor.is_conj(),
        tensor.is_neg(),
        tensor.is_inference(),
    )


def _hooks(tensor: Tensor) -> tuple[Any, ...] | None:
    """Return the functions that backward calls with the gradient of a tensor."""
    own: Any = tensor
    found = [own._backward_hooks, own._post_accumulate_grad_hooks] if tensor.requires_grad and tensor.is_leaf else []
    return tuple(hook for hooks in found if hooks for hook in hooks.values()) or None


def _gradient(tensor: Tensor) -> tuple[Any, ...] | None:
    grad = tensor.grad if tensor.is_leaf or tensor.retains_grad else None
    return None if grad is None else _layout(grad)


def sharing(tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """Return for each tensor the number of the first one that shares its memory."""
    first: dict[int, int] = {}
    return tuple(first.setdefault(tensor._storage_id(), number) for number, tensor in enumerate(tensors))


def quick_kind(tensor: Tensor) -> tuple[Any, ...]:
    """Return what most calls ask of a tensor among its arguments; `fingerprint` is all of it."""
    return (type(tensor), tensor.dtype, tensor.shape, tensor.requires_grad, tensor.is_cpu)


def thread_state() -> Any:
    """Return the modes of this thread that decide what operators do; `None` where calls are not captured: inside of a
    transform, a mode that overrides operators, hooks for saved tensors, a dual level, or anomaly detection."""
    modes = _core.thread_modes()
    if modes is None:
        return None
    place, autocast = _core.thread_device(), _autocast_state
    if place is None and True not in autocast.on.values():
        return modes
    return (modes, None if place is None else str(place), *autocast.on.values(), *autocast.dtypes.values())


class Guards:
    """The reads of a captured call, those of one object side by side.

    Args:
        reads: the reads.
        shared: `sharing` of the tensors that the call was given and read.
    """

    def __init__(self, reads: Sequence[Read], shared: tuple[int, ...]) -> None:
        self.reads = list(reads)
        self.shared = shared

    def failed(self, known: Sequence[Tensor]) -> int | None:
        """Return the number of the first read that differs, that of the sharing of memory being the last; `None` if all hold.

        Args:
            known: the tensors that this call is given and reads, in the order of the capture.
        """
        for number, read in enumerate(self.reads):
            if not holds(read):
                return number
        return None if sharing(known) == self.shared else len(self.reads)


def holds(read: Read) -> bool:
    """Return whether a read gives what is expected."""
    kind, owner, key, expected = read
    if kind == "item":
        return matches(dict.get(owner, key, MISSING), expected)
    if kind == "type":
        return type(owner) is expected
    if kind == "vars":
        return getattr(owner, "__dict__", None) is expected
    if kind == "tensor":
        found = fingerprint(owner)
        return len(found) == len(expected) and matches(found, expected)
    if kind == "attr":
        return matches(getattr(owner, key, MISSING), expected)
    if kind == "cell":
        return matches(cell_contents(owner), expected)
    if kind == "len":
        return len(owner) == expected
    if kind == "element":
        return len(owner) > key and matches(owner[key], expected)
    if kind == "keys":
        return len(owner) == len(expected) and all(map(matches, owner, expected))
    if kind == "dict":
        keys, values = expected
        return len(owner) == len(keys) and all(map(matches, owner, keys)) and all(map(matches, owner.values(), values))
    return len(owner) == len(expected) and all(map(matches, owner, expected))


def cell_contents(cell: Any) -> Any:
    """Return what a cell of a closure holds."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING
