"""Numbers that a replay finds or computes anew: those that the call was given or found where earlier calls stored them, what
it computed with them, a learning rate, and floats that it read from tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "EXACT",
    "LIVE",
    "ComputedFloat",
    "ComputedInt",
    "LiveNumber",
    "ReadNumber",
    "is_live",
    "plain",
    "plain_inside",
    "value_of",
]


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

    def fix(self) -> None:
        """Note that the call depends on what the number is."""
        self.on_use(self.live_index)

    def __reduce__(self) -> Any:
        return float, (plain(self),)


class ReadNumber(LiveNumber):
    """A float that a captured call read from a tensor (`.item()`).

    It may be a result, or stored, and sums and products of it, too. Python must not decide with it, because another replay
    reads another one.

    Args:
        value: the number.
        tensor: the tensor, which nobody writes to.
        on_use: called when Python decides with the number.
        node: its number on the tape of the call.
    """

    tensor: Any
    node: int

    def __new__(cls, value: float, tensor: Any, on_use: Callable[[Any], None], node: int) -> Any:
        made = super().__new__(cls, value, None, on_use)
        made.tensor = tensor
        made.node = node
        return made

    def settle(self) -> float:
        """Forget the tensor after the call, and return the ordinary number."""
        self.tensor = None
        self.on_use = _ignore
        return float.__pos__(self)


class ComputedFloat(LiveNumber):
    """A float that the call was given, found, or computed, and that a replay computes anew.

    Args:
        value: the number.
        tape: the `Tape` that knows how.
        node: its number there.
    """

    node: int
    tape: Any

    def __new__(cls, value: float, tape: Any, node: int) -> Any:
        made = super().__new__(cls, value, None, _ignore)
        made.tape = tape
        made.node = node
        return made

    def fix(self) -> None:
        """Note that the call depends on what the number is."""
        self.tape.fix(self.node, float.__pos__(self))


class ComputedInt(int):
    """The same of an int."""

    node: int
    tape: Any

    def __new__(cls, value: int, tape: Any, node: int) -> Any:
        made = super().__new__(cls, value)
        made.tape = tape
        made.node = node
        return made

    def fix(self) -> None:
        """Note that the call depends on what the number is."""
        self.tape.fix(self.node, int.__pos__(self))

    def __reduce__(self) -> Any:
        return int, (plain(self),)


LIVE = (LiveNumber, ComputedInt)
# Larger ints have no float64 that equals them.
EXACT = 2**53


def _ignore(index: Any) -> None:
    pass


def is_live(value: Any) -> bool:
    """Return whether a value is a number that a replay computes anew on its tape."""
    return isinstance(value, (ComputedFloat, ComputedInt, ReadNumber))


def value_of(value: Any) -> Any:
    """Return a live number as an ordinary one, without noting that anything depends on it."""
    return int.__pos__(value) if isinstance(value, int) else float.__pos__(value)


def plain(value: Any) -> Any:
    """Return a value as it is, a live number as an ordinary one."""
    if isinstance(value, LIVE):
        value.fix()
        return value_of(value)
    return value


def plain_inside(value: Any) -> Any:
    """Return an argument of a C function without live numbers, also in lists, tuples and slices."""
    kind = type(value)
    if issubclass(kind, LIVE):
        return plain(value)
    if kind in (list, tuple) and any(isinstance(each, (*LIVE, list, tuple, dict, slice)) for each in value):
        changed = [plain_inside(each) for each in value]
        if any(one is not other for one, other in zip(value, changed, strict=True)):
            return kind(changed)
    if kind is slice and any(isinstance(each, LIVE) for each in (value.start, value.stop, value.step)):
        return slice(plain(value.start), plain(value.stop), plain(value.step))
    return value


def _ordinary(base: Any, name: str) -> Any:
    own = getattr(base, name)

    def method(self: Any, *args: Any) -> Any:
        self.fix()
        return own(self, *args)

    method.__name__ = name
    return method


_METHODS = """
    __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ __mod__ __rmod__
    __divmod__ __rdivmod__ __pow__ __rpow__ __neg__ __pos__ __abs__ __bool__ __int__ __float__ __round__ __trunc__ __floor__
    __ceil__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __repr__ __str__ __format__ as_integer_ratio conjugate
""".split()
_OF_FLOATS = "hex is_integer".split()
_OF_INTS = """
    __index__ __invert__ __and__ __rand__ __or__ __ror__ __xor__ __rxor__ __lshift__ __rlshift__ __rshift__ __rrshift__
    bit_length to_bytes
""".split()
for _class, _base, _own in ((LiveNumber, float, _OF_FLOATS), (ComputedInt, int, _OF_INTS)):
    for _name in (*_METHODS, *_own):
        setattr(_class, _name, _ordinary(_base, _name))


def _truth(self: Any) -> bool:
    truth = bool(value_of(self))
    self.tape.fix_truth(self.node, truth)
    return truth


for _computed in (ComputedFloat, ComputedInt):
    setattr(_computed, "__bool__", _truth)  # noqa: B010 # as the other methods are set
