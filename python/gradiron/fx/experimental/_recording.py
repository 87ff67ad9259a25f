"""Writes down the operators that a function executes on tensors, and the derivatives that it asks for."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType
from typing import Any, NamedTuple, NoReturn

import gradiron

from ... import _core
from ..._core import Tensor
from ...autograd import function as custom_functions
from ...nn import Parameter
from ...overrides import DisableTorchFunction, TorchFunctionMode, prepare
from ...random import default_generator
from ...utils import _pytree as pytree
from .. import _patching
from .._names import library_path, target_name
from .._tracer import Tracer
from ..graph import magic_methods
from ..node import Node
from ..proxy import Proxy
from ._operator_vjp import operator_vjp

# Attributes that are other tensors, not results.
_OWN = frozenset(("_base", "grad"))
# What gives Python a number: a graph cannot hold what depends on it.
VALUES = frozenset(
    "__bool__ __complex__ __float__ __index__ __int__ allclose array dlpack equal is_nonzero item numpy tolist".split()
)


# Operators of Python's that write into their tensor.
IN_PLACE = frozenset(f"__{name}__" for name in "setitem iadd isub imul itruediv ifloordiv imod ipow iand ior ixor".split())
# Operators of Python's that ask only the tensor itself whether it overrides functions.
_UNASKING = ("__getitem__", "__pow__", *sorted(IN_PLACE))


class Call(NamedTuple):
    """One operator that was executed."""

    path: str
    inputs: Sequence[Node | None]  # of each leaf of its arguments, the node of a tensor that is followed
    leaves: list[Any]
    structure: Any
    outputs: Sequence[Tensor]
    nodes: list[Node]  # of its outputs
    pure: bool


class Followed(Tensor):
    """A tensor that has a node in the graph."""

    _proxy: Proxy
    _recorder: Recorder
    _written: int  # the version that its node stands for

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        recorder = next(leaf._recorder for leaf in pytree.tree_leaves((args, kwargs or {})) if isinstance(leaf, Followed))
        return recorder.call(func, args, kwargs or {})


prepare(Followed)


class OperatorMode(TorchFunctionMode):
    """Sees the operators that have no tensor among their arguments."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.recorder.call(func, args, kwargs or {})


class MakeTracer(Tracer):
    """Holds the graph. Tensors that are not followed become attributes of the module."""

    def create_arg(self, a: Any) -> Any:
        """Return an argument as a node holds it.

        Args:
            a: argument.
        """
        if isinstance(a, Followed):
            return a._proxy.node
        if isinstance(a, Parameter):
            path = self.tensor_attrs.get(a)
            if not path:
                path = self.tensor_attrs[a] = self.get_fresh_qualname("_param_constant")
                setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        return super().create_arg(a)


