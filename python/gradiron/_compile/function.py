"""Compiled functions: captured once for each kind of arguments and state, replayed afterwards."""

from __future__ import annotations

import abc
import functools
import gc
import operator
import os
import sys
import threading
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .. import _core
from .._core import Tensor
from . import calls
from .arguments import Arguments, Template
from .check import compare_both
from .errors import Unsupported
from .guards import MISSING, cell_contents, fingerprint, matches, thread_state
from .notes import class_dicts
from .observer import Observer
from .places import KINDS, Place, can_be_new, is_like
from .reasons import Reason, Unrewritable, log
from .settings import options, stance
from .settle import settled
from .sources import forget_sources
from .tape import Track

__all__ = ["CompiledFunction", "compiled_functions", "reset"]

# How often a read may differ, and how often a call may turn out not to be capturable, before it runs as it is; how many
# functions that C calls are looked for; how many kinds of arguments are remembered, and how many places.
_DIFFERS, _FAILS, _FOUND, _SEEN, _PLACES = 8, 3, 64, 256, 1024

_compiled: Any = None


def compiled_functions() -> list[CompiledFunction]:
    """Return the compiled functions that are alive."""
    return [] if _compiled is None else list(_compiled)


def reset() -> None:
    """Forget all captures."""
    for each in compiled_functions():
        each.forget()
    calls.forget_functions()


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
    return owner.append if kind == "append" else functools.partial(setattr, owner, "cell_contents")  # type: ignore[no-any-return]


class _Given:
    """Stands for a list or dict among the arguments, which is another one in each call."""

    def __init__(self, number: int) -> None:
        self.number = number


class Captured:
    """A captured call.

    Args:
        observer: what the call read and stored.
        arguments: its arguments, and what it found at the places that are looked up anew.
        places: these places.
        program: its kernels.
        result: its result, without the tensors.
        effects: its stores into older objects, each with a value without tensors.
        track: what replays compute of its numbers; `None` if there are none.
    """

    def __init__(
        self,
        observer: Observer,
        arguments: Arguments,
        places: list[Place],
        program: Any,
        result: Template,
        effects: list[Any],
        track: Track | None,
    ) -> None:
        live = set(program.numbers) - observer.fixed
        for number, (owner, key, value) in enumerate(observer.live_numbers):
            if number not in live and owner is not None:
                observer.reads["item", id(owner), key] = (owner, value)
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
        self.places = places
        self.key = arguments.key
        self.numbers = arguments.live
        self.track = track
        self.is_lent = any(type(owner) is _Given for _, owner, _, _ in effects)
        self.stores = [] if self.is_lent else [(_store(kind, owner, key), value.make) for kind, owner, key, value in effects]
        self.quick = self._quick(arguments)
        # What the call stores into, and, if these are arguments, what else it reads, must be no other argument.
        self.apart = {id(owner) for _, owner, _, _ in effects}
        if self.is_lent:
            self.apart.update(id(owner) for _, owner, _, _ in self.reads)
            self.apart.update(id(place.owner) for place in places)
        self.pattern = _pattern(arguments.containers)

    def _quick(self, arguments: Arguments) -> tuple[Any, list[Any], list[Any]] | None:
        """Return the kinds of all tensors, and how those at places are found, and the numbers of the tape, if there is nothing
        but tensors and numbers."""
        kinds = None if arguments.form is None else arguments.form[0]
        if not self.places or (arguments.form is not None and type(kinds) is not bytes):
            return None
        numbers, taken = [], set()
        for position, (_, source) in zip(self.track.positions, self.track.sources, strict=True) if self.track is not None else ():
            is_place = isinstance(source, Place)
            numbers.append((source.now, type(arguments.numbers[position])) if is_place else (position, None))
            taken.add(id(source))
        looks = [place.now for place in self.places if id(place) not in taken]
        return arguments.key if kinds is None else kinds, looks, numbers

    def direct(self) -> tuple[Any, ...] | None:
        """Return what the core needs to replay this without Python; `None` if it cannot."""
        if self.effects or self.asked or self.registry is not None or self.result.outline is None:
            return None
        if self.places or self.track is not None:
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
        if self.quick is not None:
            kinds, looks, numbers = self.quick
            tensors = (*arguments.tensors, *[look() for look in looks])
            if _core.tensor_kinds(tensors) == kinds:
                anew = []
                for look, kind in numbers:
                    number = arguments.numbers[look] if kind is None else look()
                    if kind is not None and type(number) is not kind:
                        break
                    anew.append(number)
                else:
                    return Found(tensors, anew)
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
        words = self._told(source) if isinstance(source, Place) else f"a number among the arguments, {source!r},"
        return Difference(words, ("check", node))

    def _anew(self, arguments: Arguments | Found) -> list[Any]:
        """Return the numbers of the tape that this call finds."""
        if type(arguments) is Found:
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
            (kind, arguments.containers[owner.number] if type(owner) is _Given else owner, key, value)
            for kind, owner, key, value in self.effects
        ]

    def describe(self) -> list[str]:
        """Return the reads in words."""
        return [described(read, self.owners) for read in self.reads]

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
            number = owner.get(key) if owner is not None else values[key]
            if type(number) is int and owner is None and abs(number) <= _EXACT:
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


