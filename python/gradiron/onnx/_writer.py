"""Writes the nodes of an ONNX graph."""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import gradiron

from .._core import Tensor
from ..fx._names import Namespace
from ..fx.node import Node
from .errors import OnnxExporterError, UnsupportedOperatorError

__all__ = ["Value", "Writer", "element_type", "load_onnx", "product"]

# The numbers that ONNX gives to element types.
_ELEMENT_TYPES = {
    gradiron.float32: 1,
    gradiron.uint8: 2,
    gradiron.int8: 3,
    gradiron.uint16: 4,
    gradiron.int16: 5,
    gradiron.int32: 6,
    gradiron.int64: 7,
    gradiron.bool: 9,
    gradiron.float16: 10,
    gradiron.float64: 11,
    gradiron.uint32: 12,
    gradiron.uint64: 13,
    gradiron.bfloat16: 16,
}


def element_type(dtype: Any) -> int:
    """Return the number of a dtype in ONNX.

    Args:
        dtype: dtype.
    """
    found = _ELEMENT_TYPES.get(dtype)
    if found is None:
        raise OnnxExporterError(f"torch.onnx.export: tensors of {dtype} cannot be exported")
    return found


def load_onnx() -> Any:
    """Return the package `onnx`, or raise the error that says how to get it."""
    try:
        return importlib.import_module("onnx")
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            "torch.onnx.export needs the package onnx, which is not installed: pip install 'gradiron[onnx]'", name="onnx"
        ) from missing


def product(sizes: Iterable[int]) -> int:
    """Return the product of integers.

    Args:
        sizes: integers.
    """
    count = 1
    for size in sizes:
        count *= size
    return count


