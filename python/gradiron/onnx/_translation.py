"""Turns a traced graph into an ONNX graph."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import gradiron

from .._core import Tensor
from ..fx.node import Node, map_arg
from ..fx.proxy import TraceError
from ._forms import find_form
from ._sizes import element_count, size_along
from ._tracing import ExportTracer
from ._writer import Value, Writer
from .errors import UnsupportedOperatorError

__all__ = ["axes_of_outputs", "is_constant", "merge", "translate"]


class _Place(int):
    """The position of a node in its graph, where a description of the graph has it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Place) and int(self) == int(other)

    __hash__ = int.__hash__


def _described(tracer: ExportTracer) -> list[tuple[Node, Any]]:
    places = {node: _Place(at) for at, node in enumerate(tracer.graph.nodes)}
    return [
        (node, (node.op, node.target, map_arg((node.args, node.kwargs), places.__getitem__))) for node in tracer.graph.nodes
    ]


def _same_constant(first: ExportTracer, other: ExportTracer, node: Node) -> bool:
    if node.op != "get_attr" or node.target in first.held:
        return True
    return gradiron.equal(first.tensor(str(node.target)), other.tensor(str(node.target)))


def axes_of_outputs(traces: Sequence[ExportTracer], axes: Sequence[Mapping[int, str]]) -> list[dict[int, str]]:
    """Return, for each output, names of axes: those of the inputs' axes that have the same size in all traces.

    Args:
        traces: traces on inputs of several sizes, before they are merged.
        axes: names of the dynamic axes of each input.
    """
    names: dict[tuple[int, ...], set[str]] = {}
    inputs = [[node for node in trace.graph.nodes if node.op == "placeholder"] for trace in traces]
    for at, named in enumerate(axes):
        for axis, label in named.items():
            sizes = tuple(nodes[at].meta["results"][0][0][axis] for nodes in inputs)
            names.setdefault(sizes, set()).add(label)
    found: list[dict[int, str]] = []
    for shapes in zip(*map(_output_shapes, traces), strict=False):
        labels = [names.get(sizes, set()) for sizes in zip(*shapes, strict=False)]
        # Two names may have the same size on the examples by chance.
        found.append({dim: next(iter(each)) for dim, each in enumerate(labels) if len(each) == 1})
    return found


def _output_shapes(trace: ExportTracer) -> list[tuple[int, ...]]:
    """The shape of each output; none of a number."""
    shapes: list[tuple[int, ...]] = []
    for leaf in list(trace.graph.nodes)[-1].args[0]:
        node, at = leaf, 0
        if isinstance(leaf, Node) and leaf.target is operator.getitem and "operator" not in leaf.meta:
            node, at = leaf.args
        results = node.meta.get("results") if isinstance(node, Node) else None
        shapes.append(results[at][0] if results else ())
    return shapes


def merge(first: ExportTracer, others: Sequence[ExportTracer]) -> None:
    """Mark what is dynamic in a graph, given the graphs of the same program on inputs of other sizes.

    Raises `TraceError` where the graphs differ, as the program then depends on the sizes in a way that a graph cannot hold.

    Args:
        first: trace to mark: each size in `results` that differs becomes None.
        others: other traces.
    """
    described = _described(first)
    for other in others:
        theirs = _described(other)
        for (node, one), (twin, two) in zip(described, theirs, strict=False):
            if one != two or not _same_constant(first, other, node) or not _alike(node, twin):
                _refuse_difference(node)
            # A number is fixed if it is the same in all traces.
            if "number" in node.meta:
                fixed = node.meta.get("fixed", True) and node.meta["number"] == twin.meta["number"]
                node.meta["fixed"] = fixed
            if "results" in node.meta:
                node.meta["merged"] = [_merged(one, two) for one, two in zip(_results(node), twin.meta["results"], strict=True)]
        if len(described) != len(theirs):
            _refuse_difference(described[-1][0])
    for node, _ in described:
        if "number" in node.meta:
            # A number that is computed from one that is not fixed may be the same on all examples by chance.
            numbers = [each for each in node.all_input_nodes if "number" in each.meta]
            node.meta["fixed"] = all(each.meta["fixed"] for each in numbers) if numbers else node.meta.get("fixed", True)
        node.meta["results"] = _results(node)


