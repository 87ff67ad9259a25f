"""Splits a graph module into several."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...nn import Module
from .._compatibility import compatibility
from ..graph import Graph
from ..graph_module import GraphModule, _get_attr
from ..node import Node, map_arg
from ..proxy import Proxy

__all__ = ["Partition", "split_module"]


@compatibility(is_backward_compatible=True)
class Partition:
    """One of the modules that another is split into.

    Args:
        name: name of it.

    Attributes:
        submod_name: name of the module.
        node_names: nodes of the original in it.
        inputs, outputs: nodes of the original that it takes and gives.
        dependencies, dependents: partitions that it needs, and that need it.

    Examples:
        >>> torch.fx.passes.split_module.Partition("0").submod_name
        'submod_0'
    """

    def __init__(self, name: str) -> None:
        self.name, self.submod_name = name, f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n partitions "
            f"depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


@compatibility(is_backward_compatible=True)
def split_module(
    m: GraphModule,
    root_m: Module,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """Return a module that calls several modules, which share its nodes.

    Args:
        m: graph module to split.
        root_m: ignored, as in PyTorch.
        split_callback: function of a node that returns the number of its module.
        qualname_map: dict that gets, for the path of a module in the result, its path in the original.
        keep_original_order: whether the modules are called in the order of their first nodes. Default: `False`
        keep_original_node_name: whether nodes keep their names. Default: `False`
        keep_original_input_name: whether the inputs of the modules are named after the nodes that they take. Default:
            `True`
        partition_affix: what the names of the modules have before the number.
        tuple_return: whether a module with one result returns a tuple, too. Default: `False`

    Examples:
        >>> split_module = torch.fx.passes.split_module.split_module
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.neg(torch.relu(x)))
        >>> split = split_module(traced, traced, lambda node: 0 if node.target is torch.relu else 1)
        >>> [name for name, _ in split.named_children()], split(torch.ones(1))
        (['submod_0', 'submod_1'], tensor([-1.]))
    """
    splitter = _Splitter(m, bool(keep_original_node_name), keep_original_input_name, tuple_return, qualname_map)
    splitter.assign(split_callback, partition_affix)
    order = splitter.ordered()
    splitter.fill(order)
    made = splitter.whole(list(splitter.partitions) if keep_original_order else order)
    made.meta["partition_names"] = {partition.submod_name for partition in splitter.partitions.values()}
    return made


class _Splitter:
    def __init__(
        self, module: GraphModule, keep_names: bool, keep_inputs: bool, tuples: bool, paths: dict[str, str] | None
    ) -> None:
        self.module, self.keep_names, self.keep_inputs, self.tuples, self.paths = module, keep_names, keep_inputs, tuples, paths
        self.partitions: dict[str, Partition] = {}
        self.owner: dict[Node, str] = {}
        self.nodes = {node.name: node for node in module.graph.nodes}

    def assign(self, number_of: Callable[[Node], int], affix: str | None) -> None:
        """Gives each node its partition, and each partition its inputs and results."""
        for node in self.module.graph.nodes:
            if node.op in ("placeholder", "get_attr", "output"):
                continue
            number = str(number_of(node))
            name = number if affix is None else f"{affix}_{number}"
            self.partitions.setdefault(name, Partition(name)).node_names.append(node.name)
            self.owner[node] = node._fx_partition = name
        for node in self.module.graph.nodes:
            for used in node._input_nodes:
                self._note_use(used, node)

    def _note_use(self, used: Node, user: Node) -> None:
        maker, taker = self.owner.get(used), self.owner.get(user)
        if maker == taker:
            return
        if maker is not None:
            self.partitions[maker].outputs.setdefault(used.name)
        if taker is not None:
            self.partitions[taker].inputs.setdefault(used.name)
        if maker is not None and taker is not None:
            self.partitions[maker].dependents.setdefault(taker)
            self.partitions[taker].dependencies.setdefault(maker)

    def ordered(self) -> list[str]:
        """The partitions in an order in which each follows those that it needs."""
        left = {name: set(partition.dependencies) for name, partition in self.partitions.items()}
        ready = [name for name, needed in left.items() if not needed]
        order: list[str] = []
        while ready:
            order.append(ready.pop())
            for later in self.partitions[order[-1]].dependents:
                left[later].discard(order[-1])
                if not left[later]:
                    ready.append(later)
        if len(order) != len(self.partitions):
            raise RuntimeError("cycle exists between partitions!")
        return order

    def fill(self, order: list[str]) -> None:
        """Writes the graph of each partition."""
        for name in order:
            self._inputs(self.partitions[name])
        for node, name in self.owner.items():
            partition = self.partitions[name]
            target: Any = node.target
            if node.op == "call_module":
                target = str(node.target).replace(".", "_")
                partition.targets[target] = _get_attr(self.module, str(node.target))
                if self.paths is not None:
                    self.paths[f"{partition.submod_name}.{target}"] = str(node.target)
            inside = partition.environment.__getitem__
            kept = node.name if self.keep_names else None
            made = partition.graph.create_node(
                node.op, target, map_arg(node.args, inside), map_arg(node.kwargs, inside), kept, node.type
            )
            made.meta = node.meta.copy()
            partition.environment[node] = made

    def _inputs(self, partition: Partition) -> None:
        """The inputs of a partition: a module that is used as a value is read there, all else is passed."""
        modules = [name for name in partition.inputs if self._is_module(self.nodes[name])]
        passed = [name for name in partition.inputs if name not in modules]
        for number, name in enumerate(passed):
            node = self.nodes[name]
            made = partition.graph.placeholder(name if self.keep_inputs else f"arg_{number}", type_expr=node.type)
            made.meta = node.meta.copy()
            partition.environment[node] = made
        for name in modules:
            node = self.nodes[name]
            partition.targets[str(node.target)] = _get_attr(self.module, str(node.target))
            made = partition.graph.get_attr(str(node.target))
            made.meta = node.meta.copy()
            partition.environment[node] = made
        partition.inputs = dict.fromkeys(passed)

    def _is_module(self, node: Node) -> bool:
        return node.op == "get_attr" and isinstance(_get_attr(self.module, str(node.target)), Module)

    def whole(self, order: list[str]) -> GraphModule:
        """The module that calls the partitions in an order."""
        graph, held = Graph(), dict[str, Any]()
        known: dict[str, Node] = {}
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                default = node.args[0] if node.args else inspect.Signature.empty
                name = node.name if self.keep_names else str(node.target)
                known[node.name] = graph.placeholder(name, type_expr=node.type, default_value=default)
            elif node.op == "get_attr":
                known[node.name] = graph.get_attr(str(node.target))
                held[str(node.target)] = _get_attr(self.module, str(node.target))
            else:
                continue
            known[node.name].meta = node.meta.copy()
        for name in order:
            partition = self.partitions[name]
            results = tuple(partition.environment[self.nodes[each]] for each in partition.outputs)
            single = len(results) == 1 and not self.tuples
            partition.graph.output(results[0] if single else results)
            held[partition.submod_name] = GraphModule(partition.targets, partition.graph)
            call = graph.call_module(partition.submod_name, tuple(known[each] for each in partition.inputs))
            for number, each in enumerate(partition.outputs):
                known[each] = call if single else Proxy(call)[number].node
        graph.output(map_arg(self.module.graph.output_node().args[0], lambda node: known[node.name]))
        return GraphModule(held, graph)
