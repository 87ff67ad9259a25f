"""Values that are not known yet: what is done with them is written into a graph."""

from __future__ import annotations

import copy
import dis
import enum
import operator
import os
import sys
import traceback as python_traceback
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from ..nn import Parameter
from ..ops import OpOverload, OpOverloadPacket
from . import traceback as fx_traceback
from ._compatibility import compatibility
from ._names import library_path, public_call, target_name
from .graph import Graph, magic_methods, reflectable_magic_methods
from .node import Argument, Node, Target, base_types, map_aggregate, map_arg
from .operator_schemas import check_for_mutable_operation

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
]

# The core asks whether an argument is a number or an array of another library. A proxy is neither.
_CONVERSIONS = frozenset("__array__ __array_interface__ __complex__ __cuda_array_interface__ __dlpack__ __float__".split())

# Files whose frames are not the user's.
_LIBRARY = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_CONSTANTS = (*base_types, enum.Enum, OpOverload, OpOverloadPacket, type(None), type(...))


@compatibility(is_backward_compatible=True)
class TraceError(ValueError):
    """A trace met something that depends on a value that is not known yet."""


@compatibility(is_backward_compatible=False)
class Scope:
    """The module that is being traced.

    Args:
        module_path: path of the module.
        module_type: class of it.
    """

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


@compatibility(is_backward_compatible=False)
class ScopeContextManager:
    """Sets the module that is being traced, in a `with` block.

    Args:
        scope: scope to change.
        current_scope: what it becomes.
    """

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope, self._before = scope, copy.copy(scope)
        vars(scope).update(vars(current_scope))

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *exception: object) -> None:
        vars(self._scope).update(vars(self._before))


@compatibility(is_backward_compatible=True)
class TracerBase:
    """Writes calls on proxies into a graph.

    Attributes:
        graph: graph.
        record_stack_traces: whether nodes note their place in the traced program.
        check_mutable_operations: whether calls that write into tensors raise an error.
        trace_asserts: whether an `assert` of a proxy becomes a node.
        proxy_buffer_attributes: whether buffers are proxies, as parameters are.
        traced_func_name: method of the module that is traced.
    """

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, Any]]
    _record_forward_stack_traces_only: bool = False

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node. A subclass that refuses or changes calls overrides this.

        Args:
            kind: kind of node.
            target: what it calls or reads.
            args, kwargs: arguments, of nodes and constants.
            name: name to try; default: one after the target.
            type_expr: type annotation.
        """
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)  # type: ignore[arg-type]
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if fx_traceback.has_preserved_node_meta():
            fx_traceback.copy_notes(node)
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            frames = self._user_frames()
            if frames:
                node.stack_trace = "".join(python_traceback.format_list(frames)).strip()
        return node

    def _user_frames(self) -> list[python_traceback.FrameSummary]:
        """The frames of the traced program, from the first `forward` on."""
        frames = python_traceback.extract_stack()
        if self._record_forward_stack_traces_only:
            kept = [frame for frame in frames if frame.name == "forward"]
        else:
            first = next((number for number, frame in enumerate(frames) if frame.name == "forward"), len(frames))
            kept = frames[first:]
        return [frame for frame in kept if not frame.filename.startswith(_LIBRARY)]

    def _find_user_frame(self) -> types.FrameType | None:
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(_LIBRARY):
            frame = frame.f_back
        return frame

    def proxy(self, node: Node) -> Proxy:
        """Return the proxy of a node. A subclass with proxies of its own overrides this.

        Args:
            node: node.
        """
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Add a node whose arguments may hold proxies, and return its proxy.

        Args:
            kind: kind of node.
            target: what it calls or reads.
            args, kwargs: arguments.
            name: name to try; default: one after the target.
            type_expr: type annotation.
            proxy_factory_fn: function of the node that returns the proxy; default: `proxy`.
        """
        made_args, made_kwargs = self.create_arg(tuple(args)), self.create_arg(dict(kwargs))
        node = self.create_node(kind, target, made_args, made_kwargs, name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a: Any) -> Argument:
        """Return an argument as a node holds it: with nodes for proxies.

        Args:
            a: argument.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(item) for item in a]
            return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return {self._create_key(key): self.create_arg(item) for key, item in a.items()}
        if isinstance(a, (slice, range)):
            return type(a)(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, _CONSTANTS):
            return a
        if is_dataclass(a) and not isinstance(a, type):
            parts = {field.name: self.create_arg(getattr(a, field.name)) for field in fields(a)}
            return self.create_node("call_function", type(a), (), parts)
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _create_key(self, key: Any) -> Any:
        if isinstance(key, str):
            return key

        def refuse(node: Node) -> NoReturn:
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {made}")

        made = self.create_arg(key)
        map_arg(made, refuse)
        return made

    def to_bool(self, obj: Proxy) -> bool:
        """Decide what a proxy is in a condition: raise `TraceError`, unless a subclass knows.

        Args:
            obj: proxy.
        """
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Iterate over a proxy: raise `TraceError`, unless a subclass knows its length.

        Args:
            obj: proxy.
        """
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs "
            "function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what types of control "
            "flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Return what `**obj` takes as the keys of a proxy: the proxy of a call of its `keys`.

        Args:
            obj: proxy.
        """
        return Attribute(obj, "keys")()


@compatibility(is_backward_compatible=True)
class GraphAppendingTracer(TracerBase):
    """Writes at the insertion point of a graph: the tracer of proxies that were made without one.

    Args:
        graph: graph.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.node_name_to_scope = {}