def _pattern(containers: Sequence[Any]) -> tuple[int, ...]:
    """Return for each container the number of the first one that is the same object."""
    first: dict[int, int] = {}
    return tuple([first.setdefault(id(each), number) for number, each in enumerate(containers)])


_SHARED = Difference("which lists and dicts among the arguments are the same", "shared")
_NONE: frozenset[Any] = frozenset()
# Larger ints have no float64 that equals them.
_EXACT = 2**53


def _mark(key: Any) -> Any:
    return key if isinstance(key, (str, int, bool, type(None))) else id(key)


def held_by(observer: Observer) -> dict[int, int]:
    """Return how often the notes on a call hold each object."""
    held: dict[int, int] = {}
    for owner, expected in observer.reads.values():
        for each in (owner, expected):
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


def ordered(observer: Observer) -> list[tuple[str, Any, Any, Any]]:
    """Return the reads of a call, those of one object side by side, without those of objects that only the notes hold."""
    held = held_by(observer)
    groups: dict[int, list[tuple[str, Any, Any, Any]]] = {}
    for (kind, _, key), (owner, expected) in observer.reads.items():
        # Nobody else holds it, so the next call cannot reach it: it was made by this one. Two more references are this loop's.
        if sys.getrefcount(owner) <= held[id(owner)] + 2:
            continue
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


