"""Compiled functions: captured once for each kind of arguments and state, replayed afterwards."""

from __future__ import annotations

import abc
import functools
import gc
import os
import sys
import threading
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import _core
from .._core import Tensor
from ..amp.autocast_mode import clear_autocast_cache
from . import calls
from .arguments import Arguments, Template
from .check import compare_both
from .errors import Unsupported
from .guards import MISSING, cell_contents, fingerprint, matches, thread_state
from .notes import class_dicts
from .observer import Observer
from .reasons import Reason, Unrewritable, log
from .settings import options, stance
from .settle import settled
from .sources import forget_sources

__all__ = ["CompiledFunction", "compiled_functions", "reset"]

# How often a read may differ, and how often a call may turn out not to be capturable, before it runs as it is; how many
# functions that C calls are looked for; and how many kinds of arguments are remembered.
_DIFFERS, _FAILS, _FOUND, _SEEN = 8, 3, 64, 256

# One call of the process is captured at a time: what is observed, and functions whose code is changed meanwhile, are shared.
_capturing = threading.Lock()

_compiled: Any = None


def _begin_anew() -> None:
    """In a forked process, forget that a thread of the other one may have been capturing."""
    global _capturing
    _capturing = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


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
    """

    __slots__ = ("mark", "words")

    def __init__(self, words: str, mark: Any) -> None:
        self.words = words
        self.mark = mark


class Captured:
    """A captured call.

    Args:
        observer: what the call read and stored.
        arguments: its arguments.
        program: its kernels.
        result: its result, without the tensors.
        effects: its stores into older objects, each with a value without tensors.
    """

    def __init__(self, observer: Observer, arguments: Arguments, program: Any, result: Template, effects: list[Any]) -> None:
        live = set(program.numbers) - observer.fixed
        for number, (owner, key, value) in enumerate(observer.live_numbers):
            if number not in live:
                name, expected = (key, value) if type(key) is not tuple else (key[0], whole_tuple(observer, owner, key[0]))
                observer.reads["item", id(owner), name] = (owner, expected)
        self.live = [(owner, key) for owner, key, _ in observer.live_numbers] if program.numbers else []
        self.has_tuples = any(type(key) is tuple for _, key in self.live)
        for number in program.used:
            # The program compares all of these but the class by itself.
            tensor = observer.known[number]
            if observer.reads.pop(("tensor", id(tensor), None), None) is not None:
                observer.reads["type", id(tensor), None] = (tensor, type(tensor))
        self.reads = ordered(observer)
        self.owners = owners_of(self.reads)
        self.guards = _core.Guards(self.reads, MISSING)
        self.pinned = [(number, arguments.tensors[number]) for number in sorted(observer.pinned)]
        self.registry = observer.registry
        self.asked = [(number, observer.fingerprints[number]) for number in sorted(observer.asked)]
        self.rarely = bool(self.pinned or self.asked or observer.registry is not None)
        self.objects = [*arguments.objects, *observer.held]
        self.program = program
        self.known = observer.known[len(arguments.tensors) :]
        self.result = result
        self.effects = effects

    def direct(self) -> tuple[Any, ...] | None:
        """Return what the core needs to replay this without Python; `None` if it cannot."""
        if self.effects or self.asked or self.registry is not None or self.result.outline is None or self.has_tuples:
            return None
        return (self.program, self.guards, self.live, self.pinned, self.result.outline)

    def differs(self, arguments: Arguments) -> Difference | None:
        """Return the first read that differs from the capture's."""
        found = self._differs_rarely(arguments) if self.rarely else None
        failed = self.guards.failed() if found is None else None
        return found if failed is None else self._failed(failed)

    def _failed(self, number: int) -> Difference:
        read = self.reads[number]
        return Difference(described(read, self.owners), (read[0], id(read[1]), _mark(read[2])))

    def _differs_rarely(self, arguments: Arguments) -> Difference | None:
        for number, tensor in self.pinned:
            if arguments.tensors[number] is not tensor:
                return Difference(f"which object tensor {number} among the arguments is", ("pinned", number))
        for number, expected in self.asked:
            if not matches(fingerprint(arguments.tensors[number]), expected):
                return Difference(f"the kind of tensor {number} among the arguments", ("asked", number))
        if self.registry is not None and self.registry != abc.get_cache_token():
            return Difference("a class was registered with an abstract base class", ("registry",))
        return None

    def describe(self) -> list[str]:
        """Return the reads in words."""
        return [described(read, self.owners) for read in self.reads]

    def replay(self, arguments: Arguments, compares: bool = False) -> Any:
        """Run the kernels again, and return a tuple of the result; a `Difference` if that cannot be.

        Args:
            arguments: the arguments of this call.
            compares: whether the reads are compared before.
        """
        if compares and self.rarely:
            found = self._differs_rarely(arguments)
            if found is not None:
                return found
        numbers = tuple([number_at(owner, key) for owner, key in self.live])
        for number in numbers:
            if type(number) is not float:
                return Difference("a number that the replay reads anew", "number")
        made = self.program.replay(tuple(arguments.tensors), numbers, self.guards if compares else None)
        if type(made) is str:
            return Difference(made, made)
        if type(made) is int:
            return self._failed(made)
        for kind, owner, key, value in self.effects:
            new = value.make(made)
            if kind == "set_item":
                owner[key] = new
            elif kind == "set_attr":
                object.__setattr__(owner, key, new)
            elif kind == "append":
                owner.append(new)
            else:
                owner.cell_contents = new
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
    for number in range(observer.arguments, len(observer.known)):
        tensor = observer.known[number]
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


