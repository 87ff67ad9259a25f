"""What was captured of a function, and why it runs as it is where it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .function import CompiledFunction
from .module import OptimizedModule
from .reasons import Reason

__all__ = ["Explanation", "explain"]


class Explanation:
    """What is known of a compiled function. Printing it shows all of it.

    Attributes:
        graph_count: how many captures there are.
        graph_break_count: how many reasons there are why it runs as it is.
        break_reasons: the reasons.
        op_count: kernels of the last capture.
        unit_count: kernels and groups of kernels that its replay runs.
        group_count: groups among them, each one pass over memory.
        bytes: memory that a replay needs besides arguments and results.
        launch_count: launches on the GPU of the last replay.
        launch_count_apart: launches on the GPU of the captured call, whose kernels ran one by one.
        traffic: bytes that a replay reads and writes.
        traffic_apart: bytes that its kernels would read and write one by one.
        backward_count: how many captured backwards there are through the graphs of results.
        backward_replays: how often one of them was replayed.
        backward_op_count: kernels of the last one of them.
        backward_unit_count: kernels and groups of kernels that its replay runs.
        backward_group_count: groups among them.
        backward_reason: why a backward runs node by node, if one cannot be captured.
        out_guards: what is compared before a replay, in words.
        replays: how many calls were replayed.
    """

    def __init__(self, compiled: CompiledFunction) -> None:
        captures = [each for group in compiled.captures.values() for each in group]
        last = captures[-1] if captures else None
        self.name = compiled.name
        self.graph_count = len(captures)
        self.break_reasons: list[Reason] = list(compiled.reasons)
        self.graph_break_count = len(self.break_reasons)
        program = None if last is None else last.program
        self.op_count = 0 if program is None else program.kernels
        self.unit_count = 0 if program is None else program.units
        self.group_count = 0 if program is None else program.groups
        self.launch_count = 0 if program is None else program.launches
        self.launch_count_apart = 0 if program is None else program.launches_apart
        self.decisions = 0 if program is None else program.decisions
        self.bytes = 0 if program is None else program.bytes
        self.traffic = 0 if program is None else program.traffic
        self.traffic_apart = 0 if program is None else program.bytes_apart
        backwards = [each.program.backward_counts for each in captures]
        self.backward_count, self.backward_replays = (sum(each[at] for each in backwards) for at in (0, 1))
        counts: tuple[int, ...] = next((each for each in reversed(backwards) if each[0]), (0,) * 6)
        self.backward_op_count, self.backward_unit_count, self.backward_group_count = counts[2:5]
        reasons = [each.program.backward_reason for each in captures]
        self.backward_reason = next((each for each in reasons if each is not None), None)
        self.bytes += counts[5]
        self.out_guards = [] if last is None else last.describe()
        self.effects = [] if last is None else [f"{kind} {key!r}" for kind, _, key, _ in last.effects]
        self.replays = compiled.replays

    def __str__(self) -> str:
        apart = self.launch_count_apart
        launches = [f"launches on the GPU: {self.launch_count}, without groups {apart}"] if apart else []
        lines = [
            f"{self.name}: {self.graph_count} captures, {self.replays} replays",
            f"kernels: {self.op_count}, which a replay runs as {self.unit_count}, {self.group_count} of them groups",
            *launches,
            *([f"decisions by elements of tensors: {self.decisions}"] if self.decisions else []),
            *self._backward_lines(),
            f"bytes read and written: {self.traffic}, without groups {self.traffic_apart}",
            f"memory of its own: {self.bytes} bytes",
            f"guards: {len(self.out_guards)}",
            f"effects on Python: {len(self.effects)}",
            f"graph breaks: {self.graph_break_count}",
            *(f"    {reason}" for reason in self.break_reasons),
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _backward_lines(self) -> list[str]:
        lines = []
        if self.backward_count:
            kernels, units, groups = self.backward_op_count, self.backward_unit_count, self.backward_group_count
            lines.append(
                f"backwards outside: {self.backward_count} captures, {self.backward_replays} replays; kernels: {kernels}, "
                f"which a replay runs as {units}, {groups} of them groups"
            )
        if self.backward_reason is not None:
            lines.append(f"a backward outside runs node by node: {self.backward_reason}")
        return lines


def explain(f: Any, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """Tell what is captured of a function, or why it runs as it is.

    Of a function that is compiled already, with no arguments given, it tells what its calls so far have shown. Otherwise it
    returns a function whose arguments are those of a call: it makes three calls and tells what they show.

    Args:
        f: function or module, compiled or not.
        extra_args, extra_kwargs: arguments of the calls, if they are given at once.

    Examples:
        >>> explanation = torch._dynamo.explain(lambda x: x * 2 + 1)(torch.ones(3))
        >>> explanation.graph_count, explanation.graph_break_count, explanation.op_count
        (1, 0, 2)
    """
    compiled = f if isinstance(f, CompiledFunction) else getattr(f, "_compiled", None)
    if isinstance(f, OptimizedModule):
        compiled = f._compiled
    if not isinstance(compiled, CompiledFunction):
        compiled = CompiledFunction(f, False, None, None)
    if extra_args or extra_kwargs:
        return _shown(compiled)(*extra_args, **extra_kwargs)
    return _Asked(compiled)


class _Asked(Explanation):
    """The explanation of a function, which can be called to make calls first."""

    def __init__(self, compiled: CompiledFunction) -> None:
        super().__init__(compiled)
        self._compiled_function = compiled

    def __call__(self, *args: Any, **kwargs: Any) -> Explanation:
        return _shown(self._compiled_function)(*args, **kwargs)


def _shown(compiled: CompiledFunction) -> Callable[..., Explanation]:
    def show(*args: Any, **kwargs: Any) -> Explanation:
        for _ in range(3):
            compiled(*args, **kwargs)
        return Explanation(compiled)

    return show
