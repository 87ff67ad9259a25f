"""A checkpointed call: its saved tensors are dropped and recomputed by a second run."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from .. import _core
from .._core import Tensor
from ..autograd.grad_mode import enable_grad
from ..autograd.graph import saved_tensors_hooks
from ._inputs import Levels, joined, taken_apart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class CheckpointError(RuntimeError):
    """Raised in the backward pass if the second run of a checkpointed function differs from the first.

    Examples:
        >>> issubclass(torch.utils.checkpoint.CheckpointError, RuntimeError)
        True
    """


class GraphExecGroup:
    """Share recomputed tensors among the backward passes in a `with` block, so that each checkpoint runs again once.

    No two of these passes may need the same saved tensor.

    Examples:
        >>> x = torch.ones(1, requires_grad=True)
        >>> y = torch.utils.checkpoint.checkpoint(torch.exp, x, use_reentrant=False)
        >>> with torch.utils.checkpoint.GraphExecGroup():
        ...     y.backward()
    """

    _current: GraphExecGroup | None = None

    def __enter__(self) -> GraphExecGroup:
        if GraphExecGroup._current is not None:
            raise RuntimeError(f"GraphExecGroup contexts cannot be nested. Already inside group {GraphExecGroup._current}")
        GraphExecGroup._current = self
        return self

    def __exit__(self, *args: object) -> None:
        GraphExecGroup._current = None


class _Stop(Exception):
    """Everything that is needed was made again."""


class _Key:
    """Stands for one recomputed tensor; the tensor is forgotten with it."""

    __slots__ = ("__weakref__",)


class _Holder:
    """What the graph keeps in place of a saved tensor: for each backward, the key of the recomputed one."""

    __slots__ = ("__weakref__", "keys")

    def __init__(self) -> None:
        self.keys: dict[Any, _Key] = {}


class _Run:
    """One recomputation of a frame."""

    def __init__(self) -> None:
        self.count = 0
        self.done = False
        self.log: list[str] = []
        self.tensors: weakref.WeakKeyDictionary[_Key, Tensor] = weakref.WeakKeyDictionary()


_TIP = (
    "\nTip: To see a more detailed error message, either pass `debug=True` to\n`torch.utils.checkpoint.checkpoint(...)` or"
    " wrap the code block\nwith `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to\nenable checkpoint"
    " debug mode globally.\n"
)


def _look(x: Tensor) -> dict[str, Any]:
    return {"shape": x.shape, "dtype": x.dtype, "device": x.device}


CHECKS: dict[str, Callable[[Tensor], Any]] = {"default": _look, "none": lambda x: None}

_fresh = itertools.count(1)


def _entry(x: Tensor) -> str:
    from ._checkpoint_debug import entry

    return entry(x)


def _current_backward() -> Any:
    """What recomputed tensors belong to: a group of backwards, a backward, or a single look at a saved value."""
    if GraphExecGroup._current is not None:
        return GraphExecGroup._current
    backward = _core.current_graph_task_id()
    return backward if backward != -1 else ("look", next(_fresh))


class Frame:
    """One checkpointed call: how to run it again, and what it saved."""

    def __init__(self, run: Callable[..., Any], args: tuple[Any, ...], early_stop: bool, look: Callable[[Tensor], Any]) -> None:
        self.run = run
        self.early_stop = early_stop
        self.look = look
        self.holders: list[weakref.ref[_Holder]] = []
        self.looks: list[Any] = []
        self.runs: dict[Any, _Run] = {}
        self.complete = False
        self.more_than_saved = False
        self.log: list[str] | None = None
        self.plain = [None if isinstance(x, Tensor) else x for x in args]
        self.places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        self.calls = _core.vmap_calls()
        tensors: list[Tensor] = []
        self.forms = [taken_apart(args[i], tensors) for i in self.places]
        # An outer checkpoint has these recomputed as well.
        self.kept = _core.keep_tensors(tensors)

    def inputs(self, levels: Levels) -> list[Any]:
        inputs, tensors = list(self.plain), iter(self.kept.get())
        for place, form in zip(self.places, self.forms, strict=True):
            inputs[place] = joined(form, tensors, levels)
        return inputs

    # The hooks of the forward.

    def pack(self, x: Tensor) -> _Holder:
        holder = _Holder()
        self.holders.append(weakref.ref(holder))
        self.looks.append(self.look(x))
        if self.log is not None:
            self.log.append(_entry(x))
        return holder

    def unpack(self, holder: _Holder) -> Tensor:
        backward = _current_backward()
        run = self.runs.get(backward)
        if run is None or not run.done:
            try:
                run = self.recompute(backward)
            except CheckpointError as error:
                if self.log is None:
                    raise
                from ._checkpoint_debug import report

                raise CheckpointError(report(self.log, self.runs[backward].log)) from error
        key = holder.keys.pop(backward, None)
        if key is None:
            extra = ""
            if GraphExecGroup._current is not None:
                extra = (
                    "Performing two backward calls that overlap (i.e. require the same saved activation in order to compute "
                    "gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup context. "
                )
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
                f"{extra}If you are calling ctx.saved_tensors in backward, make sure to do so only once. Otherwise please open "
                "an issue with details on your use case."
            )
        return run.tensors[key]

    def recompute(self, backward: Any) -> _Run:
        run = self.runs[backward] = _Run()
        if isinstance(backward, int):
            _core.queue_callback(lambda: self.runs.pop(backward, None) and None)
        again = Again(self, run, backward)
        # The vmaps that are under way now are the backward's.
        now = _core.vmap_swap_calls(self.calls)
        try:
            with Levels() as levels, enable_grad():
                inputs = self.inputs(levels)
                with saved_tensors_hooks(again.pack, again.unpack):
                    self.run(*inputs)
        except _Stop:
            pass
        finally:
            _core.vmap_swap_calls(now)
        run.done = True
        self.check(run, backward)
        return run

    def check(self, run: _Run, backward: Any) -> None:
        if self.more_than_saved:
            return
        if len(self.holders) != run.count:
            self.fail(
                "A different number of tensors was saved during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.holders)}\n"
                f"Number of tensors saved during recomputation: {run.count}."
            )
        different = ""
        for position, (reference, before) in enumerate(zip(self.holders, self.looks, strict=True)):
            holder = reference()
            key = holder.keys.get(backward) if holder is not None else None
            if key is not None and (now := self.look(run.tensors[key])) != before:
                different += f"tensor at position {position}:\nsaved metadata: {before}\nrecomputed metadata: {now}\n"
        if different:
            self.fail(
                "Recomputed values for the following tensors have different metadata than during the forward pass.\n"
                f"{different}."
            )

    def fail(self, what: str) -> None:
        raise CheckpointError(f"torch.utils.checkpoint: {what}\n{_TIP}")


class Again:
    """The hooks of a recomputation: they hand out what the forward's holders stand for."""

    def __init__(self, frame: Frame, run: _Run, backward: Any) -> None:
        self.frame = weakref.ref(frame)
        self.result = run
        self.backward = backward

    def pack(self, x: Tensor) -> Tensor:
        frame, run = self.frame(), self.result
        if frame is None:
            raise AssertionError("the checkpointed call is gone")
        if frame.log is not None:
            run.log.append(_entry(x))
        x = x.detach() if x.requires_grad else x
        position = run.count
        run.count += 1
        if position >= len(frame.holders):
            if not frame.complete:
                # A backward inside the function ran it again while the forward was still under way.
                frame.more_than_saved = True
                return x
            frame.fail("trying to save more tensors during recomputation than during the original forward pass.")
        # A backward inside the function may have freed some of what it saved.
        holder = frame.holders[position]()
        if holder is not None:
            for old in [b for b in holder.keys if b not in frame.runs]:
                del holder.keys[old]
            key = holder.keys[self.backward] = _Key()
            run.tensors[key] = x
        if frame.early_stop and run.count == len(frame.holders):
            raise _Stop
        # A backward through the recomputed graph itself needs the value.
        return x

    @staticmethod
    def unpack(x: Tensor) -> Tensor:
        return x


for _public in (CheckpointError, GraphExecGroup):
    _public.__module__ = "gradiron.utils.checkpoint"
