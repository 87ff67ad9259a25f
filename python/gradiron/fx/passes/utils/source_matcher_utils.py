"""Nodes by the function or module that they were traced from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..._compatibility import compatibility
from ...graph import Graph
from ...node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@compatibility(is_backward_compatible=False)
@dataclass
class SourcePartition:
    """The nodes of one call of a function or module.

    Attributes:
        nodes: nodes.
        source: function or class of the module.
        input_nodes: nodes that these use.
        output_nodes: those among them that others use.
        params: those among them that read attributes.
    """

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def _source(node: Node, wanted: list[Any]) -> tuple[Any, str] | None:
    """What a node was traced from, if it is wanted, and the name of the call."""
    stack = node.meta.get("source_fn_stack")
    if stack is not None:
        name, source = stack[-1]
        return (source, name) if source in wanted else None
    name, function = node.meta.get("torch_fn", ("", "."))
    if function.split(".")[1] in wanted:
        return function.split(".")[1], name
    modules = node.meta.get("nn_module_stack")
    if node.op != "call_function" or not modules:
        return None
    path, inner = list(modules.values())[-1]
    for source in wanted:
        subclass = isinstance(source, type) and isinstance(inner, type) and issubclass(inner, source)
        if subclass or inner == source or (isinstance(source, type) and inner == f"{source.__module__}.{source.__qualname__}"):
            return source, path
    return None


@compatibility(is_backward_compatible=False)
def get_source_partitions(
    graph: Graph, wanted_sources: list[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """Return the nodes of each call of some functions and modules, by what was called.

    Args:
        graph: graph whose nodes note where they come from.
        wanted_sources: functions, and classes of modules.
        filter_fn: function of a node; calls are left out for one of whose nodes it is false.
    """
    found: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        source = _source(node, wanted_sources)
        if source is not None:
            found.setdefault(source[0], {}).setdefault(source[1], []).append(node)
    return {
        kind: [_partition(nodes, kind) for nodes in calls.values() if filter_fn is None or all(map(filter_fn, nodes))]
        for kind, calls in found.items()
    }


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    inside = set(nodes)
    used = {arg for node in nodes for arg in node.args if isinstance(arg, Node) and arg not in inside and arg.op != "get_attr"}
    params = {node for node in nodes if node.op == "get_attr"}
    outputs = {node for node in inside - params if any(user not in inside for user in node.users)}
    return SourcePartition(nodes, source, sorted(used), sorted(outputs), sorted(params))


@compatibility(is_backward_compatible=False)
def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Return whether the second call uses a node of the first.

    Args:
        subgraph1, subgraph2: nodes of two calls.
    """
    return any(user in subgraph2.nodes for node in subgraph1.nodes for user in node.users)
