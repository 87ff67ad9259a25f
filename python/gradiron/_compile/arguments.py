"""Arguments and results of compiled functions: their structure, and the tensors in it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .guards import is_constant, quick_kind
from .live import ReadNumber, is_live, plain
from .notes import class_dict

__all__ = ["NO_NUMBERS", "Arguments", "Template", "is_plain_class"]


class Arguments:
    """The arguments of a call: their structure as a key, and the tensors in it.

    Args:
        args, kwargs: the arguments.

    Attributes:
        key: equal for calls whose arguments differ in tensors' elements only, and in live numbers.
        form: what `key` is without the values of ints and floats that are arguments themselves.
        numbers: these ints and floats, by position or name.
        live: where those are that may differ.
        tensors: the tensors, in order.
        containers: lists and dicts among the arguments.
        objects: other objects, whose identity is part of the key.
    """

    __slots__ = ("containers", "form", "key", "live", "numbers", "objects", "tensors")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.containers: list[Any] = []
        self.objects: list[Any] = []
        self.numbers: dict[Any, Any] = {}
        self.live = NO_NUMBERS
        if not kwargs:
            # As in most calls: tensors, each once.
            kinds = _core.tensor_kinds(args)
            if kinds is not None:
                self.tensors: list[Tensor] = list(args)
                self.key: Any = kinds
                self.form: Any = None
                return
            # As in most others: numbers beside them.
            self.numbers = {at: each for at, each in enumerate(args) if type(each) in _NUMBERS}
            if self.numbers:
                tensors = tuple([each for at, each in enumerate(args) if at not in self.numbers])
                kinds = _core.tensor_kinds(tensors)
                if kinds is not None:
                    self.tensors = list(tensors)
                    self.form = (kinds, len(args), *self.numbers, *map(type, self.numbers.values()))
                    return
                self.numbers = {}
        self.tensors = []
        parts: list[Any] = [len(args)]
        for place, value in (*enumerate(args), *kwargs.items()):
            if type(place) is str:
                parts.append(place)
            if type(value) in _NUMBERS:
                self.numbers[place] = value
                parts.append(type(value))
            else:
                parts.append(self._part(value))
        self.form = self.key = tuple(parts)

    def set_live(self, live: frozenset[Any]) -> None:
        """Choose which ints and floats may differ from call to call. If there are any, there is no key before."""
        self.live = live
        if self.numbers:
            self.key = (self.form, live, *[_fixed(each) for place, each in self.numbers.items() if place not in live])

    def _part(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, Tensor):
            for number, other in enumerate(self.tensors):
                if other is value:
                    return ("same", number)
            self.tensors.append(value)
            if value.__dict__:  # what Python hung on it makes it one of its own
                self.objects.append(value)
                return (quick_kind(value), id(value))
            return quick_kind(value)
        if kind is float:
            return (kind, value.hex())
        if kind in (list, tuple):
            if kind is list:
                self.containers.append(value)
            return (kind, *(self._part(each) for each in value))
        if kind in (dict, OrderedDict):
            self.containers.append(value)
            return (kind, *((self._part(key), self._part(each)) for key, each in value.items()))
        if kind in (int, str, bool, bytes, type(None)):
            return (kind, value)
        if kind is complex:
            return (kind, value.real.hex(), value.imag.hex())
        if kind is slice:
            return (kind, *(self._part(each) for each in (value.start, value.stop, value.step)))
        self.objects.append(value)
        return ("object", id(value))


def is_plain_class(kind: type) -> bool:
    """Return whether objects of a class are nothing but their attributes, as those of most dataclasses."""
    own = kind.__mro__[:-1]
    plain_ones = all(class_dict(each) is not None and not each.__dict__.get("__slots__") for each in own)
    new: Any = kind.__new__
    return plain_ones and new is object.__new__ and not hasattr(kind, "__del__")


def with_attributes(kind: Any, attributes: dict[str, Any]) -> Any:
    """Return an object of a plain class."""
    made: Any = object.__new__(kind)
    made.__dict__.update(attributes)
    return made


_NUMBERS = frozenset((int, float))
NO_NUMBERS: frozenset[Any] = frozenset()


def _fixed(number: Any) -> Any:
    return number.hex() if type(number) is float else number


class Template:
    """A result with its tensors left out, so that each replay can fill in its own.

    Args:
        value: the result.
        tensors: where the tensors in it are appended.
        is_fresh: whether the call made an object.
        is_given: whether an object is a list or dict among the arguments, which is another one in each call.
        nodes: where the nodes of the numbers in it are appended that a replay computes.

    Attributes:
        make: called with a replay's tensors and, after these, its computed numbers, returns the result.
        outline: the same for the core: the number of a tensor; `("item", number)`, `("constant", value)`, or
            `("list", [...])` and `("tuple", [...])` of outlines; `None` if there is anything else in the result.

    Raises:
        TypeError: if it holds an object that the call made and a replay cannot make, with its class.
    """

    def __init__(
        self,
        value: Any,
        tensors: list[Tensor],
        is_fresh: Callable[[Any], bool],
        is_given: Callable[[Any], bool],
        nodes: list[int],
    ) -> None:
        self.is_given = is_given
        self.nodes = nodes
        self.tensors = tensors
        self.is_fresh = is_fresh
        self.seen: set[int] = set()
        self.make = self._part(value)
        self.outline = self._outline(value)
        del self.tensors, self.is_fresh, self.is_given, self.seen, self.nodes

    def _number(self, tensor: Tensor) -> int:
        number = next((at for at, other in enumerate(self.tensors) if other is tensor), len(self.tensors))
        if number == len(self.tensors):
            self.tensors.append(tensor)
        return number

    def _outline(self, value: Any) -> Any:
        kind = type(value)
        if isinstance(value, ReadNumber):
            return ("item", self._number(value.tensor))
        if isinstance(value, Tensor):
            return self._number(value)
        if is_live(value):
            return None
        value = plain(value)
        if is_constant(value):
            return ("constant", value)
        if kind not in (list, tuple) or (kind is list and not self.is_fresh(value)):
            return None
        parts = [self._outline(each) for each in value]
        return None if None in parts else (kind.__name__, parts)

    def _part(self, value: Any) -> Callable[[Sequence[Tensor]], Any]:
        kind = type(value)
        if isinstance(value, (Tensor, ReadNumber)):
            number = self._number(value if isinstance(value, Tensor) else value.tensor)
            return (lambda filled: filled[number]) if isinstance(value, Tensor) else (lambda filled: filled[number].item())
        if is_live(value):
            node = value.node
            self.nodes.append(node)
            return lambda filled: filled[-1][node]
        value = plain(value)
        if is_constant(value):
            return lambda filled: value
        if isinstance(value, tuple):
            return self._of_tuple(value)
        if self.is_given(value):
            raise TypeError(f"{kind.__name__} that it was given")
        if not self.is_fresh(value):
            return lambda filled: value
        if id(value) in self.seen:
            raise TypeError(f"{kind.__name__} twice that it made")
        self.seen.add(id(value))
        if kind is list:
            parts = [self._part(each) for each in value]
            return lambda filled: [part(filled) for part in parts]
        if kind in (dict, OrderedDict) and all(map(is_constant, value)):
            pairs = [(key, self._part(each)) for key, each in value.items()]
            return lambda filled: kind((key, part(filled)) for key, part in pairs)
        if is_plain_class(kind):
            fields = [(name, self._part(each)) for name, each in vars(value).items()]
            return lambda filled: with_attributes(kind, {name: part(filled) for name, part in fields})
        raise TypeError(f"{kind.__name__} that it made")

    def _of_tuple(self, value: Any) -> Callable[[Sequence[Tensor]], Any]:
        kind: Any = type(value)
        parts = [self._part(each) for each in value]
        if kind is tuple:
            return lambda filled: tuple([part(filled) for part in parts])
        if hasattr(kind, "_make"):
            return lambda filled: kind._make([part(filled) for part in parts])
        if not self.is_fresh(value) and not any(isinstance(each, Tensor) for each in value):
            return lambda filled: value
        if hasattr(kind, "n_fields") or kind.__module__.startswith(__name__.partition(".")[0]):
            return lambda filled: kind([part(filled) for part in parts])
        raise TypeError(f"{kind.__name__} that it made")
