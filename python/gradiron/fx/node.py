"""One step of a graph: an input, a call, or the result."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from .. import _core
from .._core import Tensor
from .._creation import layout, memory_format
from .._functions.settings import _assert, _assert_async
from .._types import typename
from ..types import SymBool, SymFloat, SymInt
from ._compatibility import compatibility
from ._names import qualified_name, type_repr
from ._tensor_annotations import tensor_annotation
from .immutable_collections import immutable_dict, immutable_list
from .operator_schemas import normalize_function, normalize_module

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

BaseArgumentTypes: TypeAlias = (
    str
    | int
    | float
    | bool
    | complex
    | _core.dtype
    | Tensor
    | _core.device
    | memory_format
    | layout
    | SymInt
    | SymBool
    | SymFloat
)
base_types = BaseArgumentTypes.__args__
Target: TypeAlias = Callable[..., Any] | str
Argument: TypeAlias = Any

_OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")

# Calls that stay in a graph though nobody uses what they return.
_side_effectful_functions: set[Callable[..., Any]] = {_assert, _assert_async, operator.setitem}

# PyTorch's names of these.
_get_qualified_name, _type_repr = qualified_name, type_repr


@compatibility(is_backward_compatible=False)
def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function whose calls `Graph.eliminate_dead_code` keeps.

    Args:
        fn: function, which is returned.

    Examples:
        >>> @torch.fx.has_side_effect
        ... def show(x):
        ...     print(x)
    """
    _side_effectful_functions.add(fn)
    return fn


@compatibility(is_backward_compatible=True)
def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """Apply a function to the leaves of nested tuples, lists, dicts and slices.

    Args:
        a: value. Lists and dicts in it become immutable ones.
        fn: function of one leaf.

    Examples:
        >>> map_aggregate = torch.fx.node.map_aggregate
        >>> map_aggregate((1, [2, 3]), lambda x: x + 1)
        (2, [3, 4])
    """
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(item, fn)) for key, item in a.items())
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


