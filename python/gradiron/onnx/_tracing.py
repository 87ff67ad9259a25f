"""Graphs of the operators that a module executes on example inputs, with its sizes as nodes."""

from __future__ import annotations

import contextlib
import functools
import inspect
import linecache
import operator
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

import gradiron

from .. import compiler
from .._core import Tensor, as_subclass
from .._types import Size
from ..autograd.grad_mode import no_grad
from ..fx import _patching
from ..fx._names import is_of_library, library_path
from ..fx.experimental._recording import IN_PLACE, VALUES, Followed, MakeTracer, OperatorMode, Recorder, run_recorded
from ..fx.graph import Graph
from ..fx.node import Node
from ..fx.proxy import Proxy, TraceError
from ..nn import Module, Parameter
from ..overrides import DisableTorchFunction
from ..utils import _pytree as pytree
from ._forms import find_form
from ._sizes import SizeInt, TracedSize, element_count, size_along
from .errors import OnnxExporterError

__all__ = ["ExportTracer", "is_tracing", "named_tensors", "trace"]

# Rooms whose names stand before those of their functions.
_ROOMS = ("fft", "linalg")
_COUNTS = frozenset(("nelement", "numel"))
_depth = 0


def is_tracing() -> bool:
    """Return whether a module is being traced for an export."""
    return _depth > 0


def public_name(path: str) -> str:
    """Return the name of an operator in the table of forms: that of the function, with `linalg.` or `fft.` before it.

    Args:
        path: path of the function. Those of others keep it.
    """
    *rooms, name = path.split(".")
    if rooms and rooms[0] not in ("torch", "gradiron", "None"):
        return path
    if rooms[1:2] == ["ops"]:
        return path.removeprefix("torch.ops.")
    whole = ".".join((*rooms[1:], name))
    if find_form(whole):
        return whole  # a method or a function of `nn.functional` that takes its arguments otherwise than others of its name
    return f"{rooms[-1]}.{name}" if rooms and rooms[-1] in _ROOMS else name


def named_tensors(model: Module) -> dict[str, Tensor]:
    """Return the parameters and buffers of a module by the names of its `state_dict`, and its other tensors.

    Args:
        model: module.
    """
    found: dict[str, Tensor] = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                found.setdefault(f"{path}.{name}" if path else name, value)
    return found


class ExportTracer(MakeTracer):
    """Holds the graph of an export. Parameters and buffers keep their names.

    Args:
        model: module that is traced.
    """

    def __init__(self, model: Module) -> None:
        super().__init__()
        self.root, self.graph = Module(), Graph(tracer_cls=type(self))
        self.held = named_tensors(model)
        self.tensor_attrs = {tensor: name for name, tensor in self.held.items()}
        self.paths = {module: path for path, module in model.named_modules()}
        self.modules: list[str] = []

    def tensor(self, name: str) -> Tensor:
        """Return the tensor of a node that reads an attribute.

        Args:
            name: its name.
        """
        found = self.held.get(name)
        return getattr(self.root, name) if found is None else found

    def create_arg(self, a: Any) -> Any:
        """Return an argument as a node holds it.

        Args:
            a: argument.
        """
        if isinstance(a, SizeInt):
            return a.node
        if isinstance(a, Size):
            return tuple(map(self.create_arg, a))
        return super().create_arg(a)

    def create_node(self, *args: Any, **kwargs: Any) -> Node:
        node = super().create_node(*args, **kwargs)
        node.meta.update(line=self.line(), module=self.modules[-1] if self.modules else "")
        return node

    def line(self) -> str:
        """Return the line of the user's program that is being traced, as an error tells it."""
        frame = self._find_user_frame()
        if frame is None:
            return ""
        name, number = frame.f_code.co_filename, frame.f_lineno
        return f'\n  File "{name}", line {number}, in {frame.f_code.co_name}\n    {linecache.getline(name, number).strip()}'