class CompiledFunction:
    """A function with its captures.

    Args:
        function: the function.
        fullgraph: whether what cannot be captured raises.
        limit: how many captures are kept.
        name: what it is called in logs.
        fuses: whether kernels are joined to groups.
    """

    # A captured call that calls another compiled function captures that, too.
    _is_compiled_function = True

    def __init__(
        self, function: Callable[..., Any], fullgraph: bool, limit: int | None, name: str | None, fuses: bool = True
    ) -> None:
        global _compiled
        if _compiled is None:
            _compiled = weakref.WeakSet()
        _compiled.add(self)
        self.function = function
        self.fullgraph = fullgraph
        self.limit = limit
        self.fuses = fuses
        self.name = name or getattr(function, "__qualname__", type(function).__name__)
        self.lock = threading.Lock()
        self.direct = _core.DirectReplays()
        self.forget()

    def forget(self) -> None:
        """Forget all captures and reasons."""
        self.captures: OrderedDict[Any, list[Captured]] = OrderedDict()
        self.reasons: list[Reason] = []
        self.seen: OrderedDict[Any, None] = OrderedDict()
        self.eager: OrderedDict[Any, int] = OrderedDict()
        self.differed: OrderedDict[Any, int] = OrderedDict()
        self.found: dict[int, types.CodeType] = {}
        self.places: OrderedDict[Any, Place] = OrderedDict()
        self.last: OrderedDict[Any, dict[Any, Any]] = OrderedDict()
        self.live: dict[Any, frozenset[Any]] = {}
        self.static: dict[Any, set[Any]] = {}
        self.observed_replays = 0
        self.direct.clear()

    @property
    def replays(self) -> int:
        """How often a capture was replayed."""
        return self.observed_replays + self.direct.replays

    # Calls.

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Replay a capture that fits, or run the function."""
        if not kwargs:
            result = self.direct.replay(args)
            if result is not NotImplemented:
                return result
        return self.replay_or_run(args, kwargs)

    def replay_or_run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do what a call does where no direct replay fits."""
        state = thread_state()
        if state is None or stance.forced == "force_eager" or _core.is_capturing():
            return self.function(*args, **kwargs)
        arguments = Arguments(args, kwargs)
        if arguments.numbers:
            arguments.set_live(self.live.get(arguments.form, _NONE))
        key = (arguments.key, state)
        captures = self.captures.get(key)
        if captures is None:
            if arguments.numbers and self._finds_live(arguments):
                key = (arguments.key, state)
                self.seen[key] = None
                captures = self.captures.get(key)
            elif not self._is_seen(key):
                return self.function(*args, **kwargs)
        why: Difference | None = None
        for number, captured in enumerate(captures or ()):
            given = captured.given(arguments, args, kwargs)
            if type(given) is Difference:
                why = given
                continue
            if _CHECKS and captured.differs(given) is None:
                return compare_both(self, captured, given, args, kwargs)
            done = captured.replay(given, not stance.trusts)
            if type(done) is tuple:
                self.observed_replays += 1
                if number:
                    captures.insert(0, captures.pop(number))  # type: ignore[union-attr]
                    self._set_direct(key)
                return done[0]
            why = done
        return self._run(key, why, arguments, args, kwargs)

    def _is_seen(self, key: Any) -> bool:
        """Return whether a call like this one was made before: arguments that never come again are not worth a capture."""
        if key in self.seen:
            return True
        if stance.forced == "fail_on_recompile" and self.captures:
            raise RuntimeError(
                f"Detected recompile when torch.compile stance is 'fail_on_recompile'. {self.name}: new arguments"
            )
        self.seen[key] = None
        if len(self.seen) > _SEEN:
            self.seen.popitem(last=False)
        return False

    def _finds_live(self, arguments: Arguments) -> bool:
        """Let ints and floats among the arguments be live that differ from those of an earlier call; return whether there are
        more of them now."""
        before = self.last.get(arguments.form)
        if before is None:
            self.last[arguments.form] = arguments.numbers
            if len(self.last) > _SEEN:
                oldest = self.last.popitem(last=False)[0]
                self.live.pop(oldest, None)
                self.static.pop(oldest, None)
            return False
        differ = {at for at, number in arguments.numbers.items() if not matches(number, before[at])}
        more = differ - arguments.live - self.static.get(arguments.form, set())
        if more:
            arguments.set_live(arguments.live | more)
            self.live[arguments.form] = arguments.live
        return bool(more)

    def _run(self, key: Any, why: Difference | None, arguments: Arguments, args: Any, kwargs: Any) -> Any:
        """Run the function because no capture fits, and capture it if that may help the next call."""
        if why is not None:
            log("recompiles", f"{self.name}: {why.words} differs from the captured call")
            if why.place is not None:
                self._add_places([why.place])
            mark = (key, why.mark)
            self.differed[mark] = self.differed.pop(mark, 0) + 1
            if len(self.differed) > _SEEN:
                self.differed.popitem(last=False)
            if self.differed[mark] >= _DIFFERS:
                self._say(key, Reason(f"{why.words} differs from call to call"), final=True)
        if stance.forced == "fail_on_recompile" and self.captures:
            raise RuntimeError(
                "Detected recompile when torch.compile stance is 'fail_on_recompile'. "
                f"{self.name}: {why.words if why else 'new'}"
            )
        if stance.forced == "eager_on_recompile" and self.captures:
            return self.function(*args, **kwargs)
        if self.eager.get(key, 0) >= _FAILS or sys.getprofile() is not None or not self.lock.acquire(blocking=False):
            return self.function(*args, **kwargs)
        try:
            return self._capture(key, arguments, args, kwargs)
        finally:
            self.lock.release()

    def _say(self, key: Any, reason: Reason, final: bool = False) -> None:
        """Note why the function ran as it is."""
        self.eager[key] = _FAILS if final else self.eager.get(key, 0) + 1
        if len(self.eager) > _SEEN:
            self.eager.popitem(last=False)
        if str(reason) not in map(str, self.reasons):
            self.reasons.append(reason)
            log("graph_breaks", f"{self.name} runs as it is: {reason}")
        if self.fullgraph:
            raise Unsupported(str(reason))

    # Captures.

    def _capture(self, key: Any, arguments: Arguments, args: Any, kwargs: Any) -> Any:
        places = [place for place in self.places.values() if can_be_new(place.now())]
        observer = Observer(arguments.tensors, arguments.containers, self.fullgraph, places)
        with _installed(self.found.values(), observer):
            if observer.reason is None:
                _core.begin_capture(True)
                observer.on_stop = _core.discard_capture
                observer.begin()
            class_dicts.clear()
            try:
                given = [observer.tape.leaf(each, at) if at in arguments.live else each for at, each in enumerate(args)]
                named = {at: observer.tape.leaf(each, at) if at in arguments.live else each for at, each in kwargs.items()}
                result = observer.call(self.function, *given, **named)
            except BaseException as error:
                observer.end()
                _core.discard_capture()
                settled(observer, observer.effects, None)
                raise error.with_traceback(_without_own_frames(error.__traceback__)) from error.__cause__
            finally:
                observer.end()
        new = [code for code in observer.found if id(code) not in self.found]
        if observer.found and new and len(self.found) < _FOUND:
            self.found.update((id(code), code) for code in new)
            # The next call is observed with these functions rewritten, too.
            return settled(observer, observer.effects, result)
        stores = list(observer.effects) if observer.tape.steps else []
        if observer.reason is None:
            self._finish(key, observer, arguments, args, kwargs, result)
        result = settled(observer, stores, result)
        class_dicts.clear()
        forget_sources()
        if observer.reason is not None:
            self._say(key, observer.reason)
        return result

    def _add_places(self, places: list[Place]) -> None:
        for place in places:
            self.places[place.kind, id(place.owner), place.key] = place
            if len(self.places) > _PLACES:
                self.places.popitem(last=False)

    def _finds_places(self, key: Any, observer: Observer) -> bool:
        """Look for places that the call read and stored into; return whether there are such that are not known."""
        mark, found = (key, "places"), _changed_places(observer)
        found = [place for place in found if (place.kind, id(place.owner), place.key) not in self.places]
        if not found or self.differed.get(mark, 0) >= _DIFFERS:
            return False
        self.differed[mark] = self.differed.get(mark, 0) + 1
        self._add_places(found)
        return True

    def _finish(self, key: Any, observer: Observer, arguments: Arguments, args: Any, kwargs: Any, result: Any) -> None:
        """Keep what was captured, unless it turns out that it cannot be replayed."""
        results: list[Tensor] = []
        if self._finds_places(key, observer):
            # The next call is captured with these looked up anew.
            _core.discard_capture()
            return
        try:
            self._check_end(key)
            effects = [*observer.effects, *_changed_names(observer)]
            nodes = [node for owner, node, _ in observer.live_numbers if owner is None]
            try:
                asks = (observer.is_fresh, lambda value: id(value) in observer.containers, nodes)
                made = Template(result, results, *asks)
                stores = [(kind, owner, name, Template(value, results, *asks)) for kind, owner, name, value in effects]
            except TypeError as error:
                raise _Refused(f"it returns or stores a {error}") from None
            given, places, track = self._anew(observer, arguments, args, kwargs, nodes, results)
            at = {id(each): number for number, each in enumerate(given.containers)}
            stores = [(kind, _Given(at[id(owner)]) if id(owner) in at else owner, *rest) for kind, owner, *rest in stores]
            key = (arguments.key, key[1])
            for number in observer.read_numbers:
                number.tensor = None
            observer.fresh.clear()
            observer.grads.clear()
            observer.kept.clear()
            observer.functions.clear()
            observer.changed.clear()
            observer.effects.clear()
            del result, effects
            observer.known = [*given.tensors, *still_reachable(observer)]
            program = _core.end_program(observer.known, results, len(given.tensors), self.fuses)
            captured = Captured(observer, given, places, program, made, stores, track)
        except (_Refused, RuntimeError) as error:
            _core.discard_capture()
            observer.reason = Reason(str(error), *_place(self.function))
            return
        captures = self.captures.setdefault(key, [])
        captures.insert(0, captured)
        self.captures.move_to_end(key)
        self._set_direct(key)
        log("guards", f"{self.name}: {len(captured.reads)} reads", *(f"\n    {line}" for line in captured.describe()))
        limit = _limit() if self.limit is None else self.limit
        while sum(map(len, self.captures.values())) > limit:
            oldest = next(iter(self.captures))
            self.captures[oldest].pop()
            self._set_direct(oldest)
            if not self.captures[oldest]:
                del self.captures[oldest]

    def _anew(
        self, observer: Observer, arguments: Arguments, args: Any, kwargs: Any, nodes: list[int], results: list[Tensor]
    ) -> tuple[Arguments, list[Place], Track | None]:
        """Return the arguments of a captured call with what it found at places that are looked up anew, these places, and what
        replays compute of its numbers."""
        tape, found = observer.tape, [each for each in observer.places.values() if each.is_taken]
        for each in [each for each in found if each.number is not None and each.number.node in tape.fixed]:
            # The call depends on what the number is: it is compared like any read.
            tape.settle(each.number.node)
            observer.reads[each.place.kind, id(each.place.owner), each.place.key] = (each.place.owner, each.value)
            found.remove(each)
        for node, step in enumerate(tape.steps):
            if node in tape.fixed and type(step.source) in (int, str):
                # So is such an argument, of which there is a capture for each value.
                tape.settle(node)
                self.static.setdefault(arguments.form, set()).add(step.source)
                arguments.set_live(arguments.live - {step.source})
                self.live[arguments.form] = arguments.live
        given = arguments if not found else Arguments((*args, *(each.value for each in found)), kwargs)
        at = {id(each): len(args) + number for number, each in enumerate(found)}
        if found:
            given.set_live(arguments.live | {at[id(each)] for each in found if each.number is not None})
        track = Track(tape, nodes, {number.node: number.tensor for number in observer.read_numbers}, results)
        track.positions = [at.get(id(source), source) for _, source in track.sources]
        track.sources = [(node, getattr(source, "place", source)) for node, source in track.sources]
        return given, [each.place for each in found], track if track.is_needed else None

    def _set_direct(self, key: Any) -> None:
        """Tell the core which captures it can replay without Python: the first ones, because they are tried in order."""
        kinds, state = key
        if _CHECKS or type(kinds) is not bytes or type(state) is not int:
            return
        found = []
        for captured in self.captures[key]:
            direct = captured.direct()
            if direct is None:
                break
            found.append(direct)
        self.direct.set(kinds, state, found)

    @staticmethod
    def _check_end(key: Any) -> None:
        if thread_state() != key[1]:
            raise _Refused("it leaves a mode of the thread changed")


