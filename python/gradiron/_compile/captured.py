"""A captured call: what its replays compare, find anew, compute and store."""

from __future__ import annotations

import abc
import functools
import operator
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from .. import _core
from .._core import Tensor
from .arguments import Arguments, Template
from .guards import MISSING, fingerprint, matches
from .live import EXACT
from .notes import class_dicts
from .observer import Observer
from .places import KINDS, Place, can_be_new, is_like
from .tape import Track

__all__ = ["Captured", "Difference", "Found", "Given", "described", "forget_dead", "still_reachable"]


class Difference:
    """Why a capture does not fit a call.

    Args:
        words: what differs.
        mark: the same for calls that differ in the same.
        place: where it is, if the next capture may look it up anew.
    """

    __slots__ = ("mark", "place", "words")

    def __init__(self, words: str, mark: Any, place: Place | None = None) -> None:
        self.words = words
        self.mark = mark
        self.place = place


class Found:
    """The tensors and numbers that a call is given and finds at places.

    Args:
        tensors: the tensors.
        anew: the numbers of the tape, in the order of their sources.
    """

    __slots__ = ("anew", "containers", "tensors")

    def __init__(self, tensors: tuple[Tensor, ...], anew: list[Any]) -> None:
        self.tensors = tensors
        self.anew = anew
        self.containers: tuple[Any, ...] = ()


def _store(kind: str, owner: Any, key: Any) -> Callable[[Any], None]:
    """Return what stores a value."""
    if kind == "set_item":
        return functools.partial(operator.setitem, owner, key)
    if kind == "set_attr":
        return functools.partial(object.__setattr__, owner, key)
    put: Callable[[Any], None] = owner.append if kind == "append" else functools.partial(setattr, owner, "cell_contents")
    return put


class Given:
    """Stands for a list or dict among the arguments, which is another one in each call."""

    def __init__(self, number: int) -> None:
        self.number = number