class CompiledFunction:
    """A function with its captures.

    Args:
        function: the function.
        fullgraph: whether what cannot be captured raises.
        limit: how many captures are kept.
        name: what it is called in logs.
    """

    # A captured call that calls another compiled function captures that, too.
    _is_compiled_function = True

    def __init__(self, function: Callable[..., Any], fullgraph: bool, limit: int | None, name: str | None) -> None:
        global _compiled
        if _compiled is None:
            _compiled = weakref.WeakSet()
        _compiled.add(self)
        self.function = function
        self.fullgraph = fullgraph
        self.limit = limit
        self.name = name or getattr(function, "__qualname__", type(function).__name__)
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
        key = (arguments.key, state)
        captures = self.captures.get(key)
        if captures is None and not self._is_seen(key):
            return self.function(*args, **kwargs)
        why: Difference | None = None
        for number, captured in enumerate(captures or ()):
            if _CHECKS and captured.differs(arguments) is None:
                return compare_both(self, captured, arguments, args, kwargs)
            done = captured.replay(arguments, not stance.trusts)
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

    def _run(self, key: Any, why: Difference | None, arguments: Arguments, args: Any, kwargs: Any) -> Any:
        """Run the function because no capture fits, and capture it if that may help the next call."""
        if why is not None:
            log("recompiles", f"{self.name}: {why.words} differs from the captured call")
            mark = (key, why.mark)
            self.differed[mark] = self.differed.pop(mark, 0) + 1
            if len(self.differed) > _SEEN:
                self.differed.popitem(last=False)
            if self.differed[mark] >= _DIFFERS:
                if not self.replays:
                    # Captures that never fitted would only be compared in vain.
                    self.captures[key] = []
                    self._set_direct(key)
                    del self.captures[key]
                self._say(key, Reason(f"{why.words} differs from call to call"), final=True)
        if stance.forced == "fail_on_recompile" and self.captures:
            raise RuntimeError(
                "Detected recompile when torch.compile stance is 'fail_on_recompile'. "
                f"{self.name}: {why.words if why else 'new'}"
            )
        if stance.forced == "eager_on_recompile" and self.captures:
            return self.function(*args, **kwargs)
        lock = _capturing
        if self.eager.get(key, 0) >= _FAILS or sys.getprofile() is not None or not lock.acquire(blocking=False):
            return self.function(*args, **kwargs)
        try:
            return self._capture(key, arguments, args, kwargs)
        finally:
            lock.release()

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
        observer = Observer(arguments.tensors, arguments.containers, self.fullgraph)
        with _installed(self.found.values(), observer):
            if observer.reason is None:
                # Replays convert weights anew, so no converted ones come in, and none go out.
                clear_autocast_cache()
                _core.begin_capture(True)
                observer.on_stop = _core.discard_capture
                observer.begin()
            class_dicts.clear()
            try:
                result = observer.call(self.function, *args, **kwargs)
            except BaseException as error:
                observer.end()
                _core.discard_capture()
                raise error.with_traceback(_without_own_frames(error.__traceback__)) from error.__cause__
            finally:
                observer.end()
                clear_autocast_cache()
        new = [code for code in observer.found if id(code) not in self.found]
        if observer.found and new and len(self.found) < _FOUND:
            self.found.update((id(code), code) for code in new)
            # The next call is observed with these functions rewritten, too.
            return settled(observer, observer.effects, result)
        stores = list(observer.effects) if observer.read_numbers else []
        if observer.reason is None:
            self._finish(key, observer, arguments, result)
        result = settled(observer, stores, result)
        class_dicts.clear()
        forget_sources()
        if observer.reason is not None:
            self._say(key, observer.reason)
        return result

    def _finish(self, key: Any, observer: Observer, arguments: Arguments, result: Any) -> None:
        """Keep what was captured, unless it turns out that it cannot be replayed."""
        results: list[Tensor] = []
        try:
            self._check_end(key)
            effects = [*observer.last_stores(), *_changed_names(observer)]
            try:
                asks = (observer.is_fresh, lambda value: id(value) in observer.containers)
                made = Template(result, results, *asks)
                stores = [(kind, owner, name, Template(value, results, *asks)) for kind, owner, name, value in effects]
            except TypeError as error:
                raise _Refused(f"it returns or stores a {error}") from None
            for number in observer.read_numbers:
                number.tensor = None
            observer.fresh.clear()
            observer.grads.clear()
            observer.kept.clear()
            observer.functions.clear()
            observer.changed.clear()
            observer.effects.clear()
            del result, effects
            forget_dead(observer)
            # What only cycles hold does not outlive the call. All that it made is young, because no collection ran meanwhile.
            gc.collect(0)
            observer.known = [*arguments.tensors, *still_reachable(observer)]
            forget_dead(observer)
            program = _core.end_program(observer.known, results, len(arguments.tensors))
            captured = Captured(observer, arguments, program, made, stores)
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
    for (kind, _, _), (owner, expected) in observer.reads.items():
        if kind == "cell":
            now = cell_contents(owner)
            if now is MISSING and expected is not MISSING:
                raise _Refused("it deletes a variable of an enclosing function")
            if not matches(now, expected):
                found.append(("cell", owner, None, now))
    for module, names in observer.stored_globals.values():
        for name in names:
            before = observer.reads["item", id(module), name][1]
            now = module.get(name, MISSING)
            if now is MISSING and before is not MISSING:
                raise _Refused(f"it deletes the global {name}")
            if not matches(now, before):
                found.append(("set_item", module, name, now))
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
