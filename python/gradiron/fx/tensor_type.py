"""Type annotations of tensors by their shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._compatibility import compatibility

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class _DynType:
    """The size of a dimension that is not known, or the type of anything."""

    def __init__(self) -> None:
        self.__name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    def __hash__(self) -> int:
        return hash(_DynType)

    def __repr__(self) -> str:
        return "Dyn"


Dyn = _DynType()


@compatibility(is_backward_compatible=False)
class TensorType:
    """The type of a tensor of a shape.

    Args:
        dim: sizes; `Dyn` for one that is not known.

    Examples:
        >>> Dyn = torch.fx.tensor_type.Dyn
        >>> TensorType = torch.fx.tensor_type.TensorType
        >>> TensorType((2, Dyn))
        TensorType[(2, Dyn)]
    """

    def __init__(self, dim: Sequence[Any]) -> None:
        self.__origin__ = TensorType
        self.__args__ = dim

    @property
    def dims(self) -> Sequence[Any]:
        """Sizes of the dimensions."""
        return self.__args__

    def __class_getitem__(cls, *args: Any) -> TensorType:
        return TensorType(args[0] if len(args) == 1 and isinstance(args[0], tuple) else args)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and list(self.dims) == list(other.dims)

    def __hash__(self) -> int:
        return hash(tuple(self.dims))

    def __repr__(self) -> str:
        return f"TensorType[{self.dims}]"


def _elementwise(t1: Any, t2: Any, relation: Any) -> bool:
    if not (isinstance(t1, TensorType) and isinstance(t2, TensorType)):
        return False
    return len(t1.dims) == len(t2.dims) and all(map(relation, t1.dims, t2.dims))


@compatibility(is_backward_compatible=False)
def is_consistent(t1: Any, t2: Any) -> bool:
    """Return whether a value may be of both types.

    Args:
        t1, t2: types.

    Examples:
        >>> Dyn = torch.fx.tensor_type.Dyn
        >>> TensorType = torch.fx.tensor_type.TensorType
        >>> is_consistent = torch.fx.tensor_type.is_consistent
        >>> is_consistent(TensorType((1, Dyn)), TensorType((1, 2)))
        True
    """
    return bool(t1 == t2) or Dyn in (t1, t2) or _elementwise(t1, t2, is_consistent)


@compatibility(is_backward_compatible=False)
def is_more_precise(t1: Any, t2: Any) -> bool:
    """Return whether each value of the first type is of the second.

    Args:
        t1, t2: types.

    Examples:
        >>> Dyn = torch.fx.tensor_type.Dyn
        >>> TensorType = torch.fx.tensor_type.TensorType
        >>> is_more_precise = torch.fx.tensor_type.is_more_precise
        >>> is_more_precise(TensorType((1, 2)), TensorType((1, Dyn)))
        True
    """
    return bool(t1 == t2) or isinstance(t2, _DynType) or _elementwise(t1, t2, is_more_precise)