class ExportRecorder(Recorder):
    """Writes down what a module does. What has a form is one node; what has none and is written in Python is traced through.

    Args:
        tracer: what holds the graph.
    """

    tracer: ExportTracer
    caller = "torch.onnx.export"

    def __init__(self, tracer: ExportTracer) -> None:
        super().__init__(tracer)
        # The nodes whose values no input decides, and those among them that no parameter decides, either.
        self._known: set[Node] = set()
        self._free: set[Node] = set()
        # For a tensor that an index made, what it is a view of and the index.
        self._views: dict[Any, tuple[Any, Any]] = {}

    def number(self, target: Callable[..., Any], args: tuple[Any, ...], value: int) -> SizeInt:
        """Add the node of a number that is computed from sizes.

        Args:
            target: what it calls.
            args: arguments.
            value: the number on the example.
        """
        node = self.tracer.create_proxy("call_function", target, args, {}).node
        node.meta["number"] = value
        self._known.add(node)
        self._free.add(node)
        return SizeInt(value, node, self.number)

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Execute an operator and write it down, or trace through one that is written in Python and has no form."""
        if not isinstance(func, FunctionType) or func.__name__ in VALUES or not is_of_library(func.__module__):
            return super().call(func, args, kwargs)
        if self._is_one_node(func):
            return super().call(func, args, kwargs)
        with OperatorMode(self):
            made = inspect.unwrap(func)(*args, **kwargs)
        lost = any(isinstance(leaf, Tensor) and not isinstance(leaf, Followed) for leaf in pytree.tree_leaves(made))
        if lost and self._depends(args, kwargs):
            self.refuse(f"{func.__name__} of a tensor that depends on an input")
        return made

    def _depends(self, args: Any, kwargs: Any) -> bool:
        """Whether an input decides what a call gets."""
        leaves = pytree.tree_leaves((args, kwargs))
        return any(isinstance(leaf, Followed) and _origin(leaf._proxy.node) not in self._known for leaf in leaves)

    def run_grad(self, roots: Any, inputs: Any, starts: Any, retain_graph: bool, create_graph: bool) -> Any:
        """Refuse derivatives: no form is theirs."""
        self.refuse("a derivative")

    def _call(self, func: Any, args: Any, kwargs: Any) -> Any:
        for leaf in pytree.tree_leaves((args, kwargs)):
            if isinstance(leaf, Tensor):
                self.require_unwritten(leaf)
        target = args[0] if args and isinstance(args[0], Followed) else None
        if target is not None:
            self._require_no_parameter(func.__name__, target)
        version = None if target is None else target._version
        made: Any = None
        node: Node | None
        if getattr(func, "__name__", "") == "__setitem__":
            if self._is_own_view(target, args):
                return None  # as at the end of `x[0] += 1`
            func(*args)
            node = self._set_item(args)
        else:
            made = super()._call(func, args, kwargs)
            node = self._node_of(made)
        if target is not None and target._version != version:
            target._written = target._version
            if node is not None:
                node.meta["writes"] = True
            self._write_through(target, version)
        elif getattr(func, "__name__", "") == "__getitem__" and target is not None and _is_basic(args[1]):
            self._views[made] = target, args[1]
        return made

    def _is_own_view(self, target: Any, args: Any) -> bool:
        """Whether an assignment writes a view of a tensor where it stands."""
        base, index = self._views.get(args[2], (None, None)) if isinstance(args[2], Followed) else (None, None)
        return target is not None and base is target and index is args[1]

    def _set_item(self, args: Any) -> Node:
        node = self.tracer.create_proxy("call_function", operator.setitem, args, {}).node
        node.meta["operator"] = "setitem"
        self.impure.add(node)
        self._note(node, [args[0]])
        return node

    def _write_through(self, view: Any, version: int | None) -> None:
        """Writes what was written into a view by index into what it is a view of."""
        while view in self._views:
            base, index = self._views[view]
            if base._written != version:
                return  # another write has come between
            self._set_item((base, index, view)).meta["writes"] = True
            base._written = base._version
            view = base

    def _node_of(self, made: Any) -> Node | None:
        """The node of a call, given its result; none if it returned no tensor."""
        outputs = pytree.tree_leaves(made)
        first = next((leaf for leaf in outputs if isinstance(leaf, Followed)), None)
        if first is None:
            return None
        node = _origin(first._proxy.node)
        if "results" not in node.meta:
            self._note(node, outputs)
        return node

    def require_unwritten(self, tensor: Any) -> None:
        """Raise an error if the node of a tensor does not stand for its elements any more.

        Args:
            tensor: tensor that is read.
        """
        if isinstance(tensor, Followed) and tensor._written != tensor._version:
            raise TraceError(
                "a tensor is used after a view of it, or what it is a view of, has been written into, which a graph cannot "
                f"hold{self.tracer.line()}"
            )

    def _note(self, node: Node, outputs: list[Any]) -> None:
        """Notes what the results of a node look like, and their values where the program alone decides them."""
        node.meta["results"] = [(tuple(leaf.shape), leaf.dtype) if isinstance(leaf, Tensor) else None for leaf in outputs]
        if node in self.random:
            return
        if all(each in self._known or each.op == "get_attr" for each in node.all_input_nodes):
            self._known.add(node)
        if all(each in self._free or self._is_constant(each) for each in node.all_input_nodes):
            self._free.add(node)
            node.meta["values"] = [leaf.detach().clone() if isinstance(leaf, Tensor) else leaf for leaf in outputs]

    def _require_no_parameter(self, name: str, target: Any) -> None:
        """Raises the error of an operator that would write into a parameter, before it does."""
        held = self.tracer.held.get(str(target._proxy.node.target))
        in_place = name in IN_PLACE or (name.endswith("_") and not name.endswith("__"))
        if in_place and isinstance(held, Parameter):
            raise TraceError(
                f"the module writes into its parameter '{target._proxy.node.target}', which a graph cannot "
                f"hold{self.tracer.line()}"
            )

    def hold(self, model: Module) -> None:
        """Have the modules' parameters, buffers and other tensors followed, each as a node of its name.

        Args:
            model: module.
        """
        followed: dict[Tensor, Any] = {}
        for tensor, name in self.tracer.tensor_attrs.items():
            proxy = self.tracer.create_proxy("get_attr", name, (), {})
            self._known.add(proxy.node)
            followed[tensor] = self.follow(as_subclass(tensor.detach(), Followed, True), proxy)
        for module in model.modules():
            for names in (vars(module)["_parameters"], vars(module)["_buffers"], vars(module)):
                names.update((name, followed[value]) for name, value in names.items() if _is_in(value, followed))

    def _is_constant(self, node: Node) -> bool:
        return node.op == "get_attr" and node.target not in self.tracer.held

    def _plain(self, name: str, result: Any, args: Any, kwargs: Any) -> Any:
        if not args or not isinstance(args[0], Tensor):
            return result
        if isinstance(result, Size):
            return TracedSize(self.number(size_along, (args[0], dim), size) for dim, size in enumerate(result))
        if name == "size":
            return self.number(size_along, (args[0], *args[1:], *kwargs.values()), result)
        if name in _COUNTS:
            return self.number(element_count, (args[0],), result)
        if name in VALUES and self._depends(args, kwargs):
            raise TraceError(
                f"symbolically traced variables cannot be used as inputs to control flow: {name} of a tensor that depends on "
                f"an input{self.tracer.line()}"
            )
        return result

    def _write(self, func: Any, name: str, getter: bool, args: Any, kwargs: Any) -> tuple[str, Proxy]:
        path, proxy = super()._write(func, name, getter, args, kwargs)
        proxy.node.meta["operator"] = public_name(path)
        return path, proxy

    def patch(self, patcher: _patching.Patcher) -> None:
        """Has everything come by here that executes operators, and the calls of modules."""
        super().patch(patcher)
        for name in ("is_compiling", "is_dynamo_compiling", "is_exporting"):
            patcher.patch(vars(compiler), name, functools.partial(bool, True))
        stack, call = self.tracer.modules, Module.__call__

        @functools.wraps(call)
        def called(module: Module, *args: Any, **kwargs: Any) -> Any:
            stack.append(self.tracer.paths.get(module, type(module).__name__))
            try:
                return call(module, *args, **kwargs)
            finally:
                stack.pop()

        patcher.patch_method(Module, "__call__", called)

    def _is_seen(self, args: Any, kwargs: Any) -> bool:
        return True

    def _is_one_node(self, function: Callable[..., Any]) -> bool:
        return find_form(public_name(library_path(function) or f"{function.__module__}.{function.__name__}")) is not None


def _origin(node: Node) -> Node:
    """The call that returned a result, where it returned several."""
    return node.args[0] if node.target is operator.getitem and "operator" not in node.meta else node


def _is_in(value: Any, tensors: dict[Tensor, Any]) -> bool:
    return isinstance(value, Tensor) and value in tensors


def _is_basic(index: Any) -> bool:
    """Whether an index makes a view: one of tensors or lists makes a copy."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or part is ... or type(part) in (int, slice, SizeInt) for part in parts)


