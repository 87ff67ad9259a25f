"""Notes on a captured call: what it reads, stores and makes."""

from __future__ import annotations

import abc
import gc
import os
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from .._types import Size, named_kind, named_result
from .errors import Unsupported
from .guards import MISSING, cell_contents, fingerprint, matches
from .live import LiveNumber, ReadNumber
from .reasons import Reason

__all__ = ["Notes", "class_dict", "class_dicts", "current", "is_active", "is_rewritten", "observe_code"]

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

    Attributes:
        reads: the reads, by kind, object and key.
        known: tensors that are older than the call, arguments first.
        effects: stores into older objects, in order.
        reason: why the call cannot be captured.
        found: code that ran unobserved, called from C.
        pinned: numbers of tensor arguments on whose identity the call depends.
        asked: numbers of tensor arguments of which the call asks more than `quick_kind` tells.
    """

    def __init__(self, given: list[Tensor], containers: list[Any], fullgraph: bool = False) -> None:
        self.thread = _ident()
        self.reads: dict[tuple[str, int, Any], tuple[Any, Any]] = {}
        self.arguments = len(given)
        self.known = list(given)
        self.numbers = {id(tensor): number for number, tensor in enumerate(given)}
        self.pinned: set[int] = set()
        self.asked: set[int] = set()
        self.fingerprints = [fingerprint(tensor) for tensor in given]
        self.containers = {id(each): each for each in containers}
        self.classes: set[tuple[type, str]] = set()
        self.fresh: dict[int, Any] = {}
        self.functions: dict[int, Any] = {}
        self.written: set[tuple[int, Any]] = set()
        self.changed: dict[int, Any] = {}
        self.grown: set[int] = set()
        self.effects: list[tuple[str, Any, Any, Any]] = []
        self.stored_globals: dict[int, tuple[dict[str, Any], set[str]]] = {}
        self.reason: Reason | None = None
        self.found: list[types.CodeType] = []
        self.collects = False
        self.trusted = 0
        self.kept: list[Any] = []
        self.held: list[Any] = []
        self.live_numbers: list[tuple[dict[Any, Any], Any, float]] = []
        self.live_indices: dict[tuple[int, Any], int] = {}
        self.fixed: set[Any] = set()
        self.read_numbers: list[ReadNumber] = []
        self.registry: Any = None
        self.missing = MISSING
        self.grads: dict[int, Any] = {}
        self.fullgraph = fullgraph
        self.on_stop: Callable[[], None] | None = None
        for number, tensor in enumerate(given):
            self._note_kind(tensor, number)

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
        if id(code) in _rewritten or code.co_filename.startswith(_OWN) or _makes_named_tuple(frame):
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

    def note(self, kind: str, owner: Any, key: Any, value: Any) -> None:
        """Note that a read of something older gave a value."""
        if key is not None and (id(owner), key) in self.written:
            return
        is_whole = kind in ("list", "set", "dict", "element") and id(owner) in self.changed
        if is_whole or (kind in ("len", "keys") and id(owner) in self.grown):
            self.stop(f"it reads a {type(owner).__name__} that it changed before")
            return
        mark = (kind, id(owner), key)
        before = self.reads.get(mark)
        if before is None:
            self.reads[mark] = (owner, value)
        elif not matches(value, before[1]) and key not in self.stored_globals.get(id(owner), ((), ()))[1]:
            self.stop(f"{kind} {key!r} of a {type(owner).__name__} changed while the call was captured")

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
        if issubclass(kind, LiveNumber) or class_dict(kind) is None:
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
            if ("cell", id(cell), None) not in self.reads:
                contents = cell_contents(cell)
                self.note("cell", cell, None, contents)
                self.see(contents)

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
        self.numbers[id(tensor)] = number = len(self.known)
        self.known.append(tensor)
        self._note_kind(tensor, number)

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

    def _note_kind(self, tensor: Tensor, number: int) -> None:
        override = getattr(type(tensor), "__torch_function__", None)
        default = getattr(Tensor, "__torch_function__", None)
        plain = override is _core._disabled_torch_function_impl or getattr(override, "__func__", 0) is getattr(
            default, "__func__", 1
        )
        if type(tensor) is not Tensor and not plain:
            self.stop(f"a tensor of class {type(tensor).__name__}, which has __torch_function__")
            return
        if number >= self.arguments:
            self.reads["tensor", id(tensor), None] = (tensor, _core.tensor_kind(tensor))

    def hold(self, value: Any) -> Any:
        """Keep an object as long as the capture."""
        self.held.append(value)
        return value

    def is_argument(self, tensor: Tensor) -> bool:
        """Return whether a tensor is an argument that Python hung nothing on: others are compared by identity."""
        number = self.numbers.get(id(tensor))
        return number is not None and number < self.arguments and not tensor.__dict__

    def ask(self, tensor: Tensor) -> None:
        """Note that the call asks more of a tensor than `quick_kind` tells."""
        number = self.numbers.get(id(tensor))
        if number is not None and number < self.arguments:
            self.asked.add(number)

    def pin(self, value: Any) -> None:
        """Note that the call depends on which object a value is."""
        number = self.numbers.get(id(value))
        if number is not None and number < self.arguments:
            self.pinned.add(number)

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
        number = ReadNumber(_core.read_captured(copy), copy, self._stop_reading)
        self.read_numbers.append(number)
        return number

    def _stop_reading(self, index: Any) -> None:
        if is_active(self):
            self.stop("it computes or decides with a number that it read from a tensor (.item())")

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

    def store(self, kind: str, owner: Any, key: Any, value: Any, grows: bool = False) -> None:
        """Note a store into something older, which a replay repeats; `grows`: a container has more elements then."""
        if id(owner) in self.containers:
            self.stop("it stores into one of its arguments")
            return
        self.written.add((id(owner), key))
        self.changed[id(owner)] = owner
        if grows:
            self.grown.add(id(owner))
        self.effects.append((kind, owner, key, value))

    def last_stores(self) -> list[tuple[str, Any, Any, Any]]:
        """Return the stores without those that later ones undo: of several into one place the last, and none that puts back
        what the call found there."""
        last: dict[tuple[str, int, Any], tuple[str, Any, Any, Any]] = {}
        for number, (kind, owner, key, value) in enumerate(self.effects):
            last[kind, id(owner), number if kind == "append" else key] = (kind, owner, key, value)
        reads = {"set_item": "item", "set_attr": "attr"}
        kept = []
        for (kind, _, _), store in last.items():
            before = self.reads.get((reads.get(kind, ""), id(store[1]), store[2]))
            if before is None or before[1] is not store[3]:
                kept.append(store)
        return kept


# What `torch.Size` does, and making a named tuple, reads nothing but what they are given; C calls them.
for _function in (*vars(Size).values(), named_kind, named_result):
    _function = getattr(_function, "__func__", _function)
    if isinstance(_function, types.FunctionType):
        observe_code(_function.__code__, _function.__code__)


def _makes_named_tuple(frame: types.FrameType) -> bool:
    """Return whether it is the `__new__` that was generated for a named tuple."""
    return frame.f_code.co_filename == "<string>" and "_tuple_new" in frame.f_globals


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
