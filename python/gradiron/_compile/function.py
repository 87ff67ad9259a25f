"""Compiled functions: captured once for each kind of arguments and state, replayed afterwards."""

from __future__ import annotations

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
from .arguments import NO_NUMBERS, Arguments, Template
from .captured import Captured, Difference, Given, forget_dead, still_reachable
from .check import compare_both
from .errors import Unsupported
from .guards import MISSING, cell_contents, matches, thread_state
from .notes import class_dicts
from .observer import Observer
from .places import KINDS, Place, can_be_new
from .reasons import Reason, Unrewritable, log
from .settings import options, stance
from .settle import settled
from .sources import forget_sources
from .tape import Track

__all__ = ["CompiledFunction", "compiled_functions", "reset"]

# How often a read may differ, and how often a call may turn out not to be capturable, before it runs as it is; how many
# functions that C calls are looked for; how many kinds of arguments are remembered, and how many places.
_DIFFERS, _FAILS, _FOUND, _SEEN, _PLACES = 8, 3, 64, 256, 1024

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
            arguments.set_live(self.live.get(arguments.form, NO_NUMBERS))
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
            if isinstance(given, Difference):
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
        places = [place for place in self.places.values() if can_be_new(place.now())]
        observer = Observer(arguments.tensors, arguments.containers, self.fullgraph, places)
        with _installed(self.found.values(), observer):
            if observer.reason is None:
                # Replays convert weights anew, so no converted ones come in, and none go out.
                clear_autocast_cache()
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
                clear_autocast_cache()
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
            effects = [*observer.last_stores(), *_changed_names(observer)]
            nodes = [node for owner, node, _ in observer.live_numbers if owner is None]
            try:
                asks = (observer.is_fresh, lambda value: id(value) in observer.containers, nodes)
                made = Template(result, results, *asks)
                stores = [(kind, owner, name, Template(value, results, *asks)) for kind, owner, name, value in effects]
            except TypeError as error:
                raise _Refused(f"it returns or stores a {error}") from None
            given, places, track = self._anew(observer, arguments, args, kwargs, nodes, results)
            at = {id(each): number for number, each in enumerate(given.containers)}
            stores = [(kind, Given(at[id(owner)]) if id(owner) in at else owner, *rest) for kind, owner, *rest in stores]
            key = (arguments.key, key[1])
            for number in observer.read_numbers:
                number.tensor = None
            observer.made = frozenset(observer.fresh)
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
            observer.known = [*given.tensors, *still_reachable(observer)]
            forget_dead(observer)
            program = _core.end_program(observer.known, results, len(given.tensors), self.fuses)
            captured = Captured(observer, arguments, given, places, program, made, stores, track)
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
    ) -> tuple[Arguments, list[tuple[Place, Any]], Track | None]:
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
                # Each value of such an argument has a capture of its own.
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
        return given, [(each.place, each.value) for each in found], track if track.is_needed else None

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
    names: dict[Any, Any] = {("cell", id(cell), None): before for cell, before in observer.cells.values()}
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