@compatibility(is_backward_compatible=True)
def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """Apply a function to the nodes in nested tuples, lists, dicts and slices.

    Args:
        a: value.
        fn: function of one node.

    Examples:
        >>> graph = torch.fx.Graph()
        >>> x, y = graph.placeholder("x"), graph.placeholder("y")
        >>> torch.fx.map_arg((x, [1, y]), lambda node: node.name)
        ('x', [1, 'y'])
    """
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda leaf: fn(leaf) if isinstance(leaf, Node) else leaf)


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    """An argument as listings of a graph show it."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return str(arg._custom_fx_repr_fn())
    if isinstance(arg, (list, tuple)):
        shown = [_format_arg(item) for number, item in enumerate(arg) if number < max_list_len]
        comma = "," if isinstance(arg, tuple) and len(arg) == 1 else ""
        rest = "" if len(arg) <= max_list_len else f", ...[total_len={len(arg)}]"
        left, right = "()" if isinstance(arg, tuple) else "[]"
        return f"{left}{', '.join(shown)}{comma}{rest}{right}"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {_format_arg(item)}" for key, item in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


def _target_text(target: Target) -> str:
    if isinstance(target, str):
        return target
    if getattr(target, "__module__", None) in ("builtins", "_operator") and hasattr(target, "__name__"):
        return f"{target.__module__.lstrip('_')}.{target.__name__}"
    return qualified_name(target)


@compatibility(is_backward_compatible=True)
class Node:
    """A step of a graph. Nodes are made by the methods of `Graph`.

    Args:
        graph: graph that it belongs to.
        name: name in the graph and in generated code.
        op: `"placeholder"`, `"get_attr"`, `"call_function"`, `"call_module"`, `"call_method"` or `"output"`.
        target: function, or name of an input, attribute, module or method.
        args: arguments, which may hold nodes.
        kwargs: keyword arguments.
        return_type: type annotation.

    Attributes:
        users: nodes that use this one, as the keys of a dict.
        meta: what passes note of it.
        next: node after this one.
        prev: node before this one.
        all_input_nodes: nodes that its arguments hold.
        stack_trace: where in the traced program it comes from, or None.

    Examples:
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
        >>> [(node.op, node.args) for node in traced.graph.nodes]
        [('placeholder', ()), ('call_function', (x,)), ('call_function', (relu, 1)), ('output', (add,))]
    """

    graph: Graph
    op: str
    target: Any
    users: dict[Node, None]
    type: Any
    meta: dict[str, Any]
    _repr_fn: Callable[[Node], str] | None = None
    # Notes of passes.
    _fx_partition: str
    attrs_for_lowering: dict[str, Any]

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in _OPS:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        wanted, fits = ("Callable", callable(target)) if op == "call_function" else ("str", isinstance(target, str))
        if not fits:
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {typename(target)} but a {wanted} is "
                "expected"
            )
        self._prev = self._next = self
        self._place = 0
        self._erased = False
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._input_nodes: dict[Node, None] = {}
        self.graph, self._name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users, self.meta = {}, {}
        self._set_arguments(args, kwargs)

    # Places in the graph.

    @property
    def next(self) -> Node:
        return self._next

    @property
    def prev(self) -> Node:
        return self._prev

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x: Node) -> None:
        """Move a node of the same graph to the place before this one.

        Args:
            x: node to move.
        """
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._remove_from_list()
        x._prev, x._next = self._prev, self
        self._prev._next = x
        self._prev = x
        self.graph._places_known = False

    def append(self, x: Node) -> None:
        """Move a node of the same graph to the place after this one.

        Args:
            x: node to move.
        """
        self._next.prepend(x)

    def __lt__(self, other: Node) -> bool:
        return self.graph._place_of(self) < self.graph._place_of(other)

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return not other < self

    def __ge__(self, other: Node) -> bool:
        return not self < other

    # Arguments.

    @property
    def args(self) -> tuple[Argument, ...]:
        """Arguments. Lists and dicts in them are immutable: assign new ones to change them."""
        return self._args

    @args.setter
    def args(self, a: tuple[Argument, ...]) -> None:
        self._set_arguments(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """Keyword arguments, which are immutable: assign a new dict to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Argument]) -> None:
        self._set_arguments(self._args, k)

    @property
    def all_input_nodes(self) -> list[Node]:
        return list(self._input_nodes)

    def _set_arguments(self, args: Any, kwargs: Any) -> None:
        for used in self._input_nodes:
            used.users.pop(self, None)
        self._input_nodes = {}

        def note(node: Node) -> Node:
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args, self._kwargs = map_arg(tuple(args), note), map_arg(dict(kwargs), note)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace one argument.

        Args:
            idx: position of it.
            arg: new value.
        """
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Insert an argument.

        Args:
            idx: position that it gets.
            arg: value.
        """
        if not 0 <= idx <= len(self._args):
            raise AssertionError(f"insert_args index must be between 0 and len(self.args), got {idx}")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replace or add a keyword argument.

        Args:
            key: keyword.
            arg: new value.
        """
        self.kwargs = {**self._kwargs, key: arg}

    def _replace_input_with(self, old: Node, new: Node) -> None:
        def swap(node: Node) -> Node:
            return new if node is old else node

        self._set_arguments(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use another node wherever the arguments hold this one.

        Args:
            old_input: node in the arguments.
            new_input: node to use in place of it.
        """
        for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
            hook(old=old_input, new=new_input.name, user=self)
        self._replace_input_with(old_input, new_input)

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None, *, propagate_meta: bool = False
    ) -> list[Node]:
        """Have the users of this node use another one, and return them.

        Args:
            replace_with: other node.
            delete_user_cb: function of a user that returns whether it shall use the other; default: all do.
            propagate_meta: whether the other node, which must have no `meta` yet, gets that of this one.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has .meta "
                    "keys"
                )
            replace_with.meta.update(self.meta)
        chosen = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in chosen:
            user.replace_input_with(self, replace_with)
        return chosen

    # What is known of it.

    @property
    def name(self) -> str:
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
            for user in self.users:
                hook(old=self, new=value, user=user)
        self._name = value

    @property
    def stack_trace(self) -> str | None:
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Return whether it does something besides returning a value, so that it stays when nobody uses it.

        Args:
            impure_random: whether drawing random numbers counts. It does not here: such calls are like any other.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            if self.graph.owning_module is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            module = self.graph.owning_module.get_submodule(self.target)
            return bool(getattr(module, "_is_impure", False))
        return self.op == "call_function" and self.target in _side_effectful_functions

    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """Return its arguments with defaults filled in, as a pair of `args` and `kwargs`; None if its signature is unknown.

        Args:
            root: module that the graph's modules belong to.
            arg_types, kwarg_types: ignored, as no function here has several signatures to choose from.
            normalize_to_only_use_kwargs: whether all become keyword arguments.
        """
        if self.op == "call_function":
            return normalize_function(self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs)
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs)
        return None

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace._rename_object(self, self.name)

    # Listings.

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    @staticmethod
    def _pretty_print_target(target: Target) -> str:
        return _target_text(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """Return one line that describes it.

        Args:
            placeholder_names: list that gets an input's name in place of a line of its own, if it holds something.
            maybe_return_typename: list whose first element becomes the type of the result.
            include_tensor_metadata: whether type, shape, strides and device of a tensor in `meta` are shown.

        Examples:
            >>> graph = torch.fx.symbolic_trace(torch.nn.ReLU()).graph
            >>> print(next(iter(graph.nodes)).format_node())
            %input_1 : [num_users=1] = placeholder[target=input]
        """
        kind = f"{type_repr(self.type)} " if self.type is not None else ""
        users = f"[num_users={len(self.users)}]"
        if self.op == "placeholder":
            target = str(self.target)
            if placeholder_names:
                placeholder_names.append(target + (f"{target}: {type_repr(self.type)}" if self.type else ""))
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : {kind}{users} = {self.op}[target={target}]{default}"
        if self.op == "get_attr":
            return f"%{self.name} : {kind}{users} = {self.op}[target={_target_text(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_repr(self.type)}"
            return f"return {self.args[0]}"
        value = self.meta.get("val", self.meta.get("tensor_meta", self.meta.get("example_value")))
        if include_tensor_metadata and isinstance(value, Tensor):
            kind = f'Tensor "{tensor_annotation(value, include_stride=True, include_device=True)}"'
        call = f"{self.op}[target={_target_text(self.target)}]"
        return f"%{self.name} : {kind}{users} = {call}(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"
