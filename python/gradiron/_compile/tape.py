"""The arithmetic of a captured call on numbers that differ from call to call, written down so that replays repeat it.

Replays evaluate the same functions on numbers of the same classes, so that what they give is what the call would compute.
"""

from __future__ import annotations

import math
import operator
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .guards import MISSING, matches
from .live import ComputedFloat, ComputedInt, is_live, plain, value_of
from .signs import BINARY, COMPARE, UNARY

__all__ = ["Tape", "Track"]

_NUMBERS = (int, float)
# More numbers than these are compared rather than computed anew.
_MOST = 5000
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_SIGN_OF = {BINARY[sign]: sign for sign in ("+", "-", "*", "/", "//", "%")}
_SIGN_OF.update((COMPARE[sign], sign) for sign in _COMPARISONS)
# Whose results are of one class for operands of the same classes.
_STEADY = frozenset((operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
                     operator.neg, operator.pos, int, float))  # fmt: skip
_SIGNS = frozenset(("+", "-", "*", "/", "//", "%", "**"))
# What may be computed with a number that a replay has only after its kernels: nothing that fails for some numbers.
_LATE = frozenset((operator.add, operator.sub, operator.mul, operator.neg, operator.pos, float))
_FUNCTIONS = frozenset(
    (
        *(function for function in vars(math).values() if isinstance(function, types.BuiltinFunctionType)),
        *(abs, round, pow, min, max, operator.pow),
    )
)


class Step:
    """One number of the tape.

    Attributes:
        function: what computes it; `None` if it is given anew.
        operands: for each operand the node of a number of the tape, or -1 with a constant.
        source: where a number that is given anew comes from.
        is_late: whether a replay has it only after its kernels.
        kind: its class, where that is not the same for all operands.
    """

    __slots__ = ("function", "is_late", "kind", "operands", "source")

    def __init__(
        self, function: Any, operands: tuple[tuple[int, Any], ...], source: Any, is_late: bool, kind: type | None
    ) -> None:
        self.function = function
        self.operands = operands
        self.source = source
        self.is_late = is_late
        self.kind = kind

    def run(self, values: dict[int, Any]) -> Any:
        """Compute the number.

        Args:
            values: the numbers of the tape so far.
        """
        found = self.function(*[constant if node < 0 else values[node] for node, constant in self.operands])
        if self.kind is not None and type(found) is not self.kind:
            raise ArithmeticError("a number is of another class")
        return found