@compatibility(is_backward_compatible=False)
def assert_fn(x: Any) -> None:
    """Raise AssertionError if a value is false: what an `assert` of a proxy becomes.

    Args:
        x: value.
    """
    if not x:
        raise AssertionError("Assertion failed")


def _current_instructions(frame: types.FrameType | None) -> list[dis.Instruction]:
    """The instructions of a function from the one that it carries out now."""
    assert frame is not None
    found = list(dis.get_instructions(frame.f_code))
    return [instruction for instruction in found if instruction.offset >= frame.f_lasti]


def _decides_assert(frame: types.FrameType | None) -> bool:
    """Whether a function asks for the truth of a value for an `assert`."""
    left = _current_instructions(frame)
    if left[0].opname == "TO_BOOL":
        left = left[1:]
    jump, then = left[0], left[1]
    starts = then.opname in ("LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT") or (
        then.opname == "LOAD_GLOBAL" and then.argval == "AssertionError"
    )
    if not (jump.opname.startswith("POP_JUMP") and jump.opname.endswith("IF_TRUE") and starts):
        return False
    before = [instruction for instruction in left if instruction.offset < jump.argval]
    return before[-1].opname == "RAISE_VARARGS"


@compatibility(is_backward_compatible=True)
class Proxy:
    """A value that is not known yet. Calls of functions, methods and operators on it add nodes to the graph.

    A proxy can be wrapped around any node to go on writing there: operators append to the graph at its insertion point.

    Args:
        node: node of the value.
        tracer: what writes; default: to the node's graph.

    Examples:
        >>> graph = torch.fx.Graph()
        >>> x = torch.fx.Proxy(graph.placeholder("x"))
        >>> y = torch.relu(x * 2)
        >>> y
        Proxy(relu)
        >>> [node.name for node in graph.nodes]
        ['x', 'mul', 'relu']
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        if k in _CONVERSIONS:
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        made = Proxy.__new__(Proxy)
        for key, value in self.__dict__.items():
            try:
                made.__dict__[key] = copy.deepcopy(value, memo)
            except Exception:
                made.__dict__[key] = copy.copy(value)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        current = _current_instructions(sys._getframe(1))[0]
        if current.opname == "UNPACK_SEQUENCE":
            return (self[number] for number in range(current.argval))
        return self.tracer.iter(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _decides_assert(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Return the keys for `**proxy`, as the tracer sees them."""
        return self.tracer.keys(self)

    if TYPE_CHECKING:

        def __getitem__(self, key: Any) -> Any: ...

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracers: dict[TracerBase, None] = {}

        def note(value: Any) -> Any:
            if isinstance(value, cls):
                tracers[value.tracer] = None
            return value

        map_aggregate((args, kwargs), note)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        tracer = next(iter(tracers))
        orig_method, args, kwargs = public_call(orig_method, args, kwargs)
        if (library_path(orig_method) or "").startswith("torch.Tensor."):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=target_name(orig_method.__name__))


@compatibility(is_backward_compatible=True)
class Attribute(Proxy):
    """An attribute of a proxy. It gets a node when it is used other than by calling it.

    Args:
        root: proxy.
        attr: name of the attribute.
    """

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


@compatibility(is_backward_compatible=False)
class ParameterProxy(Proxy):
    """A parameter whose shape is known.

    Args:
        tracer: what writes.
        node: node of the parameter.
        name: path of the parameter.
        param: parameter.
    """

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Parameter) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, Parameter):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.param.shape

    @property
    def ndim(self) -> int:
        return self.param.ndim

    def size(self) -> Any:
        """Return the shape."""
        return self.param.size()

    def dim(self) -> int:
        """Return the number of dimensions."""
        return self.param.dim()

    def numel(self) -> int:
        """Return the number of elements."""
        return self.param.numel()

    def nelement(self) -> int:
        """Return the number of elements."""
        return self.param.numel()


def _operator_method(name: str, reflected: bool) -> Callable[..., Any]:
    """The method that records one of Python's operators."""
    target = getattr(operator, name)

    def method(*args: Any, **kwargs: Any) -> Any:
        given = (args[1], args[0]) if reflected else args
        return args[0].tracer.create_proxy("call_function", target, given, kwargs)

    method.__name__ = method.__qualname__ = f"__{'r' if reflected else ''}{name.strip('_')}__"
    return method


for _name in magic_methods:
    if hasattr(operator, _name):
        setattr(Proxy, f"__{_name.strip('_')}__", _operator_method(_name, reflected=False))
for _name in reflectable_magic_methods:
    if hasattr(operator, _name):
        setattr(Proxy, f"__r{_name.strip('_')}__", _operator_method(_name, reflected=True))