def _results(node: Node) -> Any:
    return node.meta.get("merged", node.meta.get("results", []))


def _alike(node: Node, twin: Node) -> bool:
    """Whether the results of two nodes have the same dtypes and numbers of dimensions."""
    pairs = zip(node.meta.get("results", ()), twin.meta.get("results", ()), strict=False)
    return len(node.meta.get("results", ())) == len(twin.meta.get("results", ())) and all(
        (one is None and two is None) or (one[1] == two[1] and len(one[0]) == len(two[0])) for one, two in pairs
    )


def _merged(one: Any, two: Any) -> Any:
    if one is None:
        return None
    return tuple(size if size == other else None for size, other in zip(one[0], two[0], strict=True)), one[1]


def _refuse_difference(node: Node) -> None:
    raise TraceError(
        "symbolically traced variables cannot be used as inputs to control flow: the module does something else on inputs of "
        "another size, or makes a constant of the size of an axis that is declared dynamic. Compute with the integers in "
        f"`x.shape` themselves, without float, int, len or math{node.meta.get('line', '')}"
    )


def _is_folded(node: Node, folded: set[Node]) -> bool:
    """Whether a node is computed once, here."""
    if "number" in node.meta:
        return node.meta["fixed"]
    if node.op == "get_attr" or node.op == "placeholder":
        return False
    return "values" in node.meta and all(each in folded or each.op == "get_attr" for each in node.all_input_nodes)


def _folded(tracer: ExportTracer, fold: bool) -> set[Node]:
    found: set[Node] = set()
    for node in tracer.graph.nodes:
        results = isinstance(node.args[0], Node) and node.args[0] in found if node.args else False
        part = "operator" not in node.meta and node.target is operator.getitem and "number" not in node.meta
        if ("number" in node.meta or fold) and (_is_folded(node, found) or (part and results)):
            found.add(node)
    return found


def _require_forms(tracer: ExportTracer, folded: set[Node], opset: int) -> None:
    """Raises the error that names all operators that have no form, each with its first line."""
    missing: dict[str, str] = {}
    for node in tracer.graph.nodes:
        name = node.meta.get("operator")
        if name is not None and node not in folded and find_form(name) is None:
            missing.setdefault(name, node.meta["line"])
    if missing:
        first, *others = missing.items()
        also = "".join(f"\nThe operator '{name}' is not supported either.{line}" for name, line in others)
        raise UnsupportedOperatorError(first[0], opset, None, first[1] + also)