class Tape:
    """The numbers of a captured call that its replays compute anew.

    Args:
        on_late: called when the call depends on a number that a replay has only after its kernels.
        is_on: whether the call is being observed.

    Attributes:
        steps: the numbers.
        fixed: for each node that must be what it was, what it was.
        truths: for each node whose truth was asked for, what it was.
    """

    def __init__(self, on_late: Callable[[], None], is_on: Callable[[], bool]) -> None:
        self.steps: list[Step] = []
        self.fixed: dict[int, Any] = {}
        self.truths: dict[int, bool] = {}
        self.on_late = on_late
        self.is_on = is_on

    def leaf(self, value: Any, source: Any) -> Any:
        """Return a number that each replay is given anew, or finds at a source."""
        return self._made(value, self._add(Step(None, (), source, False, None)))

    def late(self) -> int:
        """Return the node of a number that a replay reads from a tensor after its kernels."""
        return self._add(Step(None, (), None, True, None))

    def _add(self, step: Step) -> int:
        self.steps.append(step)
        return len(self.steps) - 1

    def _made(self, value: Any, node: int) -> Any:
        return ComputedInt(value, self, node) if type(value) is int else ComputedFloat(value, self, node)

    def fix(self, node: int, value: Any) -> None:
        """Note that the call depends on what a number is."""
        if self.is_on():
            if self.steps[node].is_late:
                self.on_late()
            else:
                self.fixed.setdefault(node, value)

    def settle(self, node: int) -> None:
        """Let a number that was given anew be the same in each replay."""
        value = self.fixed.pop(node)
        self.truths.pop(node, None)
        self.steps[node] = Step(lambda: value, (), None, False, None)

    def fix_truth(self, node: int, truth: bool) -> None:
        """Note that the call depends on the truth of a number."""
        if self.is_on():
            if self.steps[node].is_late:
                self.on_late()
            elif node not in self.fixed:
                self.truths[node] = truth

    # What the call computes.

    def binary(self, sign: str, left: Any, right: Any) -> Any:
        """Return `left + right` of numbers; `MISSING` for anything else."""
        return self.call(BINARY[sign], (left, right)) if sign in _SIGNS else MISSING

    def unary(self, sign: str, value: Any) -> Any:
        """Return `-value` of a number."""
        return self.call(UNARY[sign], (value,)) if sign in "+-" else MISSING

    def compare(self, sign: str, left: Any, right: Any) -> Any:
        """Return `left < right` of numbers, which each replay compares again; `MISSING` for anything else."""
        if sign not in _COMPARISONS or not all(map(_is_number, (left, right))):
            return MISSING
        found = self._step(COMPARE[sign], (left, right))
        if found is MISSING:
            return MISSING
        truth, node = found
        self.fix(node, truth)
        return truth

    def call(self, function: Any, operands: tuple[Any, ...]) -> Any:
        """Return `function(*operands)` of numbers; `MISSING` for anything else."""
        if function not in _STEADY and function not in _FUNCTIONS:
            return MISSING
        if not operands or not all(map(_is_number, operands)):
            return MISSING
        found = self._step(function, operands)
        if found is MISSING:
            return MISSING
        value, node = found
        if type(value) is bool:
            self.fix(node, value)
        return value if type(value) not in _NUMBERS else self._made(value, node)

    def _step(self, function: Any, operands: tuple[Any, ...]) -> Any:
        """Return what a function gives with its node; `MISSING` if that is no number, or cannot be computed by each replay."""
        if len(self.steps) >= _MOST:
            return MISSING
        try:
            value = function(*[value_of(each) if is_live(each) else each for each in operands])
        except Exception:
            # Where the call goes on after that, it does so because of these numbers.
            for each in operands:
                plain(each)
            raise
        is_late = any(is_live(each) and self.steps[each.node].is_late for each in operands)
        if type(value) not in (*_NUMBERS, bool) or (is_late and not self._can_be_late(function, operands)):
            return MISSING
        given = tuple((each.node, None) if is_live(each) else (-1, each) for each in operands)
        kind = None if function in _STEADY else type(value)
        return value, self._add(Step(function, given, None, is_late, kind))

    def _can_be_late(self, function: Any, operands: tuple[Any, ...]) -> bool:
        if function is not operator.truediv or not operands[1:] or value_of(operands[1]) == 0:
            return function in _LATE
        if is_live(operands[1]):
            if self.steps[operands[1].node].is_late:
                return False
            self.fix_truth(operands[1].node, True)
        return True


def _is_number(value: Any) -> bool:
    return type(value) in (int, float, bool) or is_live(value)


