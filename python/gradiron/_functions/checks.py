"""`torch._check` and its kin: conditions of programs, and the exceptions of those that do not hold."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor

_Message = str | Callable[[], object] | None

_UNTOLD = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
    "enhancement request to PyTorch.)"
)


def _raise(error_type: type[BaseException], message: _Message) -> None:
    if message is None:
        raise error_type(_UNTOLD)
    if not isinstance(message, str) and not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(message if isinstance(message, str) else str(message()))


def _check_with(error_type: type[BaseException], cond: bool, message: _Message) -> None:
    """Raises an `error_type` unless `cond`."""
    if isinstance(cond, Tensor):
        raise TypeError(
            "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert that all "
            "elements are true."
        )
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        _raise(error_type, message)


def _check(cond: bool, message: _Message = None) -> None:
    """Raises a RuntimeError unless `cond`."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: _Message = None) -> None:
    """Raises an IndexError unless `cond`."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: _Message = None) -> None:
    """Raises a ValueError unless `cond`."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: _Message = None) -> None:
    """Raises a TypeError unless `cond`."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: _Message = None) -> None:
    """Raises a NotImplementedError unless `cond`."""
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all_with(error_type: type[BaseException], cond: Tensor, message: _Message = None) -> None:
    """Raises an `error_type` unless all elements of `cond` are true."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != _core.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    if not cond.all().item():
        _raise(error_type, message)


def _check_tensor_all(cond: Tensor, message: _Message = None) -> None:
    """Raises a RuntimeError unless all elements of `cond` are true."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_is_size(i: Any, message: _Message = None, *, max: Any = None) -> None:
    """Raises a RuntimeError unless `i` can be a size, at most `max`."""
    warnings.warn(
        "_check_is_size will be removed in a future PyTorch release along with guard_size_oblivious.     "
        "Use _check(i >= 0) instead.",
        FutureWarning,
        stacklevel=2,
    )
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)
