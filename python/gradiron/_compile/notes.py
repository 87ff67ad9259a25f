"""Notes on a captured call: what it reads, stores and makes."""

from __future__ import annotations

import abc
import gc
import os
import sys
import threading
import types
from collections.abc import Callable, Iterable
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import strided
from .._types import Size, named_kind, named_result
from .errors import Unsupported
from .guards import MISSING, cell_contents, fingerprint, matches
from .live import EXACT, LIVE, LiveNumber, ReadNumber, is_live, plain, value_of
from .places import Place, can_be_new
from .reasons import Reason
from .tape import Tape

__all__ = ["Notes", "class_dict", "class_dicts", "current", "is_active", "is_rewritten", "makes_named_tuple", "observe_code"]

_active: Any = None
_ident = threading.get_ident

# Code that may run while a call is captured: rewritten functions, by identity. They are kept, so no identity is used twice.
_rewritten: dict[int, tuple[types.CodeType, types.CodeType]] = {}

_HEAP, _IMMUTABLE = 1 << 9, 1 << 8
# The dicts of the classes that the running capture met.
class_dicts: dict[type, Any] = {}


def current() -> Any:
    """Return the observer of this thread's captured call."""
    observer = _active
    return observer if observer is not None and observer.thread == _ident() else None


def is_active(observer: Any) -> bool:
    """Return whether an observer still observes."""
    return _active is observer


def _note_call(frame: types.FrameType) -> bool:
    """Pass a call on to the observer of this thread; return whether calls of this function need not be passed on again."""
    observer = current()
    return observer is not None and observer.note_call(frame)


# One of the module, because Python may still call one that was replaced a moment ago.
_profile = _core.CallWatch(_note_call).notice


def observe_code(code: types.CodeType, original: types.CodeType) -> None:
    """Let a rewritten function, and the functions inside of it, run while calls are captured."""
    _rewritten[id(code)] = (code, original)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            observe_code(const, const)


def is_rewritten(code: types.CodeType) -> types.CodeType | None:
    """Return the code that a rewritten one stands for; `None` if it is not rewritten."""
    found = _rewritten.get(id(code))
    return None if found is None else found[1]


def class_dict(cls: type) -> dict[str, Any] | None:
    """Return the dict in which a class keeps its attributes; `None` if nobody can change the class."""
    if not cls.__flags__ & _HEAP or cls.__flags__ & _IMMUTABLE:
        return None
    found = class_dicts.get(cls)
    if found is None:
        # A class shows its dict through a proxy; the collector knows what is behind it.
        referents = gc.get_referents(type.__dict__["__dict__"].__get__(cls))
        found = next((each for each in referents if type(each) is dict), None)
        if found is not None:
            class_dicts[cls] = found
    return found