class Value:
    """A tensor of the ONNX graph.

    Args:
        name: name in the graph.
        dtype: its dtype.
        shape: sizes, None where one is dynamic; None for what a form makes on its way to a result. Default: `None`
        is_number: whether it is a number that the program computes from sizes. Default: `False`
    """

    def __init__(self, name: str, dtype: Any, shape: tuple[int | None, ...] | None = None, is_number: bool = False) -> None:
        self.name, self.dtype, self.sizes, self.is_number = name, dtype, shape, is_number

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The sizes, None where one is dynamic."""
        assert self.sizes is not None, f"{self.name} is made on the way to a result"
        return self.sizes

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __repr__(self) -> str:
        return f"Value({self.name}, {self.dtype}, {self.sizes})"


class Writer:
    """Collects the nodes and constants of an ONNX graph. A form calls `writer.Softmax(x, axis=1)` to add a node.

    Args:
        opset: version of the operators.
        names: names that are taken.
    """

    def __init__(self, opset: int, names: Iterable[str]) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: dict[str, Tensor] = {}
        self._onnx = load_onnx()
        self._names = Namespace()
        for name in names:
            self._names.create_name(name, None)
        self._constants: dict[Any, Value] = {}
        self._current: Node | None = None
        self._called = ""
        self._results: list[Any] = []

    # The operator that is being written.

    def begin(self, node: Node) -> None:
        """Say which node of the traced graph is written next.

        Args:
            node: node.
        """
        self._current, self._called = node, node.meta.get("operator", node.name)
        self._results = node.meta.get("results", [])

    @property
    def called(self) -> str:
        """The public name of the operator."""
        return self._called

    @property
    def dtype(self) -> Any:
        """The dtype of the first result."""
        return self._results[0][1]

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape of the first result, with None where it is dynamic."""
        return self._results[0][0]

    @property
    def results(self) -> list[Any]:
        """Shape and dtype of each result."""
        return self._results

    def refuse(self, why: str, supported: int | None = None, cause: Exception | None = None) -> NoReturn:
        """Raise the error of a call that has no form.

        Args:
            why: what of the call has none.
            supported: opset version that has it, or None.
            cause: error that told it, or None.
        """
        assert self._current is not None
        raise UnsupportedOperatorError(self._called, self.opset, supported, f" {why}{self._current.meta['line']}") from cause

    def need(self, opset: int) -> None:
        """Raise an error if the operators are older than a version.

        Args:
            opset: version.
        """
        if self.opset < opset:
            self.refuse("", opset)

    # Nodes.

    def __getattr__(self, kind: str) -> Callable[..., Value]:
        if not kind[:1].isupper():
            raise AttributeError(kind)

        def add(*inputs: Any, dtype: Any = None, **attributes: Any) -> Value:
            return self.add(kind, inputs, 1, dtype, attributes)[0]

        return add

    def several(self, kind: str, *inputs: Any, outputs: int, **attributes: Any) -> tuple[Value, ...]:
        """Add a node with several outputs.

        Args:
            kind: operator of ONNX.
            inputs: values, tensors or numbers.
            outputs: number of outputs.
            attributes: attributes; None leaves one out.
        """
        return self.add(kind, inputs, outputs, None, attributes)

    def add(self, kind: str, inputs: Sequence[Any], outputs: int, dtype: Any, attributes: dict[str, Any]) -> tuple[Value, ...]:
        """Add a node, and return its outputs.

        Args:
            kind: operator of ONNX.
            inputs: values, tensors, numbers, lists of sizes, or None for an optional input. A number gets the dtype of the
                first tensor.
            outputs: number of outputs.
            dtype: dtype of the outputs; default: that of the first tensor.
            attributes: attributes; None leaves one out.
        """
        like = next((each.dtype for each in inputs if isinstance(each, (Value, Tensor))), self.dtype if self._results else None)
        given = [self.value(each, like) for each in inputs]
        while given and given[-1] is None:
            given.pop()
        stem = self._current.name if self._current else kind.lower()
        made = tuple(Value(self._names.create_name(stem, None), dtype or like) for _ in range(outputs))
        place = self._current.meta.get("module") if self._current else ""
        self.nodes.append(
            self._onnx.helper.make_node(
                kind,
                [each.name if each is not None else "" for each in given],
                [each.name for each in made],
                name=f"{place}/{made[0].name}" if place else made[0].name,
                **{name: value for name, value in attributes.items() if value is not None},
            )
        )
        return made

    def value(self, given: Any, like: Any = None) -> Value | None:
        """Return what an input of a node is as a value.

        Args:
            given: value, tensor, number, list of sizes, or None.
            like: dtype of numbers.
        """
        if given is None or isinstance(given, Value):
            return given
        if isinstance(given, Tensor):
            return self.constant(given)
        if isinstance(given, (list, tuple)):
            return self.sizes(given)
        return self.constant(gradiron.tensor(given, dtype=like))

    def constant(self, tensor: Tensor) -> Value:
        """Return a tensor as a value.

        Args:
            tensor: tensor.
        """
        small = tensor.numel() <= 64
        key: Any = (str(tensor.tolist()), tensor.dtype, tuple(tensor.shape)) if small else id(tensor)
        if key not in self._constants:
            name = self._names.create_name("constant", None)
            # The tensor is kept, so that no other one gets its id.
            self.initializers[name] = tensor
            self._constants[key] = Value(name, tensor.dtype, tuple(tensor.shape))
        return self._constants[key]

    def prune(self, outputs: Iterable[str]) -> None:
        """Drop the nodes and constants that no output needs.

        Args:
            outputs: names of the outputs.
        """
        needed, kept = set(outputs), []
        for node in reversed(self.nodes):
            if needed.intersection(node.output):
                needed.update(node.input)
                kept.append(node)
        self.nodes = kept[::-1]
        self.initializers = {name: tensor for name, tensor in self.initializers.items() if name in needed}

    # Sizes.

    def sizes(self, given: Sequence[Any]) -> Value:
        """Return a list of sizes as one value.

        Args:
            given: integers and numbers of the graph.
        """
        if not any(isinstance(each, Value) for each in given):
            return self.constant(gradiron.tensor(list(map(int, given)), dtype=gradiron.int64))
        parts: list[Any] = []
        for each in given:
            part = self.Unsqueeze(each, [0]) if isinstance(each, Value) else [each]
            if isinstance(part, list) and parts and isinstance(parts[-1], list):
                parts[-1].extend(part)
            else:
                parts.append(part)
        return self.Concat(*parts, axis=0, dtype=gradiron.int64) if len(parts) > 1 else parts[0]

    def size(self, x: Any, dim: int) -> Any:
        """Return the size of one dimension: an integer, or a number of the graph where it is dynamic.

        Args:
            x: value or tensor.
            dim: dimension.
        """
        found = x.shape[dim]
        if found is not None:
            return found
        made = self.Gather(self.Shape(x, dtype=gradiron.int64), dim % x.ndim, axis=0)
        made.sizes, made.is_number = (), True
        return made

    def shape_of(self, x: Any) -> list[Any]:
        """Return the sizes of all dimensions.

        Args:
            x: value or tensor.
        """
        return [self.size(x, dim) for dim in range(x.ndim)]

    # What many forms need.

    def cast(self, x: Any, dtype: Any) -> Any:
        """Return a value, tensor or number of another dtype.

        Args:
            x: what to convert.
            dtype: dtype.
        """
        if isinstance(x, Tensor):
            return x.to(dtype)
        if not isinstance(x, Value):
            return self.constant(gradiron.tensor(x, dtype=dtype))
        if x.dtype == dtype:
            return x
        made = self.Cast(x, to=element_type(dtype), dtype=dtype)
        made.sizes = x.sizes
        return made

    def reshape(self, x: Any, sizes: Sequence[Any]) -> Value:
        """Return a value in another shape. One size may be -1.

        Args:
            x: value.
            sizes: sizes. One that is 0 stands for no elements.
        """
        zero = any(each == 0 for each in sizes if not isinstance(each, Value))
        return self.Reshape(x, list(sizes), allowzero=1 if zero and self.opset >= 14 else None)

    def unsqueeze(self, x: Any, *dims: int) -> Value:
        """Return a value with further dimensions of size 1.

        Args:
            x: value.
            dims: where they stand in the result.
        """
        return self.Unsqueeze(x, list(dims))

    def squeeze(self, x: Any, *dims: int) -> Value:
        """Return a value without some dimensions of size 1.

        Args:
            x: value.
            dims: dimensions.
        """
        return self.Squeeze(x, list(dims))

    def slice(self, x: Any, dim: int, start: Any, stop: Any, step: int = 1) -> Value:
        """Return a part along one dimension.

        Args:
            x: value.
            dim: dimension.
            start, stop, step: as in a slice of Python's.
        """
        return self.Slice(x, [start], [stop], [dim], [step])

    def reduce(self, kind: str, x: Any, dims: Sequence[int] | None, keepdim: bool) -> Value:
        """Return a reduction: the axes are an input in newer versions, an attribute in older ones.

        Args:
            kind: operator of ONNX.
            x: value.
            dims: dimensions; None for all.
            keepdim: whether they stay, with size 1.
        """
        if dims is None or len(dims) == 0:
            return getattr(self, kind)(x, keepdims=int(keepdim))
        if self.opset >= (13 if kind == "ReduceSum" else 18):
            return getattr(self, kind)(x, list(dims), keepdims=int(keepdim))
        return getattr(self, kind)(x, axes=list(dims), keepdims=int(keepdim))

    # Numbers that the program computes from sizes.

    def arithmetic(self, target: Any, args: Sequence[Any]) -> Value:
        """Return what one of Python's operators makes of sizes.

        Args:
            target: function of the module `operator`.
            args: integers and numbers of the graph.
        """
        x, *rest = (self.cast(each, gradiron.int64) for each in args)
        if target is operator.neg:
            made = self.Neg(x)
        elif target is operator.mod:
            made = self.Mod(x, rest[0])
        elif target is operator.floordiv:
            # ONNX divides towards zero, Python towards minus infinity.
            made = self.Div(self.Sub(x, self.Mod(x, rest[0])), rest[0])
        else:
            made = getattr(self, _ARITHMETIC[target])(x, rest[0])
        made.sizes, made.is_number = (), True
        return made


_ARITHMETIC: dict[Any, str] = {operator.add: "Add", operator.sub: "Sub", operator.mul: "Mul"}
