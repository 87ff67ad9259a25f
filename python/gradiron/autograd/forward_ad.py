"""Forward mode automatic differentiation with dual tensors, which carry a tangent.

with forward_ad.dual_level():
    dual = forward_ad.make_dual(x, v)
    value, tangent = forward_ad.unpack_dual(f(dual))
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING

from .. import _core
from .grad_mode import _Mode

if TYPE_CHECKING:
    from typing import Any

    from .._core import Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

_is_fwd_grad_enabled = _core.is_fwd_grad_enabled

# The level that is entered, as users number it, and the core's own name for it: inside of a transform that of its duals.
_current_level = -1
_number = _outermost = 0

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ("primal", "tangent"))
UnpackedDualTensor.__doc__ = """The value of a dual tensor and its tangent, which `unpack_dual` returns.

Args:
    primal: value of the dual tensor.
    tangent: tangent of the same shape, or `None`.

Examples:
    >>> with torch.autograd.forward_ad.dual_level():
    ...     primal, tangent = torch.autograd.forward_ad.unpack_dual(torch.ones(1))
    >>> tangent is None
    True
"""


def enter_dual_level() -> int:
    """Enter a level in which dual tensors can be made, and return its number.

    Levels cannot be nested. `dual_level` is the context manager for it.

    Examples:
        >>> torch.autograd.forward_ad.enter_dual_level()
        0
        >>> torch.autograd.forward_ad.exit_dual_level()
    """
    global _current_level, _number, _outermost
    _refuse_nested()
    _number = _outermost = _core.enter_dual_level()
    _current_level = 0
    return _current_level


def _refuse_nested() -> None:
    if _current_level >= 0:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the current level and drop all its tangents.

    Args:
        level: number of the level; the current one if `None`.

    Examples:
        >>> level = torch.autograd.forward_ad.enter_dual_level()
        >>> torch.autograd.forward_ad.exit_dual_level(level=level)
    """
    global _current_level, _number, _outermost
    if level is not None and level != _current_level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    if _current_level < 0:
        raise RuntimeError("Dual level must be a positive number.")
    _current_level = -1
    _core.exit_dual_level(_number)
    _number = _outermost = 0


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a view of `tensor` that carries a tangent.

    Args:
        tensor: value (primal), floating point or complex.
        tangent: tangent of the same shape.
        level: number of the level; the current one if `None`.

    Raises:
        RuntimeError: outside of a level.

    Examples:
        >>> with torch.autograd.forward_ad.dual_level():
        ...     dual = torch.autograd.forward_ad.make_dual(torch.tensor(3.0), torch.tensor(1.0))
        ...     torch.autograd.forward_ad.unpack_dual(dual**2).tangent
        tensor(6.)
    """
    if level is None:
        level = _current_level
    if level < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, part in (("primal", tensor), ("tangent", tangent)):
        if not (part.is_floating_point() or part.dtype.is_complex):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {part.dtype}")
    if level != _current_level:
        raise RuntimeError("Invalid level given to _make_dual")
    _refuse_samples("_make_dual", tensor, tangent)
    return _core.make_dual(tensor, tangent, _number)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the value of a dual tensor and its tangent, as a named tuple.

    The tangent is `None` if the tensor does not depend on a dual tensor.

    Args:
        tensor: tensor to unpack; the value is a view of it.
        level: number of the level; the current one if `None`.

    Examples:
        >>> with torch.autograd.forward_ad.dual_level():
        ...     torch.autograd.forward_ad.unpack_dual(torch.ones(1))
        UnpackedDualTensor(primal=tensor([1.]), tangent=None)
    """
    if level is None:
        level = _current_level
    if level < 0:
        return UnpackedDualTensor(tensor, None)
    if not isinstance(tensor, _core.Tensor):
        raise TypeError(f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {type(tensor).__name__}")
    if level != _current_level:
        return UnpackedDualTensor(tensor, None)
    _refuse_samples("_unpack_dual", tensor)
    return UnpackedDualTensor(*_core.unpack_dual(tensor, _number))


def _refuse_samples(name: str, *tensors: Tensor) -> None:
    if any(_core.is_batched(t) for t in tensors):
        raise RuntimeError(
            f"Batching rule not implemented for aten::{name}; the fallback path doesn't work on out= or view ops."
        )


def _tangent(tensor: Tensor) -> Tensor | None:
    """The tangent that prints: that of a level around all transforms."""
    return _core.unpack_dual(tensor, _outermost)[1] if _current_level >= 0 else None


class _Within:
    """What runs inside a transform has duals of its own, if any level is entered."""

    def __enter__(self) -> int:
        global _number
        self.outside, self.number = _number, 0
        if _current_level >= 0:
            self.number = _number = _core.enter_dual_level()
        return self.number

    def __exit__(self, *_: object) -> None:
        global _number
        if self.number:
            _core.exit_dual_level(self.number)
            _number = self.outside


class dual_level:
    """Enter a level in which dual tensors can be made, for a `with` block or for each call of a function.

    On exit all tangents of the level are dropped. Levels cannot be nested.

    Examples:
        >>> with torch.autograd.forward_ad.dual_level():
        ...     dual = torch.autograd.forward_ad.make_dual(torch.tensor(3.0), torch.tensor(1.0))
        ...     torch.autograd.forward_ad.unpack_dual(dual.exp().log()).tangent
        tensor(1.)
    """

    __call__: Any = _Mode.__call__
    _generator: Any = _Mode._generator

    def clone(self) -> dual_level:
        return type(self)()

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception: object) -> None:
        exit_dual_level()


class _set_fwd_grad_enabled:
    """Switch forward mode on or off, at once or for a `with` block."""

    __call__: Any = _Mode.__call__
    _generator: Any = _Mode._generator

    def __init__(self, mode: bool) -> None:
        self.mode, self.prev = mode, _is_fwd_grad_enabled()
        _core.set_fwd_grad_enabled(mode)

    def clone(self) -> _set_fwd_grad_enabled:
        return type(self)(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _core.set_fwd_grad_enabled(self.prev)
