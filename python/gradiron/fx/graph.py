"""Programs as lists of steps, and the code that is generated of them."""

from __future__ import annotations

import contextlib
import copy
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .._types import typename
from ..nn import Module, Parameter
from ..utils import _pytree as pytree
from . import _pytree as fx_pytree
from ._code_writer import CodeWriter, PythonCode, format_target
from ._code_writer import inplace_methods as inplace_methods
from ._code_writer import magic_methods as magic_methods
from ._code_writer import reflectable_magic_methods as reflectable_magic_methods
from ._compatibility import compatibility
from ._names import Namespace, custom_builtins, register_custom_builtin, reserved, snake_case, target_name
from .node import Argument, Node, Target, map_arg

if TYPE_CHECKING:
    from ._tracer import Tracer
    from .graph_module import GraphModule

__all__ = ["CodeGen", "Graph", "PythonCode"]

TransformCodeFunc = Callable[[list[str]], list[str]]

register_custom_builtin("fx_pytree", "import torch.fx._pytree as fx_pytree", fx_pytree)
register_custom_builtin("pytree", "import torch.utils._pytree as pytree", pytree)

# PyTorch's names of these.
_custom_builtins, _register_custom_builtin = custom_builtins, register_custom_builtin
_Namespace, _snake_case, _format_target, _illegal_names = Namespace, snake_case, format_target, reserved

_OPS = ("call_function", "call_method", "get_attr", "call_module", "placeholder", "output")


class _PyTreeInfo(NamedTuple):
    """How the inputs and the result of a traced function were nested."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


@compatibility(is_backward_compatible=False)
class CodeGen:
    """Gives generated code its form. A subclass changes the head of the function, what it returns, or its inputs.

    Examples:
        >>> class Renamed(torch.fx.CodeGen):
        ...     def gen_fn_def(self, free_vars, maybe_return_annotation):
        ...         return f"def forward(self, *, {', '.join(free_vars)}){maybe_return_annotation}:"
        >>> graph = torch.fx.symbolic_trace(lambda x: x + 1).graph
        >>> graph.set_codegen(Renamed())
        >>> torch.fx.GraphModule(torch.nn.Module(), graph)(x=torch.ones(1))
        tensor([2.])
    """

    def __init__(self) -> None:
        self._body_transformer: TransformCodeFunc | None = None
        self._func_name = "forward"

    def _call(self, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """A method that a subclass may have defined with fewer options."""
        taken = inspect.signature(method).parameters
        return method(*args, **{name: value for name, value in options.items() if name in taken})

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """Return the head of the function.

        Args:
            free_vars: parameters, with their annotations and defaults.
            maybe_return_annotation: `" -> ..."`, or nothing.
            expanded_def: whether each parameter stands on a line of its own.
        """
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        if not expanded_def:
            return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"
        return f"def {self._func_name}(\n{''.join(map(_own_line, free_vars))}){maybe_return_annotation}:"

    def generate_output(
        self, output_args: Argument, *, descs: Sequence[str] | None = None, repr_fn: Callable[[Any], str] | None = None
    ) -> str:
        """Return the statement that returns the result.

        Args:
            output_args: nodes and values to return.
            descs: comments on the elements of a tuple or list.
            repr_fn: function that writes a value as code.
        """
        return f"return {_described(output_args, descs, repr_fn or repr)}"

    def process_inputs(self, *args: Any) -> Any:
        """Return the inputs of the graph for those of the function.

        Args:
            args: arguments of the function.
        """
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Return the result of the function for that of the graph.

        Args:
            outputs: result of the graph.
        """
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return names that the head or the result uses, with what they stand for."""
        return []

    def _gen_python_code(self, nodes: Any, root_module: str, namespace: Namespace, **options: Any) -> PythonCode:
        return CodeWriter(self, nodes, root_module, namespace, **options).write()


def _own_line(parameter: str) -> str:
    code, mark, comment = parameter.partition("#")
    return f"    {code.rstrip()},  # {comment.lstrip()}\n" if mark else f"    {parameter},\n"


def _described(value: Any, descs: Sequence[str] | None, repr_fn: Callable[[Any], str]) -> str:
    """A value as code; a tuple or list that has comments on several lines."""
    if descs is None or not isinstance(value, (list, tuple)):
        return repr_fn(value)
    left, right = "()" if isinstance(value, tuple) else "[]"
    lines = [f"    {repr_fn(item)},  # {desc}\n" for item, desc in zip(value, descs, strict=False)]
    return f"{left}\n{''.join(lines)}{right}"


class _PyTreeCodeGen(CodeGen):
    """Code that takes nested inputs apart and puts the result together again."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return pytree.tree_leaves(inputs)

    def process_outputs(self, outputs: Any) -> Any:
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return outputs
        leaves = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        return pytree.tree_unflatten(leaves, self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def)
        names = self.pytree_info.orig_args
        leaves = ["self", *free_vars] if names and names[0] == "self" else list(free_vars)
        head = super().gen_fn_def(list(names), maybe_return_annotation, expanded_def=expanded_def)
        if not leaves:
            return head
        annotated = [leaf for leaf in leaves if ":" in leaf]
        if annotated:
            head += "\n    " + ("\n    ".join(annotated) if expanded_def else "; ".join(annotated) + ";\n")
        bare = [leaf.split(":")[0].split("#")[0] for leaf in leaves]
        return f"{head}\n    {', '.join(bare)}, = fx_pytree.tree_flatten_spec({self._inputs(names)}, self._in_spec)"

    def _inputs(self, names: list[str]) -> str:
        spec = self.pytree_info.in_spec
        outer = spec.children()
        if not (spec.type is tuple and len(outer) == 2 and outer[0].type is tuple and outer[1].type is dict):
            return f"[{', '.join(names)}]"
        positional = outer[0].num_children
        named = ", ".join(f"'{key}':{name}" for key, name in zip(outer[1].context, names[positional:], strict=False))
        return f"([{', '.join(names[:positional])}], {{{named}}})"

    def generate_output(
        self, output_args: Argument, *, descs: Sequence[str] | None = None, repr_fn: Callable[[Any], str] | None = None
    ) -> str:
        if not (self.pytree_info and self.pytree_info.out_spec):
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        return f"return pytree.tree_unflatten({_described(output_args, descs, repr_fn or repr)}, self._out_spec)"


