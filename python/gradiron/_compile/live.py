"""Floats that a replay reads anew: live numbers, such as a learning rate, and those that a call reads from tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["LiveNumber", "ReadNumber", "plain"]


class LiveNumber(float):
    """A float that knows where it was read.

    The core uses it by its index. Whatever else is done with it makes it an ordinary number, which is compared before a replay.

    Args:
        value: the number.
        live_index: its number among the live numbers of a call.
        on_use: called with the index when Python computes or decides with it.
    """

    live_index: int | None
    on_use: Callable[[Any], None]

    def __new__(cls, value: float, live_index: int | None, on_use: Callable[[Any], None]) -> Any:
        made = super().__new__(cls, value)
        made.live_index = live_index
        made.on_use = on_use
        return made

    def __reduce__(self) -> Any:
        return float, (plain(self),)


class ReadNumber(LiveNumber):
    """A float that a captured call read from a tensor (`.item()`).

    It may be a result, or stored. Python must neither compute nor decide with it, because another replay reads another one.

    Args:
        value: the number.
        tensor: the tensor, which nobody writes to.
        on_use: called when Python computes or decides with the number.
    """

    tensor: Any

    def __new__(cls, value: float, tensor: Any, on_use: Callable[[Any], None]) -> Any:
        made = super().__new__(cls, value, None, on_use)
        made.tensor = tensor
        return made

    def settle(self) -> float:
        """Forget the tensor after the call, and return the ordinary number."""
        self.tensor = None
        self.on_use = _ignore
        return float.__pos__(self)


def _ignore(index: Any) -> None:
    pass


def plain(value: Any) -> Any:
    """Return a value as it is, a live number as an ordinary one."""
    if isinstance(value, LiveNumber):
        value.on_use(value.live_index)
        return float.__pos__(value)
    return value


def _ordinary(name: str) -> Any:
    own = getattr(float, name)

    def method(self: LiveNumber, *args: Any) -> Any:
        self.on_use(self.live_index)
        return own(self, *args)

    method.__name__ = name
    return method


_METHODS = """
    __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ __mod__ __rmod__
    __divmod__ __rdivmod__ __pow__ __rpow__ __neg__ __pos__ __abs__ __bool__ __int__ __float__ __round__ __trunc__ __floor__
    __ceil__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __repr__ __str__ __format__ as_integer_ratio hex is_integer
    conjugate
""".split()
for _name in _METHODS:
    setattr(LiveNumber, _name, _ordinary(_name))