class _Refused(Exception):
    """A call that cannot be replayed, with the words of the reason."""


_CHECKS = os.environ.get("GRADIRON_COMPILE_CHECK", "0") not in ("", "0")


def _limit() -> int:
    return int(options["recompile_limit"])


def _place(function: Any) -> tuple[str | None, int | None]:
    code = getattr(function, "__code__", None)
    return (None, None) if code is None else (code.co_filename, code.co_firstlineno)


def _changed_names(observer: Observer) -> list[tuple[str, Any, Any, Any]]:
    """Return the stores into cells and globals that older functions own."""
    found: list[tuple[str, Any, Any, Any]] = []
    for cell, before in observer.cells.values():
        now = cell_contents(cell)
        if now is MISSING and before is not MISSING:
            raise _Refused("it deletes a variable of an enclosing function")
        if not observer.is_untouched("cell", cell, None, now, before):
            found.append(("cell", cell, None, now))
    for module, names in observer.stored_globals.values():
        for name, before in names.items():
            now = module.get(name, MISSING)
            if now is MISSING and before is not MISSING:
                raise _Refused(f"it deletes the global {name}")
            if not observer.is_untouched("item", module, name, now, before):
                found.append(("set_item", module, name, now))
    return found


def _changed_places(observer: Observer) -> list[Place]:
    """Return the places that a call read and stored into, if each call may find another value there."""
    names = {("cell", id(cell), None): before for cell, before in observer.cells.values()}
    for module, stored in observer.stored_globals.values():
        names.update((("item", id(module), name), before) for name, before in stored.items())
    found = []
    for mark, (owner, expected) in observer.reads.items():
        kind, _, key = mark
        if kind not in KINDS or not can_be_new(expected):
            continue
        if mark in names:
            place = Place(kind, owner, key)
            changed = not observer.is_untouched(kind, owner, key, place.now(), names[mark])
        else:
            changed = (id(owner), key) in observer.written or (kind == "last" and id(owner) in observer.grown)
        if changed:
            found.append(Place(kind, owner, key))
    return found