class Notes:
    """Notes what a call reads, stores and makes, while it runs.

    What is not known to be made by the call is taken for older than the call.

    Args:
        given: the tensors among the arguments.
        containers: the lists and dicts among the arguments, whose contents are compared with the arguments.
        fullgraph: whether a reason raises.
        places: the places that are looked up anew before each replay.

    Attributes:
        reads: the reads, by kind, object and key.
        known: tensors that are older than the call, arguments first.
        effects: stores into older objects, in order.
        reason: why the call cannot be captured.
        found: code that ran unobserved, called from C.
        given: the tensors among the arguments and at the places that the call read, by identity, each with its fingerprint.
        pinned: identities of given tensors on whose identity the call depends.
        asked: identities of given tensors of which the call asks more than `quick_kind` tells.
        found: the places that the call read, with what was there.
        tape: its arithmetic on numbers that differ from call to call.
    """

    def __init__(
        self, given: list[Tensor], containers: list[Any], fullgraph: bool = False, places: Iterable[Place] = ()
    ) -> None:
        self.thread = _ident()
        self.reads: dict[tuple[str, int, Any], tuple[Any, Any]] = {}
        self.known = list(given)
        self.numbers = {id(tensor): number for number, tensor in enumerate(given)}
        self.given = {id(tensor): (tensor, fingerprint(tensor)) for tensor in given}
        self.pinned: set[int] = set()
        self.asked: set[int] = set()
        self.containers = {id(each): each for each in containers}
        self.lent = frozenset(self.containers)
        self.places = {(place.kind, id(place.owner), place.key): _Found(place) for place in places}
        self.tape = Tape(self._stop_reading, lambda: is_active(self))
        self.cells: dict[int, tuple[Any, Any]] = {}
        self.classes: set[tuple[type, str]] = set()
        self.fresh: dict[int, Any] = {}
        self.made: frozenset[int] = frozenset()
        self.functions: dict[int, Any] = {}
        self.written: set[tuple[int, Any]] = set()
        self.changed: dict[int, Any] = {}
        self.grown: set[int] = set()
        self.lengths: dict[int, int] = {}
        self.effects: list[tuple[str, Any, Any, Any]] = []
        self.stored_globals: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
        self.reason: Reason | None = None
        self.found: list[types.CodeType] = []
        self.collects = False
        self.trusted = 0
        self.kept: list[Any] = []
        self.held: list[Any] = []
        self.live_numbers: list[tuple[dict[Any, Any] | None, Any, float]] = []
        self.live_indices: dict[tuple[int, Any], int] = {}
        self.fixed: set[Any] = set()
        self.read_numbers: list[ReadNumber] = []
        self.registry: Any = None
        self.missing = MISSING
        self.grads: dict[int, Any] = {}
        self.fullgraph = fullgraph
        self.on_stop: Callable[[], None] | None = None
        for tensor in given:
            self._note_kind(tensor)

    # Begin and end.

    def begin(self) -> None:
        """Observe this thread from now on."""
        global _active
        _active = self
        self.collects = gc.isenabled()
        # A collection would call its callbacks and finalizers in the middle of the call.
        gc.disable()
        sys.setprofile(_profile)

    def end(self) -> None:
        """Observe no longer."""
        global _active
        if _active is self:
            _active = None
            sys.setprofile(None)
            if self.collects:
                gc.enable()

    def stop(self, words: str, frame: Any = None) -> None:
        """Give up: the call goes on as it is.

        Raises:
            Unsupported: if the whole function must be captured.
        """
        self.end()
        if self.reason is None:
            self.reason = Reason.here(words, sys._getframe(1) if frame is None else frame)
        if self.on_stop is not None:
            self.on_stop()
        if self.fullgraph and not self.found:
            raise Unsupported(str(self.reason))

    def note_call(self, frame: types.FrameType) -> bool:
        """Note that a function of Python is called: give up if it is neither rewritten nor the compiler's own, which is
        returned."""
        code = frame.f_code
        if id(code) in _rewritten or code.co_filename.startswith(_OWN) or makes_named_tuple(code, frame.f_globals):
            return True
        if self.trusted:
            return False
        if code in _OF_ABC:
            self.registry = abc.get_cache_token()
            return False
        self.found.append(code)
        name = getattr(code, "co_qualname", code.co_name)
        self.stop(f"{name} in {code.co_filename}:{code.co_firstlineno} is called from C", frame.f_back)
        return False

    # Reads.

    def note(self, kind: str, owner: Any, key: Any, value: Any, anew: bool = False) -> None:
        """Note that a read of something older gave a value. If `anew`, it may be another one in each replay."""
        if key is not None and (id(owner), key) in self.written:
            return
        is_whole = kind in ("list", "set", "dict") and id(owner) in self.changed
        if is_whole or (kind in ("len", "keys", "last") and id(owner) in self.grown):
            self.stop(f"it reads a {type(owner).__name__} that it changed before")
            return
        mark = (kind, id(owner), key)
        if anew and mark in self.places and self._take(self.places[mark], value):
            return
        before = self.reads.get(mark)
        if before is None:
            self.reads[mark] = (owner, value)
        elif not matches(value, before[1]) and key not in self.stored_globals.get(id(owner), ((), ()))[1]:
            self.stop(f"{kind} {key!r} of a {type(owner).__name__} changed while the call was captured")

    def read(self, kind: str, owner: Any, key: Any, value: Any) -> Any:
        """Take a value that was read at a place: a number that each replay finds anew, if the place is one of these."""
        if isinstance(value, LIVE) or (id(owner), key) in self.written:
            return value  # the call has stored it there
        self.note(kind, owner, key, value, True)
        found = self.places.get((kind, id(owner), key))
        if found is None or not found.is_taken:
            return self.see(value)
        return value if found.number is None or value is not found.value else found.number

    def is_place(self, kind: str, owner: Any, key: Any) -> bool:
        """Return whether a place is looked up anew before each replay."""
        return (kind, id(owner), key) in self.places

    def _take(self, found: _Found, value: Any) -> bool:
        """Take what the call finds at a place that is looked up anew. False if it depends on that in another way, too."""
        if found.is_taken is None:
            tensors: list[Tensor] = []
            containers: list[Any] = []
            found.value = value
            found.is_taken = can_be_new(value) and _parts(value, tensors, containers)
            found.is_taken = found.is_taken and not any(
                id(each) in self.fresh or (id(each) in self.numbers and id(each) not in self.given) for each in tensors
            )
            found.is_taken = found.is_taken and not any(id(each) in self.containers for each in containers)
            if found.is_taken:
                found.tensors = tensors
                self.containers.update((id(each), each) for each in containers)
                for each in tensors:
                    self._give(each)
                if type(value) in (int, float):
                    found.number = self.tape.leaf(value, found)
        # A global may hold what the call stored there itself.
        return bool(found.is_taken)

    def _give(self, tensor: Tensor) -> None:
        if id(tensor) not in self.given:
            self.numbers[id(tensor)] = len(self.known)
            self.known.append(tensor)
            self.given[id(tensor)] = (tensor, fingerprint(tensor))
            self._note_kind(tensor)

    def note_class(self, cls: type, name: str) -> None:
        """Note where a class has an attribute, or that it has none."""
        if (cls, name) in self.classes:
            return
        self.classes.add((cls, name))
        for each in cls.__mro__:
            own = class_dict(each)
            if own is None:
                if name in each.__dict__:
                    return
                continue
            if ("attr", id(each), "__mro__") not in self.reads:
                self.note("attr", each, "__mro__", each.__mro__)
            found = own.get(name, MISSING)
            if id(each) not in self.fresh:
                self.note("item", own, name, found)
            if found is not MISSING:
                return

    def note_type(self, value: Any) -> None:
        """Note the class of an older object."""
        kind = type(value)
        if issubclass(kind, LIVE) or class_dict(kind) is None:
            return
        self.note("attr", kind, "__mro__", kind.__mro__)
        if id(value) not in self.fresh and not isinstance(value, Tensor):
            self.note("type", value, None, kind)

    def note_registry(self, cls: Any) -> None:
        """Note that the call asks an abstract base class, whose subclasses are registered in one place for all of them."""
        if any(isinstance(each, abc.ABCMeta) for each in (cls if isinstance(cls, tuple) else (cls,))):
            self.registry = abc.get_cache_token()

    def note_cells(self, function: types.FunctionType) -> None:
        """Note what a function is, and what its closure holds."""
        code = function.__code__
        # A function that C calls has its rewritten code in place.
        self.note("attr", function, "__code__", is_rewritten(code) or code)
        self.note("attr", function, "__defaults__", function.__defaults__)
        self.note("attr", function, "__kwdefaults__", function.__kwdefaults__)
        for value in function.__defaults__ or ():
            self.see(value)
        if function.__kwdefaults__:
            self.note_dict(function.__kwdefaults__)
        for cell in function.__closure__ or ():
            if id(cell) not in self.cells:
                contents = cell_contents(cell)
                self.cells[id(cell)] = (cell, contents)
                found = self.read("cell", cell, None, contents)
                if found is not contents:
                    cell.cell_contents = found

    def note_dict(self, own: dict[Any, Any]) -> None:
        """Note all keys and values of a dict."""
        if id(own) in self.fresh or id(own) in self.containers:
            return
        values = tuple(own.values())
        if id(own) in self.changed:
            self.note_keys(own)
            for key, value in own.items():
                self.note("item", own, key, value)
        else:
            self.note("dict", own, None, (tuple(own), values))
        for value in (*own, *values):
            self.see(value)

    def note_keys(self, own: dict[Any, Any]) -> None:
        """Note all keys of a dict."""
        if id(own) in self.fresh or id(own) in self.containers:
            return
        self.note("keys", own, None, tuple(own))
        for key in own:
            self.see(key)

    def note_elements(self, own: Any) -> None:
        """Note all elements of a list or set."""
        if id(own) in self.fresh or id(own) in self.containers:
            return
        values = tuple(own)
        self.note("list" if isinstance(own, list) else "set", own, None, values)
        for value in values:
            self.see(value)

    def use(self, tensor: Tensor) -> None:
        """Take a tensor that the call computes with: unless the call made it, it is known."""
        if id(tensor) in self.fresh or id(tensor) in self.grads or id(tensor) in self.numbers:
            return
        self.numbers[id(tensor)] = len(self.known)
        self.known.append(tensor)
        self._note_kind(tensor)

    def see(self, value: Any) -> Any:
        """Take a value that was read from something older: its tensors become known."""
        if isinstance(value, Tensor):
            self.use(value)
            self.pin(value)
        elif isinstance(value, (tuple, frozenset)) and type(value) is not _core.Sizes:
            for each in value:
                self.see(each)
        elif isinstance(value, (types.MethodType, types.BuiltinFunctionType)):
            if isinstance(value.__self__, Tensor):
                self.see(value.__self__)
        elif id(value) in self.containers:
            self.stop("it reaches an argument in another way, too")
        return value

    def _note_kind(self, tensor: Tensor) -> None:
        override = getattr(type(tensor), "__torch_function__", None)
        default = getattr(Tensor, "__torch_function__", None)
        plain = override is _core._disabled_torch_function_impl or getattr(override, "__func__", 0) is getattr(
            default, "__func__", 1
        )
        if type(tensor) is not Tensor and not plain:
            self.stop(f"a tensor of class {type(tensor).__name__}, which has __torch_function__")
            return
        if id(tensor) not in self.given:
            self.reads["tensor", id(tensor), None] = (tensor, _core.tensor_kind(tensor))

    def hold(self, value: Any) -> Any:
        """Keep an object as long as the capture."""
        self.held.append(value)
        return value

    def is_argument(self, tensor: Tensor) -> bool:
        """Return whether a tensor is given anew in each call and Python hung nothing on it: others are compared by identity."""
        return id(tensor) in self.given and not tensor.__dict__

    def ask(self, tensor: Tensor) -> None:
        """Note that the call asks more of a tensor than `quick_kind` tells."""
        if id(tensor) in self.given:
            self.asked.add(id(tensor))

    def pin(self, value: Any) -> None:
        """Note that the call depends on which object a value is."""
        if id(value) in self.given:
            self.pinned.add(id(value))

    def trust(self) -> _Trust:
        """Under `with`, let Python run unobserved: it is known to read nothing that may change."""
        return _Trust(self)

    def live(self, owner: dict[Any, Any], key: Any, value: float) -> float:
        """Return a float of an older dict as a number that each replay reads anew."""
        if (id(owner), key) in self.written:
            return value
        index = self.live_indices.get((id(owner), key))
        if index is None:
            index = self.live_indices[id(owner), key] = len(self.live_numbers)
            self.live_numbers.append((owner, key, value))
        return LiveNumber(value, index, self.fixed.add)

    def read_number(self, tensor: Tensor) -> float:
        """Return the number in a tensor, which each replay reads anew."""
        copy = tensor.detach().clone()
        number = ReadNumber(_core.read_captured(copy), copy, self._stop_reading, self.tape.late())
        self.read_numbers.append(number)
        return number

    def _stop_reading(self, index: Any = None) -> None:
        if is_active(self):
            self.stop("it computes or decides with a number that it read from a tensor (.item())")

    def tensor_of(self, number: Any, like: Tensor, dtype: Any = None) -> Tensor | None:
        """Return a tensor without dimensions that holds a number of the tape, by default in the dtype of another tensor; `None`
        if kernels cannot take the number from there."""
        dtype = like.dtype if dtype is None else dtype
        is_late = isinstance(number, ReadNumber) or self.tape.steps[number.node].is_late
        if is_late or like.is_meta or dtype not in (_core.float32, _core.float64) or abs(value_of(number)) > EXACT:
            return None
        if like.layout is not strided:
            return None
        made: Tensor = _core.live_tensor(value_of(number), self._index(number), dtype == _core.float64)
        if not like.is_cpu:
            with self.trust():
                made = made.to(like.device)
        return self.make(made)

    def live_inside(self, value: Any) -> Any:
        """Return an argument of an optimizer's program, with numbers of the tape as the core knows them."""
        if is_live(value):
            if self.tape.steps[value.node].is_late or isinstance(value, int):
                return plain(value)
            return LiveNumber(value_of(value), self._index(value), lambda _: value.fix())
        if type(value) in (list, tuple) and any(isinstance(each, (*LIVE, list, tuple)) for each in value):
            return type(value)([self.live_inside(each) for each in value])
        return value

    def _index(self, number: Any) -> int:
        """Return the index of a number of the tape among the live numbers of the core."""
        self.live_numbers.append((None, number.node, value_of(number)))
        return len(self.live_numbers) - 1

    def keep(self, value: Any) -> None:
        """Keep an object, whose identity was noted, until the call has ended."""
        self.kept.append(value)

    # What the call makes.

    def make(self, value: Any) -> Any:
        """Take a value that the call made."""
        if isinstance(value, Tensor):
            if id(value) not in self.numbers:
                self.fresh[id(value)] = value
        elif type(value) not in _IMMUTABLE_TYPES:
            self.fresh[id(value)] = value
        return value

    def is_fresh(self, value: Any) -> bool:
        """Return whether the call made a value."""
        return id(value) in self.fresh or isinstance(value, _core._FunctionBase)

    # Stores.

    def is_new(self, kind: str, owner: Any, key: Any, old: Any, new: Any) -> bool:
        """Return whether a store changes what is there, or may change it in a replay."""
        known = (id(owner), key) in self.written or (kind, id(owner), key) in self.places
        return known or id(owner) in self.containers or not matches(old, new) or not self._is_fixed(new)

    def is_untouched(self, kind: str, owner: Any, key: Any, now: Any, before: Any) -> bool:
        """Return whether a variable still holds what it held when the call began."""
        found = self.places.get((kind, id(owner), key))
        if found is not None and found.is_taken:
            return now is (found.value if found.number is None else found.number)
        return matches(now, before) and (now is before or self._is_fixed(now))

    def _is_fixed(self, value: Any) -> bool:
        if isinstance(value, tuple):
            return all(map(self._is_fixed, value))
        return id(value) not in self.given and id(value) not in self.containers

    def store(self, kind: str, owner: Any, key: Any, value: Any, grows: bool = False) -> None:
        """Note a store into something older, which a replay repeats; `grows` says whether it has more elements then."""
        if id(owner) in self.containers and id(owner) not in self.lent:
            self.stop("it stores into a container that it found where earlier calls stored it")
            return
        self.written.add((id(owner), key))
        if isinstance(owner, list) and key is not None:
            length = self.lengths[id(owner)]
            self.written.add((id(owner), key - length if key >= 0 else key + length))
        self.changed[id(owner)] = owner
        if grows:
            self.grown.add(id(owner))
        self.effects.append((kind, owner, key, value))

    def last_stores(self) -> list[tuple[str, Any, Any, Any]]:
        """Return the stores without those that later ones undo: of several into one place the last, and none that puts back
        what the call found there."""
        last: dict[tuple[str, int, Any], tuple[str, Any, Any, Any]] = {}
        for number, (kind, owner, key, value) in enumerate(self.effects):
            mark = (kind, id(owner), number if kind == "append" else key)
            # Where two names are one place, the later store counts.
            last.pop(mark, None)
            last[mark] = (kind, owner, key, value)
        reads = {"set_item": "item", "set_attr": "attr"}
        kept = []
        for (kind, _, _), store in last.items():
            before = self.reads.get((reads.get(kind, ""), id(store[1]), store[2]))
            if before is None or before[1] is not store[3]:
                kept.append(store)
        return kept


