"""The arithmetic of an optimizer, written down once. Kernels run it over all parameters of a group in one call; where
somebody differentiates through it, operators do the same to one tensor after the other."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import _core
from .._core import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Number: TypeAlias = float | Tensor
    Operand: TypeAlias = "Symbol | float"


class Symbol:
    """A value of a rule. Its methods are a tensor's, but take numbers that are symbols, too."""

    __slots__ = ("at", "rounded", "trace")

    def __init__(self, trace: Trace, at: int, rounded: int | None = None) -> None:
        self.trace, self.at, self.rounded = trace, at, rounded

    def __neg__(self) -> Symbol:
        return self.trace.apply("neg", self)

    def __add__(self, other: Operand) -> Symbol:
        return self.trace.apply("add", self, other)

    def __radd__(self, other: Operand) -> Symbol:
        return self.trace.apply("add", other, self)

    def __sub__(self, other: Operand) -> Symbol:
        return self.trace.apply("sub", self, other)

    def __rsub__(self, other: Operand) -> Symbol:
        return self.trace.apply("sub", other, self)

    def __mul__(self, other: Operand) -> Symbol:
        return self.trace.apply("mul", self, other)

    def __rmul__(self, other: Operand) -> Symbol:
        return self.trace.apply("mul", other, self)

    def __truediv__(self, other: Operand) -> Symbol:
        return self.trace.apply("div", self, other)

    def __rtruediv__(self, other: Operand) -> Symbol:
        return self.trace.apply("div", other, self)

    def __pow__(self, other: Operand) -> Symbol:
        return self.trace.apply("pow", self, other)

    def __rpow__(self, other: Operand) -> Symbol:
        return self.trace.apply("pow", other, self)

    def __gt__(self, other: Operand) -> Symbol:
        return self.trace.apply("gt", self, other)

    def __lt__(self, other: Operand) -> Symbol:
        return self.trace.apply("lt", self, other)

    def eq(self, other: Operand) -> Symbol:
        return self.trace.apply("eq", self, other)

    def detach(self) -> Symbol:
        return self.trace.detach(self)

    def abs(self) -> Symbol:
        return self.trace.apply("abs", self)

    def sign(self) -> Symbol:
        return self.trace.apply("sign", self)

    def sqrt(self) -> Symbol:
        return self.trace.apply("sqrt", self)

    def maximum(self, other: Operand) -> Symbol:
        return self.trace.apply("maximum", self, other)

    def minimum(self, other: Operand) -> Symbol:
        return self.trace.apply("minimum", self, other)

    def add(self, other: Symbol, *, alpha: Operand) -> Symbol:
        return self.trace.apply("axpy", self, other, alpha)

    def lerp(self, end: Symbol, weight: Operand) -> Symbol:
        return self.trace.apply("lerp_fused", self, end, weight)

    def addcmul(self, tensor1: Symbol, tensor2: Symbol, *, value: Operand) -> Symbol:
        return self.trace.apply("addcmul_fused", self, tensor1, tensor2, value)

    def addcdiv(self, tensor1: Symbol, tensor2: Symbol, *, value: Operand) -> Symbol:
        return self.trace.apply("addcdiv", self, tensor1, tensor2, value)

    def where(self, chosen: Operand, other: Operand) -> Symbol:
        """`chosen` where this is not 0."""
        return self.trace.apply("choose", chosen, other, self)

    def item(self) -> Symbol:
        """The same as a plain number, which arithmetic does not round to the tensor's dtype any more."""
        return Symbol(self.trace, self.at)


class Trace:
    """What a rule is written over: its tensors and numbers by name. What is assigned to a name becomes its new value."""

    _names: dict[str, tuple[str, int]]
    _values: dict[str, Symbol]
    _nodes: list[tuple[Any, ...]]
    _written: set[str]

    def __init__(self, operands: Sequence[str], scalars: Sequence[str], numbers: Sequence[str]) -> None:
        kinds = {"operand": operands, "scalar": scalars, "number": numbers}
        names = {name: (kind, k) for kind, names in kinds.items() for k, name in enumerate(names)}
        self.__dict__.update(_names=names, _values={}, _nodes=[], _written=set())

    def _put(self, *node: Any, rounded: int | None = None) -> Symbol:
        self._nodes.append(node)
        return Symbol(self, len(self._nodes) - 1, rounded)

    def __getattr__(self, name: str) -> Symbol:
        if name not in self._values:
            if name not in self._names:
                raise AttributeError(name)
            kind, k = self._names[name]
            self._values[name] = self._put(kind, k, rounded=k if kind == "scalar" else None)
        return self._values[name]

    def __setattr__(self, name: str, value: Symbol) -> None:
        self._values[name] = value
        self._written.add(name)

    def apply(self, op: str, *args: Operand) -> Symbol:
        symbols = [arg if isinstance(arg, Symbol) else self._put("constant", float(arg)) for arg in args]
        rounded = next((symbol.rounded for symbol in symbols if symbol.rounded is not None), None)
        return self._put(op, [symbol.at for symbol in symbols], rounded, rounded=rounded)

    def detach(self, symbol: Symbol) -> Symbol:
        return self._put("detached", symbol.at, rounded=symbol.rounded)

    def results(self, kind: str) -> list[tuple[int, int]]:
        """Return the operands of a kind that got new values, each with the number of its node."""
        written = ((self._names[name], symbol) for name, symbol in self._values.items() if name in self._written)
        return [(k, symbol.at) for (own, k), symbol in written if own == kind]


