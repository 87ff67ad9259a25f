"""Parts of networks. So far `functional` and `Parameter`."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Tensor
from . import functional

__all__ = ["Parameter", "functional"]


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """Tensors of other subclasses can be parameters as well."""

    def __instancecheck__(cls, other: Any) -> bool:
        if cls is Parameter and isinstance(other, Tensor) and getattr(other, "_is_param", False):
            return True
        return super().__instancecheck__(other)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A leaf that wants a gradient and prints as what it is."""

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = _core.empty([0], None, None)
        if type(data) in (Tensor, Parameter):
            return _core.make_subclass(cls, data, requires_grad)
        made = _core.make_subclass(type(data), data.detach(), requires_grad)
        made._is_param = True
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        """A parameter with memory of its own, and without the gradient."""
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        made: Parameter = memo[id(self)]
        return made

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Parameter containing:\n{super().__repr__()}"

    __str__ = __repr__  # type: ignore[assignment]