class _Translation:
    def __init__(self, tracer: ExportTracer, writer: Writer, fold: bool) -> None:
        self.tracer, self.writer = tracer, writer
        self.folded = _folded(tracer, fold)
        self.made: dict[Node, Any] = {}
        self.read: dict[str, Value] = {}

    def constant(self, node: Node) -> Any:
        """What is computed here rather than in the graph."""
        if "number" in node.meta:
            return node.meta["number"]
        if "operator" not in node.meta:
            return self.made[node.args[0]][node.args[1]]
        values = node.meta["values"]
        return values[0] if len(values) == 1 and not self._has_parts(node) else tuple(values)

    def _has_parts(self, node: Node) -> bool:
        return any(user.target is operator.getitem and "operator" not in user.meta for user in node.users)

    def attribute(self, node: Node) -> Any:
        """A parameter or buffer as an initializer of its name; another tensor as a constant."""
        name = str(node.target)
        tensor = self.tracer.tensor(name)
        if name not in self.tracer.held:
            return tensor
        if name not in self.read:
            self.writer.initializers[name] = tensor.detach()
            self.read[name] = Value(name, tensor.dtype, tuple(tensor.shape))
        return self.read[name]

    def call(self, node: Node) -> Any:
        """What a call of an operator becomes."""
        if "number" in node.meta:
            return self.number(node)
        args, kwargs = map_arg((node.args, node.kwargs), self.made.__getitem__)
        if "operator" not in node.meta:
            return args[0][args[1]]
        self.writer.begin(node)
        write = find_form(node.meta["operator"])
        assert write is not None
        if node.target is getattr:
            args = args[:1]
        try:
            bound = inspect.signature(write).bind(self.writer, *args, **kwargs)
        except TypeError as wrong:
            self.writer.refuse(f"It cannot be exported as it is called here: {wrong}.")
        try:
            made = write(*bound.args, **bound.kwargs)
        except UnsupportedOperatorError:
            raise
        except Exception as error:
            # A form meets what it does not know: the program's line tells more than the form's.
            self.writer.refuse(f"Its form does not know how to write it as it is called here: {error}.", cause=error)
        parts = made if isinstance(made, (tuple, list)) else (made,)
        typed = tuple(self._typed(part, result) for part, result in zip(parts, node.meta["results"], strict=False))
        return typed if isinstance(made, (tuple, list)) else typed[0]

    def _typed(self, value: Any, result: Any) -> Any:
        if result is None or not isinstance(value, Value):
            return value
        shape, dtype = result
        value = self.writer.cast(value, dtype)
        return Value(value.name, dtype, shape)

    def number(self, node: Node) -> Value:
        """A number that depends on a dynamic axis."""
        self.writer.begin(node)
        args = [self.made[arg] if isinstance(arg, Node) else arg for arg in node.args]
        if node.target is size_along:
            found = self.writer.size(*args)
            return found if isinstance(found, Value) else self.writer.cast(found, gradiron.int64)
        if node.target is element_count:
            made = self.writer.Size(args[0], dtype=gradiron.int64)
            made.sizes, made.is_number = (), True
            return made
        return self.writer.arithmetic(node.target, args)

    def run(self) -> tuple[list[Value], list[Any]]:
        """Returns the inputs and the outputs."""
        inputs: list[Value] = []
        outputs: list[Any] = []
        for node in self.tracer.graph.nodes:
            if node.op == "placeholder":
                shape, dtype = node.meta["results"][0]
                inputs.append(Value(str(node.target), dtype, shape))
                self.made[node] = inputs[-1]
            elif node.op == "get_attr":
                self.made[node] = self.attribute(node)
            elif node.op == "output":
                outputs = [self.made[leaf] if isinstance(leaf, Node) else leaf for leaf in node.args[0]]
            else:
                self.made[node] = self.constant(node) if node in self.folded else self.call(node)
                if "writes" in node.meta and isinstance(node.args[0], Node):
                    # What an operator wrote into stands for its result from now on.
                    self.made[node.args[0]] = self.made[node]
        return inputs, outputs


def translate(tracer: ExportTracer, opset: int, fold: bool, names: Sequence[str]) -> tuple[Writer, list[Value], list[Any]]:
    """Return the writer that holds the nodes of the graph, its inputs and its outputs.

    Args:
        tracer: what holds the traced graph.
        opset: version of the operators.
        fold: whether what depends on no input is computed here.
        names: names of the outputs that are taken.
    """
    placeholders = [str(node.target) for node in tracer.graph.nodes if node.op == "placeholder"]
    writer = Writer(opset, [*placeholders, *tracer.held, *names])
    translation = _Translation(tracer, writer, fold)
    _require_forms(tracer, translation.folded, opset)
    inputs, outputs = translation.run()
    return writer, inputs, outputs


def is_constant(value: Any) -> bool:
    """Return whether an output is no value of the graph.

    Args:
        value: output.
    """
    return isinstance(value, (Tensor, int, float, bool))