class _Form:
    """A rule, traced under some flags."""

    def __init__(self, trace: Trace) -> None:
        self.nodes = trace._nodes
        self.results, self.kept = trace.results("operand"), trace.results("scalar")
        kinds = [kind for kind, _ in trace._names.values()]
        operands, scalars, numbers = map(kinds.count, ("operand", "scalar", "number"))
        self.program = _core.Program(self.nodes, operands, scalars, numbers, self.results, self.kept)


class Rule:
    """An optimizer's arithmetic: a function that writes it over a `Trace`."""

    def __init__(self, body: Callable[..., None]) -> None:
        self.body = body
        self.forms: dict[Any, _Form] = {}

    def __call__(
        self,
        operands: Mapping[str, Sequence[Tensor]],
        scalars: Mapping[str, Sequence[Tensor]],
        numbers: Mapping[str, Number],
        *,
        rounds: bool = True,
        **flags: bool | str | None,
    ) -> None:
        """Does the rule to each of the operands in turn; `scalars` are of one element each. `rounds` tells whether a half is
        rounded after each operation, as by operators, or only at the end, as by fused kernels."""
        tensors = {name: number for name, number in numbers.items() if isinstance(number, Tensor)}
        plain = {name: number for name, number in numbers.items() if name not in tensors} if tensors else numbers
        key = (*operands, None, *tensors, *flags.values())
        form = self.forms.get(key)
        if form is None:
            trace = Trace([*operands], [*scalars, *tensors], [*plain])
            self.body(trace, **flags)
            form = self.forms[key] = _Form(trace)
        lists, singles = list(operands.values()), [*scalars.values(), *tensors.values()]
        if not form.program.run(lists, singles, list(plain.values()), rounds):
            _by_operators(form, lists, singles, list(plain.values()))


def _max(a: Any, b: Any) -> Any:
    return a.maximum(_like(b, a)) if isinstance(a, Tensor) else b.maximum(_like(a, b)) if isinstance(b, Tensor) else max(a, b)


def _min(a: Any, b: Any) -> Any:
    return a.minimum(_like(b, a)) if isinstance(a, Tensor) else b.minimum(_like(a, b)) if isinstance(b, Tensor) else min(a, b)


def _like(number: Any, tensor: Tensor) -> Tensor:
    return number if isinstance(number, Tensor) else tensor.new_tensor(number)


def _choose(chosen: Any, other: Any, condition: Any) -> Any:
    if not isinstance(condition, Tensor):
        return chosen if condition else other
    return _core.where(condition != 0, chosen, other)


def _axpy(a: Any, b: Any, alpha: Any) -> Any:
    return a + alpha * b if isinstance(alpha, Tensor) else a.add(b, alpha=alpha)


def _lerp(a: Any, b: Any, weight: Any) -> Any:
    return a + weight * (b - a) if isinstance(weight, Tensor) else a.lerp(b, weight)


def _addcmul(a: Any, b: Any, c: Any, value: Any) -> Any:
    return a + value * b * c if isinstance(value, Tensor) else a.addcmul(b, c, value=value)


def _addcdiv(a: Any, b: Any, c: Any, value: Any) -> Any:
    return a + value * b / c if isinstance(value, Tensor) else a.addcdiv(b, c, value=value)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "neg": operator.neg,
    "abs": operator.abs,
    "sign": lambda a: a.sign(),
    "sqrt": lambda a: a.sqrt() if isinstance(a, Tensor) else a**0.5,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "pow": operator.pow,
    "maximum": _max,
    "minimum": _min,
    "gt": operator.gt,
    "lt": operator.lt,
    "eq": operator.eq,
    "choose": _choose,
    "axpy": _axpy,
    "lerp_fused": _lerp,
    "addcmul_fused": _addcmul,
    "addcdiv": _addcdiv,
}


def _single(scalar: Tensor, kept: bool) -> Any:
    """A tensor of one element as operators shall see it: a number, unless it is differentiated or would have to be waited
    for."""
    if scalar.requires_grad or not scalar.is_cpu:
        # What is about to be overwritten may be needed again by a derivative.
        scalar = scalar.clone() if kept else scalar
        return scalar.squeeze() if scalar.dim() else scalar
    return scalar.item()


def _by_operators(form: _Form, operands: list[Sequence[Tensor]], scalars: list[Any], numbers: list[Number]) -> None:
    written = {k for k, _ in form.results}
    kept = {k for k, _ in form.kept}
    for i in range(len(operands[0])):
        own = [_core.view_as_real(list_[i]) if list_[i].is_complex() else list_[i] for list_ in operands]
        single = [scalar if isinstance(scalar, Tensor) else scalar[i] for scalar in scalars]
        # A derivative may need what is about to be overwritten.
        given = {
            "operand": [tensor.clone() if k in written and _core.is_grad_enabled() else tensor for k, tensor in enumerate(own)],
            "scalar": [_single(tensor, k in kept) for k, tensor in enumerate(single)],
            "number": numbers,
        }
        values: list[Any] = []
        for word, what, *_ in form.nodes:
            if word == "constant":
                values.append(what)
            elif word == "detached":
                values.append(values[what].detach())
            elif word in given:
                values.append(given[word][what])
            else:
                values.append(_OPERATORS[word](*(values[arg] for arg in what)))
        for k, value in form.kept:
            single[k].copy_(values[value]) if isinstance(values[value], Tensor) else single[k].fill_(values[value])
        for k, value in form.results:
            own[k].copy_(values[value])