class Track:
    """What a replay computes of a tape.

    Args:
        tape: the tape.
        wanted: the nodes that results, stores and kernels need.
        tensors: for each node that is read from a tensor after the kernels, the tensor.
        results: where these tensors are appended.

    Attributes:
        sources: the nodes that are given anew, with their sources.
        checks: the nodes that must be what they were.
        is_needed: whether there is anything to compute or to compare.
    """

    def __init__(self, tape: Tape, wanted: Iterable[int], tensors: dict[int, Any], results: list[Any]) -> None:
        needed, varying = {*wanted, *tape.fixed, *tape.truths}, set()
        for node, step in enumerate(tape.steps):
            if step.source is not None or any(each in varying for each, _ in step.operands):
                varying.add(node)
                if not step.is_late and step.function is not None:
                    needed.add(node)  # it may fail for other numbers, whether anybody needs the result or not
        for node in range(len(tape.steps) - 1, -1, -1):
            if node in needed:
                needed.update(each for each, _ in tape.steps[node].operands if each >= 0)
        self.positions: list[Any] = []
        steps = [(node, tape.steps[node]) for node in sorted(needed)]
        self.sources: list[tuple[int, Any]] = [(node, step.source) for node, step in steps if step.source is not None]
        steps = [(node, step) for node, step in steps if step.function is not None]
        self.early = [(node, step) for node, step in steps if not step.is_late]
        self.late = [(node, step) for node, step in steps if step.is_late]
        self.read = []
        for node in sorted(needed & tensors.keys()):
            at = next((at for at, other in enumerate(results) if other is tensors[node]), len(results))
            if at == len(results):
                results.append(tensors[node])
            self.read.append((node, at))
        self.is_needed = bool(needed)
        self.checks = [(node, expected, False) for node, expected in tape.fixed.items()]
        self.checks += [(node, expected, True) for node, expected in tape.truths.items()]
        self.compute = self._compiled({*wanted, *(each for _, step in self.late for each, _ in step.operands)})

    def _compiled(self, wanted: set[int]) -> Callable[..., Any]:
        """Return a function of the numbers that are given anew, which returns what `begin` does.

        Args:
            wanted: the nodes that are needed later.
        """
        names: dict[str, Any] = {"ArithmeticError": ArithmeticError, "matches": matches, "type": type, "bool": bool}
        lines = []
        for node, step in self.early:
            operands = []
            for at, (each, constant) in enumerate(step.operands):
                names[f"c{node}_{at}"] = constant
                operands.append(f"n{each}" if each >= 0 else f"c{node}_{at}")
            names[f"f{node}"], sign = step.function, _SIGN_OF.get(step.function)
            lines.append(f"n{node} = " + (f" {sign} ".join(operands) if sign else f"f{node}({', '.join(operands)})"))
            if step.kind is not None:
                names[f"k{node}"] = step.kind
                lines.append(f"if type(n{node}) is not k{node}: raise ArithmeticError")
        for number, (node, expected, truth) in enumerate(self.checks):
            names[f"e{number}"] = expected
            holds = f"bool(n{node}) is e{number}" if truth else f"matches(n{node}, e{number})"
            lines.append(
                f"if not {f'n{node} is e{number}' if type(expected) is bool and not truth else holds}: return {number}"
            )
        known = [node for node, _ in (*self.sources, *self.early) if node in wanted]
        lines.append(f"return {{{', '.join(f'{node}: n{node}' for node in known)}}}")
        given = ", ".join(f"n{node}" for node, _ in self.sources)
        exec("\n    ".join([f"def compute({given}):", *lines]), names)
        found: Callable[..., Any] = names["compute"]
        return found

    def source(self, node: int) -> Any:
        """Return where a number comes from that a node depends on; `None` if it depends on none."""
        sources, steps, waiting = dict(self.sources), dict(self.early), [node]
        while waiting:
            at = waiting.pop()
            if at in sources:
                return sources[at]
            if at in steps:
                waiting.extend(each for each, _ in steps[at].operands if each >= 0)
        return None

    def begin(self, given: Sequence[Any]) -> dict[int, Any] | int:
        """Return the numbers of the tape, by node, that are there before the kernels run; the number of a check that fails, or
        -1 if one cannot be computed.

        Args:
            given: the numbers that are given anew, in the order of the sources.
        """
        try:
            found: dict[int, Any] | int = self.compute(*given)
            return found
        except Exception:
            # The call itself raises the error where it belongs, if it comes there.
            return -1

    def end(self, values: dict[int, Any], made: Sequence[Any]) -> None:
        """Compute the numbers that need tensors of the replay.

        Args:
            values: the numbers so far.
            made: the tensors.
        """
        for node, number in self.read:
            values[node] = made[number].item()
        for node, step in self.late:
            values[node] = step.run(values)