class _Found:
    """What a call finds at a place.

    Attributes:
        is_taken: whether each replay looks it up anew; `None` until it is read.
        value: what is there when the call begins.
        number: the number that stands for it on the tape, if it is one.
        tensors: the tensors in it.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.is_taken: bool | None = None
        self.value: Any = None
        self.number: Any = None
        self.tensors: list[Tensor] = []


def _parts(value: Any, tensors: list[Tensor], containers: list[Any]) -> bool:
    """Collect the tensors and the containers in a value."""
    if isinstance(value, Tensor):
        tensors.append(value)
    elif isinstance(value, (list, tuple, dict)):
        if not isinstance(value, tuple):
            containers.append(value)
        for each in value.values() if isinstance(value, dict) else value:
            _parts(each, tensors, containers)
    return True


# What `torch.Size` does, and making a named tuple, reads nothing but what they are given; C calls them.
for _function in (*vars(Size).values(), named_kind, named_result):
    _function = getattr(_function, "__func__", _function)
    if isinstance(_function, types.FunctionType):
        observe_code(_function.__code__, _function.__code__)


def makes_named_tuple(code: types.CodeType, own_globals: dict[str, Any]) -> bool:
    """Return whether it is the code of a `__new__` that was generated for a named tuple, which only stores its arguments."""
    return code.co_filename == "<string>" and "_tuple_new" in own_globals


_OF_ABC = frozenset((abc.ABCMeta.__instancecheck__.__code__, abc.ABCMeta.__subclasscheck__.__code__))


class _Trust:
    def __init__(self, notes: Notes) -> None:
        self.notes = notes

    def __enter__(self) -> None:
        self.notes.trusted += 1

    def __exit__(self, *error: object) -> None:
        self.notes.trusted -= 1


_IMMUTABLE_TYPES = frozenset((int, float, str, bytes, bool, complex, type(None), tuple, frozenset, range, slice, type(...)))
_OWN = os.path.dirname(os.path.abspath(__file__))