@contextmanager
def _installed(codes: Any, observer: Observer) -> Iterator[None]:
    """While a call is captured, functions that C calls run their rewritten code."""
    changed: list[tuple[types.FunctionType, types.CodeType]] = []
    try:
        for code in list(codes):
            for function in gc.get_referrers(code):
                if not isinstance(function, types.FunctionType) or function.__code__ is not code:
                    continue
                try:
                    made, _ = calls.rewritten(function)
                except Unrewritable as error:
                    observer.reason = Reason(f"C calls {function.__qualname__}, and {error}", *_place(function))
                    break
                if made.__code__.co_freevars != code.co_freevars:
                    observer.reason = Reason(f"C calls {function.__qualname__}, whose variables differ", *_place(function))
                    break
                observer.note_cells(function)
                changed.append((function, code))
                function.__code__ = made.__code__
        yield
    finally:
        for function, code in changed:
            function.__code__ = code


def _without_own_frames(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """Return a traceback without the frames of the run time."""
    kept = []
    while traceback is not None:
        if os.path.dirname(traceback.tb_frame.f_code.co_filename) != _OWN:
            kept.append(traceback)
        traceback = traceback.tb_next
    made: types.TracebackType | None = None
    for part in reversed(kept):
        made = types.TracebackType(made, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return made


_OWN = os.path.dirname(os.path.abspath(__file__))


def as_function(compiled: CompiledFunction) -> Any:
    """Return a function that calls a compiled one, with the name and signature of the original."""

    direct, otherwise = compiled.direct.replay, compiled.replay_or_run

    @functools.wraps(compiled.function)
    def replayed(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            result = direct(args)
            if result is not NotImplemented:
                return result
        return otherwise(args, kwargs)

    replayed._torchdynamo_orig_callable = compiled.function  # type: ignore[attr-defined]
    replayed._compiled = compiled  # type: ignore[attr-defined]
    return replayed