class Captured:
    """A captured call.

    Args:
        observer: what the call read and stored.
        own: its arguments.
        arguments: its arguments, and what it found at the places that are looked up anew.
        places: these places, with what it found.
        program: its kernels.
        result: its result, without the tensors.
        effects: its stores into older objects, each with a value without tensors.
        track: what replays compute of its numbers; `None` if there are none.
    """

    def __init__(
        self,
        observer: Observer,
        own: Arguments,
        arguments: Arguments,
        places: list[tuple[Place, Any]],
        program: Any,
        result: Template,
        effects: list[Any],
        track: Track | None,
    ) -> None:
        live = set(program.numbers) - observer.fixed
        for number, (owner, key, value) in enumerate(observer.live_numbers):
            if number not in live and owner is not None:
                name, expected = (key, value) if type(key) is not tuple else (key[0], whole_tuple(observer, owner, key[0]))
                observer.reads["item", id(owner), name] = (owner, expected)
        self.live = [(owner, key) for owner, key, _ in observer.live_numbers] if program.numbers else []
        for number in program.used:
            # The program compares all of these but the class by itself.
            tensor = observer.known[number]
            if observer.reads.pop(("tensor", id(tensor), None), None) is not None:
                observer.reads["type", id(tensor), None] = (tensor, type(tensor))
        for kind, _, key in [mark for mark in observer.reads if mark[0] == "last"]:
            owner, value = observer.reads.pop((kind, _, key))
            length = observer.lengths[id(owner)]
            observer.reads["len", id(owner), None] = (owner, length)
            observer.reads["element", id(owner), length + key] = (owner, value)
        self.reads = ordered(observer)
        self.owners = owners_of(self.reads)
        self.guards = _core.Guards(self.reads, MISSING)
        self.pinned = [(at, tensor) for at, tensor in enumerate(arguments.tensors) if id(tensor) in observer.pinned]
        self.registry = observer.registry
        given = [(at, id(tensor)) for at, tensor in enumerate(arguments.tensors)]
        self.asked = [(at, observer.given[tensor][1]) for at, tensor in given if tensor in observer.asked]
        self.rarely = bool(self.pinned or self.asked or observer.registry is not None)
        self.objects = [*arguments.objects, *observer.held]
        self.program = program
        self.known = observer.known[len(arguments.tensors) :]
        self.result = result
        self.effects = effects
        self.places = [place for place, _ in places]
        self.key = arguments.key
        self.numbers = arguments.live
        self.track = track
        self.is_lent = any(type(owner) is Given for _, owner, _, _ in effects)
        self.stores = [] if self.is_lent else [(_store(kind, owner, key), value.make) for kind, owner, key, value in effects]
        self.quick = self._quick(own, arguments, [value for _, value in places])
        # What the call stores into, and, if these are arguments, what else it reads, must be no other argument.
        self.apart = {id(owner) for _, owner, _, _ in effects}
        if self.is_lent:
            self.apart.update(id(owner) for _, owner, _, _ in self.reads)
            self.apart.update(id(place.owner) for place in self.places)
        self.pattern = _pattern(arguments.containers)

    def _quick(self, own: Arguments, arguments: Arguments, values: list[Any]) -> tuple[Any, ...] | None:
        """Return what finds the arguments with what is at the places if these are tensors, tuples of tensors, and numbers: the
        kinds of all tensors; how those at places are found; how the numbers of the tape are, with their classes; and other
        numbers at places.

        Args:
            own: the arguments alone.
            arguments: the arguments with what was found at the places.
            values: what was found there.
        """
        is_plain = own.form is None or type(own.form[0]) is bytes
        kinds = _core.tensor_kinds(tuple(arguments.tensors)) if self.places and is_plain else None
        if kinds is None:
            return None
        numbers: list[tuple[Any, Any]] = []
        for position, (_, source) in zip(self.track.positions, self.track.sources, strict=True) if self.track else ():
            is_place = isinstance(source, Place)
            numbers.append((source.now, type(arguments.numbers[position])) if is_place else (position, None))
        on_tape = {id(source) for _, source in self.track.sources} if self.track else set()
        looks: list[tuple[Any, int | None]] = []
        others: list[tuple[Any, type]] = []
        for place, value in zip(self.places, values, strict=True):
            if type(value) in (int, float):
                if id(place) not in on_tape:
                    others.append((place.now, type(value)))
            elif type(value) is Tensor:
                looks.append((place.now, None))
            elif type(value) is tuple and all(type(each) is Tensor for each in value):
                looks.append((place.now, len(value)))
            else:
                return None
        return kinds, looks, numbers, others

    def _quickly(self, arguments: Arguments) -> Found | None:
        """Return what a call is given and finds, if that is of the kinds of the captured call."""
        if self.quick is None:
            return None
        kinds, looks, numbers, others = self.quick
        tensors: list[Any] = [*arguments.tensors]
        for look, length in looks:
            value = look()
            if length is None:
                tensors.append(value)
            elif type(value) is tuple and len(value) == length:
                tensors.extend(value)
        whole = tuple(tensors)
        if _core.tensor_kinds(whole) != kinds:
            return None
        anew = []
        for look, kind in numbers:
            number = arguments.numbers[look] if kind is None else look()
            if kind is not None and type(number) is not kind:
                return None
            anew.append(number)
        if others and any(type(look()) is not kind for look, kind in others):
            return None
        return Found(whole, anew)

    def direct(self) -> tuple[Any, ...] | None:
        """Return what the core needs to replay this without Python; `None` if it cannot."""
        needs_python = self.effects or self.asked or self.places or self.track is not None or self.registry is not None
        if needs_python or self.result.outline is None:
            return None
        return (self.program, self.guards, self.live, self.pinned, self.result.outline)

    def given(self, arguments: Arguments, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments | Found | Difference:
        """Return the arguments of a call with what is at the places now; what differs, if they are of another kind.

        Args:
            arguments: the arguments alone.
            args, kwargs: the same as the function is given them.
        """
        if not self.places:
            return arguments if not arguments.containers or self._is_apart(arguments) else _SHARED
        found = self._quickly(arguments)
        if found is not None:
            return found
        values = [place.now() for place in self.places]
        given = Arguments((*args, *values), kwargs)
        given.set_live(self.numbers)
        if given.key != self.key:
            return self._other_place(values)
        return given if self._is_apart(given) else _SHARED

    def _is_apart(self, given: Arguments) -> bool:
        """Return whether the containers among the arguments are no others of the call, as when it was captured."""
        return self.apart.isdisjoint(map(id, given.containers)) and _pattern(given.containers) == self.pattern

    def _other_place(self, values: list[Any]) -> Difference:
        for place, value in zip(self.places, values, strict=True):
            if value is MISSING:
                return Difference(self._told(place), ("place", id(place.owner), _mark(place.key)))
        return Difference(self._told(self.places[0]), ("places", *((id(each.owner), _mark(each.key)) for each in self.places)))

    def _told(self, place: Place) -> str:
        return described((place.kind, place.owner, place.key, None), self.owners)

    def differs(self, arguments: Arguments | Found) -> Difference | None:
        """Return the first read that differs from the capture's.

        Args:
            arguments: what `given` returned.
        """
        found = self._differs_rarely(arguments) if self.rarely else None
        failed = self.guards.failed() if found is None else None
        if failed is not None:
            return self._failed(failed)
        if found is None and self.track is not None:
            begun = self.track.begin(self._anew(arguments))
            return self._failed_check(begun) if type(begun) is int else None
        return found

    def _failed(self, number: int) -> Difference:
        read = self.reads[number]
        kind, owner, key, expected = read
        place = Place(kind, owner, key) if kind in KINDS and can_be_new(expected) else None
        if place is not None and not is_like(place.now(), expected):
            place = None
        return Difference(described(read, self.owners), (kind, id(owner), _mark(key)), place)

    def _failed_check(self, number: int) -> Difference:
        assert self.track is not None
        if number < 0:
            return Difference("a number that it computes", ("computed",))
        node = self.track.checks[number][0]
        source = self.track.source(node)
        if source is None:
            return Difference("a number that it computes", ("check", node))
        words = self._told(source) if isinstance(source, Place) else f"a number among the arguments, {source!r},"
        return Difference(words, ("check", node))

    def _anew(self, arguments: Arguments | Found) -> list[Any]:
        """Return the numbers of the tape that this call finds."""
        if isinstance(arguments, Found):
            return arguments.anew
        assert self.track is not None
        return [arguments.numbers[at] for at in self.track.positions]

    def _differs_rarely(self, arguments: Arguments | Found) -> Difference | None:
        for number, tensor in self.pinned:
            if arguments.tensors[number] is not tensor:
                return Difference(f"which object tensor {number} among the arguments is", ("pinned", number))
        for number, expected in self.asked:
            if not matches(fingerprint(arguments.tensors[number]), expected):
                return Difference(f"the kind of tensor {number} among the arguments", ("asked", number))
        if self.registry is not None and self.registry != abc.get_cache_token():
            return Difference("a class was registered with an abstract base class", ("registry",))
        return None

    def effects_on(self, arguments: Arguments | Found) -> list[Any]:
        """Return the stores of a replay: how, into what, under which key, and what."""
        return [
            (kind, arguments.containers[owner.number] if type(owner) is Given else owner, key, value)
            for kind, owner, key, value in self.effects
        ]

    def describe(self) -> list[str]:
        """Return the reads in words."""
        anew = [f"the kind of {self._told(place)}, which is looked up anew" for place in self.places]
        checks = [] if self.track is None else [self._failed_check(number).words for number in range(len(self.track.checks))]
        return [*(described(read, self.owners) for read in self.reads), *anew, *checks]

    def replay(self, arguments: Arguments | Found, compares: bool = False) -> Any:
        """Run the kernels again, and return a tuple of the result; a `Difference` if that cannot be.

        Args:
            arguments: what `given` returned for this call.
            compares: whether the reads are compared before.
        """
        if compares and self.rarely:
            found = self._differs_rarely(arguments)
            if found is not None:
                return found
        values: Any = None
        if self.track is not None:
            values = self.track.begin(self._anew(arguments))
            if type(values) is int:
                # Whatever else differs tells more.
                failed = self.guards.failed()
                return self._failed_check(values) if failed is None else self._failed(failed)
        numbers: list[float] = []
        for owner, key in self.live:
            number = number_at(owner, key) if owner is not None else values[key]
            if type(number) is int and owner is None and abs(number) <= EXACT:
                number = float(number)
            if type(number) is not float:
                return Difference("a number that the replay reads anew", "number")
            numbers.append(number)
        made = self.program.replay(tuple(arguments.tensors), tuple(numbers), self.guards if compares else None)
        if type(made) is str:
            return Difference(made, made)
        if type(made) is int:
            return self._failed(made)
        if values is not None:
            assert self.track is not None
            self.track.end(values, made)
            made.append(values)
        for store, make in self.stores:
            store(make(made))
        if self.is_lent:
            for kind, owner, key, value in self.effects_on(arguments):
                _store(kind, owner, key)(value.make(made))
        return (self.result.make(made),)


def number_at(owner: dict[Any, Any], key: Any) -> Any:
    """Return what a parameter group holds under a name; of a name and an index, the part of a tuple."""
    if type(key) is not tuple:
        return owner.get(key)
    found = owner.get(key[0])
    return found[key[1]] if type(found) is tuple and len(found) > key[1] else None


def whole_tuple(observer: Observer, owner: Any, name: Any) -> tuple[float, ...]:
    """Return the tuple whose parts a call read as live numbers."""
    return tuple(
        [value for other, key, value in observer.live_numbers if other is owner and type(key) is tuple and key[0] == name]
    )


def _pattern(containers: Sequence[Any]) -> tuple[int, ...]:
    """Return for each container the number of the first one that is the same object."""
    first: dict[int, int] = {}
    return tuple([first.setdefault(id(each), number) for number, each in enumerate(containers)])


_SHARED = Difference("which lists and dicts among the arguments are the same", "shared")


def _mark(key: Any) -> Any:
    return key if isinstance(key, (str, int, bool, type(None))) else id(key)


def held_by(observer: Observer) -> dict[int, int]:
    """Return how often the notes on a call hold each object."""
    held: dict[int, int] = {}
    for owner, expected in observer.reads.values():
        for each in (owner, expected):
            held[id(each)] = held.get(id(each), 0) + 1
    for cell, before in observer.cells.values():
        for each in (cell, before):
            held[id(each)] = held.get(id(each), 0) + 1
    return held


def still_reachable(observer: Observer) -> list[Tensor]:
    """Return the tensors that the call read and that others than its notes still hold. What nobody else holds was made by the
    call, such as the gradients that hooks are given."""
    held, found = held_by(observer), []
    for number in range(len(observer.known)):
        tensor = observer.known[number]
        if id(tensor) in observer.given:
            continue
        # Three more references are those of the list, of this loop and of the call.
        if sys.getrefcount(tensor) > held.get(id(tensor), 0) + 3:
            found.append(tensor)
    return found


def forget_dead(observer: Observer) -> None:
    """Drop the reads of what only the notes hold: the call made it, so the next call cannot reach it."""
    while True:
        held = held_by(observer)
        dead = [mark for mark, read in observer.reads.items() if _is_dead(read, held)]
        for mark in dead:
            del observer.reads[mark]
        if not dead:
            return


def _is_dead(read: tuple[Any, Any], held: dict[int, int]) -> bool:
    # The other references are those of this tuple's name and of the call.
    return sys.getrefcount(read[0]) <= held[id(read[0])] + 1


def ordered(observer: Observer) -> list[tuple[str, Any, Any, Any]]:
    """Return the reads of a call, those of one object side by side."""
    groups: dict[int, list[tuple[str, Any, Any, Any]]] = {}
    for (kind, _, key), (owner, expected) in observer.reads.items():
        groups.setdefault(id(owner), []).append((kind, owner, key, expected))
    return [read for group in groups.values() for read in group]


def described(read: tuple[str, Any, Any, Any], owners: dict[int, str]) -> str:
    """Return a read in words.

    Args:
        read: the read.
        owners: what dicts belong to, by their identities.
    """
    kind, owner, key, _ = read
    what = f"a {type(owner).__name__}"
    if isinstance(owner, (type, types.FunctionType)):
        what = owner.__qualname__
    elif type(owner) is dict:
        what = f"module {owner['__name__']}" if "__builtins__" in owner and "__name__" in owner else owners.get(id(owner), what)
    names = {
        "type": f"the class of {what}",
        "vars": f"__dict__ of {what}",
        "cell": "a variable of an enclosing function",
        "len": f"the length of {what}",
        "tensor": "the kind of a tensor (its shape, dtype, strides, requires_grad, .grad or hooks)",
    }
    return names.get(kind) or (f"{key!r} of {what}" if key is not None else f"the contents of {what}")


def owners_of(reads: list[tuple[str, Any, Any, Any]]) -> dict[int, str]:
    """Return in words what the dicts among the reads belong to, by their identities."""
    found = {id(own): f"class {cls.__qualname__}" for cls, own in class_dicts.items()}
    found.update((id(expected), f"a {type(owner).__name__}") for kind, owner, _, expected in reads if kind == "vars")
    return found
