"""Runs a graph node by node, or makes another of it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..nn import Module
from . import traceback as fx_traceback
from ._compatibility import compatibility
from ._tracer import Tracer
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, Node, Target, map_aggregate, map_arg
from .proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


@compatibility(is_backward_compatible=True)
class Interpreter:
    """Runs a graph node by node. A subclass overrides what it wants to see or change.

    Args:
        module: module whose `graph` runs.
        garbage_collect_values: whether values are let go of after their last use. Default: `True`
        graph: graph to run in place of the module's.

    Attributes:
        env: values of the nodes that have run.

    Examples:
        >>> class Shapes(torch.fx.Interpreter):
        ...     def run_node(self, n):
        ...         value = super().run_node(n)
        ...         print(n.name, tuple(value.shape))
        ...         return value
        >>> out = Shapes(torch.fx.symbolic_trace(lambda x: torch.relu(x).sum(0))).run(torch.ones(2, 3))
        x (2, 3)
        relu (2, 3)
        sum_1 (3,)
        output (3,)
    """

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module: Any = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = self.module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for user in reversed(self.graph.nodes):
                for used in user._input_nodes:
                    if used not in seen:
                        seen.add(used)
                        self.user_to_last_uses.setdefault(user, []).append(used)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Run the graph and return its result.

        Args:
            args: inputs, in order.
            initial_env: values of nodes that then do not run.
            enable_io_processing: whether inputs and result have the form of the module's own.
        """
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue  # Its value was given.
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    self._tell(error, node)
                raise
            for used in self.user_to_last_uses.get(node, ()):
                del self.env[used]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def _tell(self, error: Exception, node: Node) -> None:
        """Adds to an error which node it comes from."""
        place = f"While executing {node.format_node()}\nOriginal traceback:\n{node.stack_trace}"
        error.args = (f"{error.args[0]}\n\n{place}" if error.args else place, *error.args[1:])
        if isinstance(error, KeyError):  # A KeyError shows its text as a key, with line ends as `\n`.
            raise RuntimeError(*error.args) from error

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Run the graph on a list of inputs, which is emptied so that they can be let go of.

        Args:
            args_list: inputs, in order.
        """
        inputs = [node for node in self.graph.nodes if node.op == "placeholder"]
        if len(args_list) != len(inputs):
            detail = "extra arguments" if len(args_list) > len(inputs) else "missing arguments"
            raise RuntimeError(
                f"Interpreter.boxed_run expected {len(inputs)} arguments for placeholders but received {len(args_list)} "
                f"({detail})"
            )
        env = dict(zip(inputs, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=env)

    @contextmanager
    def _set_current_node(self, node: Node) -> Iterator[None]:
        with fx_traceback.set_current_meta(node, f"Interpreter_{type(self).__name__}"):
            yield

    def run_node(self, n: Node) -> Any:
        """Run one node and return its value.

        Args:
            n: node.
        """
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the next input.

        Args:
            target: name of it; one with a star takes all that are left.
            args: default value, if it has one.
            kwargs: empty.
        """
        if str(target).startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration as error:
            if args:
                return args[0]
            raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!") from error

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return an attribute of the module.

        Args:
            target: path of it.
            args, kwargs: empty.
        """
        return self.fetch_attr(str(target))

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function.

        Args:
            target: function.
            args, kwargs: values of its arguments.
        """
        if isinstance(target, str):
            raise AssertionError("target should not be a string for call_function")
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method.

        Args:
            target: name of it.
            args, kwargs: values of its arguments, with the object itself first.
        """
        owner, *rest = args
        return getattr(owner, str(target))(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Call a module.

        Args:
            target: path of it.
            args, kwargs: values of its arguments.
        """
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result.

        Args:
            target: `"output"`.
            args: the result, alone in a tuple.
            kwargs: empty.
        """
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """Return an attribute of the module.

        Args:
            target: path of it.
        """
        found, parts = self.module, target.split(".")
        for number, part in enumerate(parts):
            if not hasattr(found, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: number + 1])}")
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the values of a node's arguments.

        Args:
            n: node.
        """
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Argument:
        """Return an argument with values in place of nodes.

        Args:
            args: argument, which may be nested.
            n: node that it is an argument of.
        """

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues")
            return self.env[node]

        return map_arg(args, value)


class _TransformerTracer(Tracer):
    def __init__(self, graph: Graph, root: Module) -> None:
        super().__init__()
        self.graph, self.root, self.tensor_attrs = graph, root, {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True


@compatibility(is_backward_compatible=True)
class Transformer(Interpreter):
    """Makes another graph module of one: what its methods return becomes the new graph.

    Args:
        module: graph module.

    Examples:
        >>> class Swap(torch.fx.Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         return super().call_function(torch.neg if target is torch.relu else target, args, kwargs)
        >>> Swap(torch.fx.symbolic_trace(lambda x: torch.relu(x))).transform()(torch.ones(1))
        tensor([-1.])
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph, module)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """Return the proxy of an input of the new graph.

        Args:
            target: name of it.
            args: default value, if it has one.
            kwargs: empty.
        """
        default = args[0] if args else inspect.Signature.empty
        return Proxy(self.new_graph.placeholder(str(target), default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """Return the proxy of an attribute in the new graph.

        Args:
            target: path of it.
            args, kwargs: empty.
        """
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the proxy of a call of a module in the new graph.

        Args:
            target: path of it.
            args, kwargs: its arguments as proxies.
        """
        module = self.fetch_attr(str(target))
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """Return the proxy of a call of a function in the new graph.

        Args:
            target: function.
            args, kwargs: its arguments as proxies.
        """
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Return the new graph module."""
        with fx_traceback.preserve_node_meta():
            result = self.run(enable_io_processing=False)
        if result is not None:
            made = self.new_graph.output(map_aggregate(result, lambda value: value.node if isinstance(value, Proxy) else value))
            made.meta.update(self.graph.output_node().meta)
        return GraphModule(self.module, self.new_graph)