@contextlib.contextmanager
def _unchanged(model: Module) -> Iterator[None]:
    """A `with` block that leaves the modules' attributes and the elements of their buffers as they were before it."""
    before = {module: {name: _copied(value) for name, value in vars(module).items()} for module in model.modules()}
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        yield
    finally:
        for module, names in before.items():
            vars(module).clear()
            vars(module).update(names)
        with no_grad():
            for buffer, value in buffers:
                if not gradiron.equal(buffer, value):
                    buffer.copy_(value)


def _copied(value: Any) -> Any:
    return value.copy() if type(value) in (dict, OrderedDict) else value


def trace(model: Module, names: Sequence[str], inputs: Sequence[Tensor], call: Callable[..., Any]) -> ExportTracer:
    """Run a module once and return the tracer that holds the graph.

    Args:
        model: module.
        names: names of the inputs.
        inputs: tensors.
        call: function of these tensors that calls the module.
    """
    global _depth
    tracer = ExportTracer(model)
    recorder = ExportRecorder(tracer)
    proxies = [tracer.create_proxy("placeholder", name, (), {}) for name in names]
    for proxy, value in zip(proxies, inputs, strict=True):
        proxy.node.meta["results"] = [(tuple(value.shape), value.dtype)]

    def results(*tensors: Any) -> list[Any]:
        found = [leaf for leaf in pytree.tree_leaves(call(*tensors)) if leaf is not None]
        with DisableTorchFunction():
            for leaf in found:
                if isinstance(leaf, Tensor):
                    recorder.require_unwritten(leaf)
                elif not isinstance(leaf, (int, float)):
                    raise OnnxExporterError(f"the module returns a {type(leaf).__name__}, which is no tensor")
        return found

    _depth += 1
    try:
        with no_grad(), _unchanged(model):
            recorder.hold(model)
            # A module that writes into its input must not write into the example.
            run_recorded(results, [value.detach().clone() for value in inputs], proxies, tracer, recorder)
    finally:
        _depth -= 1
    return tracer