class Recorder:
    """Writes down what a function does.

    Args:
        tracer: what holds the graph.
    """

    caller = "make_fx"

    def __init__(self, tracer: MakeTracer) -> None:
        self.tracer = tracer
        self.calls: list[Call] = []
        self.impure: set[Node] = set()
        self.random: set[Node] = set()
        self.custom_backward = False
        self._run_grad = _core.run_grad

    def refuse(self, what: str) -> NoReturn:
        """Raise the error of what cannot be traced.

        Args:
            what: what it is.
        """
        raise NotImplementedError(f"{self.caller}: {what} cannot be traced")

    def follow(self, value: Any, proxy: Proxy) -> Any:
        """The value as a tensor that has a node."""
        if not isinstance(value, Tensor):
            return value
        made: Any = value if isinstance(value, Followed) else _core.as_subclass(value, Followed, True)
        made._proxy, made._recorder = proxy, self
        with DisableTorchFunction():
            made._written = made._version
        return made

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Execute an operator, and write it down if it returns a tensor."""
        with DisableTorchFunction():
            return self._call(func, args, kwargs)

    def _call(self, func: Any, args: Any, kwargs: Any) -> Any:
        leaves, structure = pytree.tree_flatten((list(args), dict(kwargs)))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        inputs = [leaf._proxy.node if isinstance(leaf, Followed) else None for leaf in leaves]
        getter = getattr(func, "__name__", "") in ("__get__", "__set__")
        name = func.__self__.__name__ if getter else func.__name__
        if name == "backward":
            self.refuse(_MEANING["run_backward"])
        versions, state = [leaf._version for leaf in tensors], default_generator.get_state()
        result = func(*args, **kwargs)
        if name == "__setitem__":
            self.impure.add(self.tracer.create_proxy("call_function", operator.setitem, args, {}).node)
            return result
        outputs, shape = pytree.tree_flatten(result)
        if name in _OWN or not any(isinstance(output, Tensor) for output in outputs):
            return self._plain(name, result, args, kwargs)
        drew = not gradiron.equal(state, default_generator.get_state())
        pure = versions == [leaf._version for leaf in tensors] and not drew
        path, proxy = self._write(func, name, getter, args, kwargs)
        if isinstance(result, Tensor):
            made: Any = [self.follow(result, proxy)]
        else:
            made = [self.follow(output, proxy[number]) for number, output in enumerate(outputs)]
        kept = [output for output in made if isinstance(output, Followed)]
        nodes = [output._proxy.node for output in kept]
        self.calls.append(Call(path, inputs, leaves, structure, kept, nodes, pure))
        if not pure:
            self.impure.add(proxy.node)
        if drew:
            self.random.add(proxy.node)
        return made[0] if isinstance(result, Tensor) else pytree.tree_unflatten(made, shape)

    def _plain(self, name: str, result: Any, args: Any, kwargs: Any) -> Any:
        """What a function gets from a call that returns no new tensor: the result, unless it is a value of the graph's."""
        if name in VALUES and any(isinstance(leaf, Followed) for leaf in pytree.tree_leaves((args, kwargs))):
            raise RuntimeError(
                f"It appears that you're trying to get value out of a tracing tensor with {name} - erroring out! It's "
                "likely that this is caused by data-dependent control flow or similar."
            )
        return result

    def _write(self, func: Any, name: str, getter: bool, args: Any, kwargs: Any) -> tuple[str, Proxy]:
        """Adds the node, and returns the path of what it calls."""
        slot = name.strip("_")
        if name.startswith("__") and slot in magic_methods and hasattr(operator, slot):
            return f"torch.Tensor.{name}", self.tracer.create_proxy("call_function", getattr(operator, slot), tuple(args), {})
        if getter:
            return f"torch.Tensor.{name}", self.tracer.create_proxy("call_function", getattr, (args[0], name), {})
        path = library_path(func) or f"{func.__module__}.{name}"
        same = getattr(gradiron, name, None)
        if path.startswith("torch.Tensor.") and _takes(same, name, args, kwargs):
            path, func = f"torch.{name}", same
        if path.startswith("torch.Tensor."):
            return path, self.tracer.create_proxy("call_method", name, tuple(args), kwargs)
        return path, self.tracer.create_proxy("call_function", func, tuple(args), kwargs, name=target_name(name))

    # Derivatives.

    def run_grad(self, roots: Any, inputs: Any, starts: Any, retain_graph: bool, create_graph: bool) -> Any:
        """What the tape's `run_grad` does, as calls of `operator_vjp` in the graph."""
        if _core.overrides_off() == 2 or not any(isinstance(root, Followed) for root in roots):
            return self._run_grad(roots, inputs, starts, retain_graph, create_graph)
        if self.custom_backward:
            self.refuse("the derivative of a torch.autograd.Function")
        wanted = [each._proxy.node if isinstance(each, Followed) else None for each in inputs]
        found: dict[Node, Any] = {}
        for root, start in zip(roots, starts, strict=True):
            if isinstance(root, Followed):
                self._add(found, root._proxy.node, gradiron.ones_like(root.detach()) if start is None else start)
        for each in reversed(self._between({node for node in wanted if node is not None})):
            if any(node in found for node in each.nodes):
                self._pull(each, found)
        return tuple(None if node is None else found.get(node) for node in wanted)

    def _between(self, nodes: set[Node]) -> list[Call]:
        """The calls whose results depend on some nodes."""
        reached, calls = set(nodes), []
        for each in self.calls:
            if reached.intersection(node for node in each.inputs if node is not None):
                # A detached result depends on nothing.
                reached.update(node for node, output in zip(each.nodes, each.outputs, strict=True) if _core.wants_grad(output))
                calls.append(each)
        self._reached = reached
        return calls

    def _pull(self, each: Call, found: dict[Node, Any]) -> None:
        wrt = [at for at, node in enumerate(each.inputs) if node is not None and node in self._reached]
        wrt = [at for at in wrt if _core.wants_grad(each.leaves[at])]
        if not wrt or not any(map(_core.wants_grad, each.outputs)):
            return
        if not each.pure:
            self.refuse(f"the derivative of {each.path}, which draws random numbers or writes into a tensor,")
        args, kwargs = pytree.tree_unflatten(each.leaves, each.structure)
        cotangents = [found.get(node) for node in each.nodes]
        # The result of one with respect to one tensor is no tuple.
        grads = self.call(operator_vjp, (each.path, tuple(wrt), cotangents, args, kwargs), {})
        for at, grad in zip(wrt, (grads,) if len(wrt) == 1 else grads, strict=True):
            self._add(found, each.inputs[at], grad)

    def _add(self, found: dict[Node, Any], node: Any, grad: Any) -> None:
        found[node] = found[node] + grad if node in found else grad

    # What the trace stands on while it goes on.

    def patch(self, patcher: _patching.Patcher) -> None:
        """Has everything come by here that executes operators."""
        for names, name, function in _patching.library_functions():
            if self._is_one_node(function):
                patcher.patch(names, name, self._recorded(function))
        for name in _UNASKING:
            patcher.patch_method(Tensor, name, self._recorded_slot(getattr(Tensor, name)))
        core = vars(_core)
        patcher.patch(core, "run_grad", _named(self.run_grad))
        for name in ("aliased", "tracked", "unrecorded"):
            patcher.patch(core, name, self._kept(core[name], name))
        for name in ("run_backward", "vmap_enter", "make_dual"):
            patcher.patch(core, name, _named(lambda *args, what=name: self.refuse(_MEANING[what])))
        names = vars(custom_functions)
        patcher.patch(names, "_apply", self._noting_custom(names["_apply"]))
        for name in ("as_tensor", "asarray", "from_numpy", "tensor"):
            patcher.patch(vars(gradiron), name, self._fresh(getattr(gradiron, name)))

    def _is_one_node(self, function: Callable[..., Any]) -> bool:
        """Whether a function that is written in Python is one node, rather than what it executes."""
        return True

    def _recorded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            if _core.overrides_off() == 2 or not self._is_seen(args, kwargs):
                return function(*args, **kwargs)
            return self.call(function, args, kwargs)

        return recorded

    def _is_seen(self, args: Any, kwargs: Any) -> bool:
        """Whether a call is written down."""
        return any(isinstance(leaf, Followed) for leaf in pytree.tree_leaves((args, kwargs)))

    def _recorded_slot(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """An operator of Python's on a tensor that is not followed, where that does not ask its operands."""

        @functools.wraps(method)
        def recorded(tensor: Tensor, *args: Any) -> Any:
            if isinstance(tensor, Followed) or _core.overrides_off() == 2 or not self._is_seen((tensor, *args), {}):
                return method(tensor, *args)
            return self.call(method, (tensor, *args), {})

        return recorded

    def _fresh(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that makes a tensor of Python's values: a copy of a constant, as it may be written."""

        def fresh(*args: Any, **kwargs: Any) -> Any:
            made = function(*args, **kwargs)
            if isinstance(made, Followed) or _core.overrides_off() == 2:
                return made
            return self.call(gradiron.clone, (made,), {})

        return fresh

    def _kept(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """A function of the core that makes another tensor of the same elements, as a node of its own."""

        def kept(value: Any, *options: Any) -> Any:
            made = function(value, *options)
            if not isinstance(value, Followed) or _core.overrides_off() == 2:
                return made
            if name == "tracked":  # the same tensor
                return self.follow(made, value._proxy)
            # The graph itself can be differentiated: what a transform is lent is a view there, without a history only here.
            args = (value, ...)
            inputs, (leaves, structure) = [value._proxy.node, None], pytree.tree_flatten((list(args), {}))
            proxy = self.tracer.create_proxy("call_function", operator.getitem, args, {})
            result = self.follow(made, proxy)
            self.calls.append(Call("torch.Tensor.__getitem__", inputs, leaves, structure, [result], [proxy.node], True))
            return result

        return kept

    def _noting_custom(self, apply: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*args: Any) -> Any:
            self.custom_backward = True
            return apply(*args)

        return noting


def _takes(function: Any, name: str, args: Any, kwargs: Any) -> bool:
    """Whether an operator's function takes a method's arguments: sizes one by one are a method's alone."""
    # The function `where` has the condition before the tensor.
    if name == "where" or not isinstance(function, BuiltinFunctionType) or library_path(function) != f"torch.{name}":
        return False
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return False
    return True


_MEANING = {
    "run_backward": "Tensor.backward (use torch.autograd.grad)",
    "vmap_enter": "vmap",
    "make_dual": "forward-mode derivatives",
}


def _named(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes attributes, as bound methods do not."""

    def named(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return named


def signature_of(function: Any, count: int) -> Any:
    """The function as one of named parameters, where it has none."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is not None and not code.co_flags & inspect.CO_VARARGS:
        return function
    names = ", ".join(f"arg{number}" for number in range(count))
    made: dict[str, Any] = {"function": function}
    exec(f"def forward({names}):\n    return function({names})", made)
    return made["forward"]


def run_recorded(
    function: Callable[..., Any],
    values: list[Any],
    proxies: list[Proxy],
    tracer: MakeTracer,
    recorder: Recorder | None = None,
) -> None:
    """Runs a function on values, and writes down the operators that it executes.

    Args:
        function: function.
        values: arguments. Tensors are followed; the caller's own stay what they are.
        proxies: proxies of the arguments.
        tracer: what holds the graph.
        recorder: what writes; default: one that writes down whatever is executed.
    """
    recorder = recorder or Recorder(tracer)
    given = [
        recorder.follow(_core.as_subclass(value, Followed, True), proxy) if isinstance(value, Tensor) else value
        for value, proxy in zip(values, proxies, strict=True)
    ]
    with _patching.Patcher() as patcher:
        recorder.patch(patcher)
        with OperatorMode(recorder):
            result = function(*given)
    tracer.create_node("output", "output", (tracer.create_arg(result),), {})
    # What drew random numbers or wrote into a tensor stays, though nobody uses what it returned.
    tracer.graph.eliminate_dead_code(lambda node: node.is_impure() or node in recorder.impure)