class _BoxedCodeGen(CodeGen):
    """Code of a function that takes its inputs in one list, which it empties."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        names = [parameter.split(":")[0].split("=")[0].strip() for parameter in free_vars if parameter != "self"]
        lines = [f"def {self._func_name}(self, args_list){maybe_return_annotation}:"]
        if names:
            lines += ["args_iter = iter(args_list)", *(f"{name} = next(args_iter)" for name in names), "args_list.clear()"]
        return "\n    ".join(lines)


class _node_list:
    """The nodes of a graph in order, also of one that changes meanwhile."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        if direction not in ("_next", "_prev"):
            raise AssertionError(f"direction must be '_next' or '_prev', got {direction}")
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root, current = self.graph._root, getattr(self.graph._root, self.direction)
        while current is not root:
            if not current._erased:
                yield current
            current = getattr(current, self.direction)

    def __reversed__(self) -> Iterator[Node]:
        return iter(_node_list(self.graph, "_prev" if self.direction == "_next" else "_next"))


class _InsertPoint:
    """Has new nodes go to another place, inside of a `with` block or until the next call."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]) -> None:
        self._graph, self._before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        self._graph._insert = self._before


@compatibility(is_backward_compatible=True)
class Graph:
    """A program as a list of nodes: inputs, calls and a result.

    `symbolic_trace` makes one of a module, or the methods make it step by step. A `GraphModule` runs it.

    Args:
        owning_module: module that runs it.
        tracer_cls: class of the tracer that made it.
        tracer_extras: options of that tracer.

    Examples:
        >>> graph = torch.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(torch.relu, (x,))
        >>> node = graph.output(y)
        >>> torch.fx.GraphModule(torch.nn.Module(), graph)(torch.tensor([-1.0, 1.0]))
        tensor([0., 1.])
    """

    def __init__(
        self,
        owning_module: GraphModule | None = None,
        tracer_cls: type[Tracer] | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._places_known = False
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = Namespace()
        self._owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def owning_module(self) -> GraphModule | None:
        """Module that runs the graph."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: GraphModule | None) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """Nodes in their order. The graph may change while one goes through them."""
        return _node_list(self)

    def output_node(self) -> Node:
        """Return the node of the result."""
        last = self._root._prev
        if last.op != "output":
            raise AssertionError(f"Expected output node, got op={last.op}")
        return last

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """Return the nodes of one kind, in order.

        Args:
            op: kind of node.
            target: what they call or read; default: anything. Needed for `"call_function"`.
            sort: ignored, as the order costs nothing.
        """
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    def _place_of(self, node: Node) -> int:
        if not self._places_known:
            for place, each in enumerate(self.nodes):
                each._place = place
            self._places_known = True
        return node._place

    # Making nodes.

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node at the insertion point.

        Args:
            op: kind of node.
            target: what it calls or reads.
            args, kwargs: arguments, which may hold nodes of this graph.
            name: name to try; default: one after the target.
            type_expr: type annotation.
        """
        if args and not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if kwargs and not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        name = self._graph_namespace.create_name(target_name(target) if name is None else name, None)
        node = Node(self, name, op, target, args or (), kwargs or {}, type_expr)
        for hook in getattr(self.owning_module, "_create_node_hooks", None) or ():
            hook(node)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._len += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = pytree.MISSING) -> Node:
        """Add an input.

        Args:
            name: name of the parameter.
            type_expr: type annotation.
            default_value: value if none is given; default: one must be given.
        """
        needed = default_value is pytree.MISSING or default_value is inspect.Signature.empty
        args = () if needed else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add a node that reads a parameter, buffer or other attribute of the module.

        Args:
            qualified_name: path of it.
            type_expr: type annotation.
        """
        owner = self.owning_module
        if owner is not None and not _holds(owner, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the necessary "
                "Parameter, or nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a module.

        Args:
            module_name: path of it.
            args, kwargs: arguments.
            type_expr: type annotation.
        """
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)  # raises AttributeError where there is none
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a call of a method of the first argument.

        Args:
            method_name: name of it.
            args, kwargs: arguments, with the object itself first.
            type_expr: type annotation.
        """
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """Add a call of a function.

        Args:
            the_function: function.
            args, kwargs: arguments.
            type_expr: type annotation.
            name: name to try; default: one after the function.
        """
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Add the result.

        Args:
            result: nodes and values to return.
            type_expr: type annotation.
        """
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """Add a copy of a node of another graph.

        Args:
            node: node to copy.
            arg_transform: function that returns, for a node in its arguments, the node of this graph.
        """
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Add copies of the nodes of another graph, and return its result in terms of them.

        Args:
            g: other graph.
            val_map: dict that gets the copy of each node. A node that it holds already is not copied.
            return_output_node: whether the other graph's output node is returned as well, second in a tuple.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo: dict[Any, Any] | None = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        found = made.graph_copy(self, memo if memo else {}, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        made._co_fields = dict(self._co_fields)
        if found is not None:
            result, output = found
            made.output(result, type_expr=output.type).meta = copy.copy(output.meta)
        return made

    # Where new nodes go, and what goes.

    def _inserting(self, node: Node, method: str) -> _InsertPoint:
        if node.graph is not self:
            raise AssertionError(f"Node to insert {'before' if method == 'prepend' else 'after'} is not in graph.")
        return _InsertPoint(self, getattr(node, method))

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Have new nodes go before a node, inside of a `with` block or from now on.

        Args:
            n: node; default: the beginning of the graph.

        Examples:
            >>> graph = torch.fx.symbolic_trace(lambda x: x + 1).graph
            >>> with graph.inserting_before(graph.output_node()):
            ...     node = graph.call_function(torch.relu, graph.output_node().args)
        """
        return self._inserting(self._root, "append") if n is None else self._inserting(n, "prepend")

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Have new nodes go after a node, inside of a `with` block or from now on.

        Args:
            n: node; default: the end of the graph.
        """
        return self._inserting(self._root, "prepend") if n is None else self._inserting(n, "append")

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nobody uses.

        Args:
            to_erase: node of this graph.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._set_arguments(map_arg(to_erase.args, lambda _: None), map_arg(to_erase.kwargs, lambda _: None))

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove the nodes that nobody uses and that do nothing else, and return whether there were any.

        Args:
            is_impure_node: function that says of a node whether it stays; default: `Node.is_impure`.

        Examples:
            >>> graph = torch.fx.symbolic_trace(lambda x: (x + 1, x * 2)[1]).graph
            >>> graph.eliminate_dead_code(), len(graph.nodes)
            (True, 3)
        """
        self.lint()
        stays = is_impure_node or Node.is_impure
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not stays(node):
                self.erase_node(node)
                changed = True
        return changed

    # Code and listings.

    def process_inputs(self, *args: Any) -> Any:
        """Return the inputs of the graph for those of the generated function.

        Args:
            args: arguments of the function.
        """
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Return the result of the generated function for that of the graph.

        Args:
            out: result of the graph.
        """
        return self._codegen.process_outputs(out)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Give generated code another form.

        Args:
            codegen: what writes its head and its result.
        """
        self._codegen = codegen

    def on_generate_code(
        self, make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc]
    ) -> contextlib.AbstractContextManager[None]:
        """Change the lines of generated code, until the end of a `with` block if it is used as one.

        Args:
            make_transformer: function of the present change of lines, or None, that returns the next one.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def until_the_end() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return until_the_end()

    def python_code(self, root_module: str, **options: Any) -> PythonCode:
        """Return the source of a function that does what the graph says.

        Args:
            root_module: what the code calls the module: `"self"`.
            options: `verbose`, `include_stride`, `include_device`, `colored`, `expanded_def` and `additional_meta`.

        Examples:
            >>> graph = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1).graph
            >>> print(graph.python_code("self").src.strip())
            def forward(self, x):
                relu = torch.relu(x);  x = None
                add = relu + 1;  relu = None
                return add
        """
        namespace = Namespace()
        options.pop("record_func", None)
        kept = {node: node._repr_fn for node in self.nodes}
        try:
            for node in kept:
                node._repr_fn = lambda each: namespace.create_name(each.name, each)
            return self._codegen._gen_python_code(self.nodes, root_module, namespace, **options)
        finally:
            for node, before in kept.items():
                node._repr_fn = before

    def _target_to_str(self, target: Target) -> str:
        return target_name(target)

    def __str__(self) -> str:
        names: list[str] = []
        lines = [line for node in self.nodes if (line := node.format_node(names))]
        return "\n    ".join([f"graph({', '.join(names)}):", *lines])

    def print_tabular(self) -> None:
        """Print the nodes as a table.

        Examples:
            >>> torch.fx.symbolic_trace(torch.nn.Linear(2, 3)).graph.print_tabular()  # doctest: +SKIP
        """
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(node.op, node.name, str(node.target), str(node.args), str(node.kwargs)) for node in self.nodes]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    def lint(self) -> None:
        """Raise an error if the graph is not well formed: names, owners and order of its nodes, and what they refer to.

        Examples:
            >>> torch.fx.symbolic_trace(torch.nn.ReLU()).graph.lint()
        """
        names: set[str] = set()
        seen: set[Node] = set()
        for node in self.nodes:
            if node.op not in _OPS:
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node._input_nodes:
                self._check_argument(used, node, seen)
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            if self.owning_module is not None:
                _check_target(self.owning_module, node)

    def _check_argument(self, used: Node, user: Node, seen: set[Node]) -> None:
        if used.graph is not self:
            raise RuntimeError(
                f"Argument '{used}' of Node '{user}' does not belong to this Graph, but was used as an argument! If you are "
                f"copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap values\n{self}"
            )
        if used not in seen:
            raise RuntimeError(
                f"Argument '{used}' of Node '{user}' was used before it has been defined! Please check that Nodes in the graph "
                f"are topologically ordered\n{self}"
            )


def _holds(owner: Module, path: str) -> bool:
    """Whether a path leads to a module, parameter or buffer."""
    above, _, name = path.rpartition(".")
    try:
        module = owner.get_submodule(above)
    except AttributeError:
        warnings.warn(f"Failed to fetch module {above}!", stacklevel=3)
        return False
    return isinstance(getattr(module, name, None), (Module, Parameter)) or name in module._buffers


def _check_target(owner: Module, node: Node) -> None:
    wanted, fits = ("Callable", callable(node.target)) if node.op == "call_function" else ("str", isinstance(node.target, str))
    if not fits:
        raise ValueError(f"Node {node} target {node.target} has type {typename(node.target)} but a {wanted} is expected")
    if node.op not in ("get_attr", "call_module"):
        return
    parts = str(node.target).split(".")
    found: Any = owner
    for number, part in enumerate(parts):
        above, found = ".".join(parts[:number]), getattr(found, part, None)
        if found is None:
            raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {part} of {above}")
        if node.op == "call_module" and not isinstance(found, Module):
            raise RuntimeError(f"Node {node} target {node.target} {part} of {above} does not reference an nn.Module")
