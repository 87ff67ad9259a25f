"""Python types that the core returns: sizes, named tuples, exceptions."""

from __future__ import annotations

import operator

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, SupportsIndex


class OutOfMemoryError(RuntimeError):
    """Raised when the memory of the GPU or of the host is exhausted.

    Examples:
        >>> issubclass(torch.OutOfMemoryError, RuntimeError)
        True
    """


class Size(_core.Sizes):
    """Shape of a tensor, a tuple of integers.

    Args:
        sizes: iterable of integers. Default: `()`

    Examples:
        >>> size = torch.ones(2, 3).size()
        >>> size, size.numel()
        (torch.Size([2, 3]), 6)
    """

    __slots__ = ()

    def __new__(cls, sizes: Any = ()) -> Size:
        given = tuple(sizes)
        for at, size in enumerate(given):
            if not hasattr(size, "__index__"):
                raise TypeError(f"torch.Size() takes an iterable of 'int' (item {at} is '{type(size).__name__}')")
        return tuple.__new__(cls, map(operator.index, given))

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    __str__ = __repr__

    def numel(self) -> int:
        """Return the number of elements, the product of the sizes."""
        count = 1
        for n in self:
            count *= n
        return count

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Any:
        return Size(tuple(other) + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: SupportsIndex) -> Any:
        return Size(tuple.__mul__(self, count))

    __rmul__ = __mul__


_named: dict[tuple[str, tuple[str, ...]], Any] = {}


def named_kind(name: str, fields: tuple[str, ...]) -> Any:
    """Return a class of named tuples such as `torch.return_types.max`."""
    kind = _named.get((name, fields))
    if kind is None:
        import collections

        make: Any = collections.namedtuple
        kind = make(name, fields, module="torch.return_types")

        def show(self: Any) -> str:
            lines = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
            return f"torch.return_types.{name}(\n{lines})"

        def reduce(self: Any) -> Any:
            return named_result, (name, fields, tuple(self))

        kind.__repr__ = show
        kind.__reduce__ = reduce  # The class stands in no module.
        _named[name, fields] = kind
    return kind


def named_result(name: str, fields: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    """Make a named tuple of such a class."""
    return named_kind(name, fields)(*values)


def typename(obj: Any) -> str:
    """Return the name of an object's type, with its module unless it is built in.

    Args:
        obj: object, or a class or function.

    Examples:
        >>> torch.typename(torch.ones(1))
        'torch.FloatTensor'
    """
    if isinstance(obj, _core.Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", "") or ""
    return named.__qualname__ if module in ("", "builtins") else f"{module}.{named.__qualname__}"
