"""Replaces what a graph contains by something else."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..nn import Module
from ._compatibility import compatibility
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _get_attr
from .node import Node, map_arg
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

_Pattern = Callable[..., Any] | Graph | GraphModule


@compatibility(is_backward_compatible=True)
class Match(NamedTuple):
    """A place where a pattern was replaced.

    Args:
        anchor: node of the pattern that the search began at.
        nodes_map: node of each one of the pattern.

    Examples:
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
        >>> torch.fx.replace_pattern(traced, lambda x: torch.relu(x), lambda x: torch.neg(x))[0].anchor
        relu
    """

    anchor: Node
    nodes_map: dict[Node, Node]


@compatibility(is_backward_compatible=False)
@dataclass
class ReplacedPatterns:
    """A place where a pattern was replaced.

    Args:
        anchor: node of the pattern that the search began at.
        nodes_map: node of each one of the pattern.
        replacements: nodes that were put there.

    Examples:
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
        >>> replace = torch.fx.subgraph_rewriter.replace_pattern_with_filters
        >>> replace(traced, lambda x: torch.relu(x), lambda x: torch.neg(x))[0].replacements
        [neg]
    """

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _graph_of(pattern: _Pattern) -> Graph:
    if isinstance(pattern, GraphModule):
        return pattern.graph
    return pattern if isinstance(pattern, Graph) else symbolic_trace(pattern).graph


def _take_attributes(gm: GraphModule, replacement: Module) -> None:
    """Gives a module the attributes that the nodes put into its graph refer to."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _found(gm, str(node.target)) is not None:
            continue
        attribute = _found(replacement, str(node.target))
        if attribute is None:
            raise RuntimeError(
                'Attempted to create a "',
                node.op,
                f'" node during subgraph rewriting with target {node.target}, but the referenced attribute does not exist in '
                "the replacement GraphModule",
            )
        if isinstance(attribute, Module):
            gm.add_submodule(str(node.target), copy.deepcopy(attribute))
        else:
            setattr(gm, str(node.target), copy.deepcopy(attribute))
    gm.graph.lint()


def _found(module: Module, path: str) -> Any:
    try:
        return _get_attr(module, path)
    except AttributeError:
        return None


@compatibility(is_backward_compatible=True)
def replace_pattern(gm: GraphModule, pattern: _Pattern, replacement: _Pattern) -> list[Match]:
    """Replace a pattern wherever a graph contains it, and return the places.

    Args:
        gm: module whose graph is changed.
        pattern: function or module to find. Its inputs stand for anything.
        replacement: function or module of the same inputs to put there.

    Examples:
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + torch.relu(x + 1))
        >>> matches = torch.fx.replace_pattern(traced, lambda x: torch.relu(x), lambda x: torch.neg(x))
        >>> len(matches)
        2
        >>> traced(torch.ones(1))
        tensor([-3.])
    """
    return [Match(found.anchor, found.nodes_map) for found in _replace(gm, pattern, replacement)]


@compatibility(is_backward_compatible=False)
def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: _Pattern,
    replacement: _Pattern | None = None,
    match_filters: list[Callable[[InternalMatch, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """Replace a pattern at some of the places where a graph contains it, and return these.

    Args:
        gm: module whose graph is changed.
        pattern: function or module to find. Its inputs stand for anything.
        replacement: function or module of the same inputs to put there.
        match_filters: functions of a match, the graph and the pattern that return whether it is replaced.
        ignore_literals: whether numbers and other constants may differ from the pattern's. Default: `False`
        replacement_callback: function of a match, the graph and the pattern that returns what to put there.
        node_name_match: a node whose name contains this stands for any node of the pattern. Default: `""`

    Examples:
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + torch.relu(x + 1))
        >>> def is_of_input(match, graph, pattern):
        ...     return match.placeholder_nodes[0].op == "placeholder"
        >>> replace = torch.fx.subgraph_rewriter.replace_pattern_with_filters
        >>> len(replace(traced, lambda x: torch.relu(x), lambda x: torch.neg(x), [is_of_input]))
        1
    """
    return _replace(gm, pattern, replacement, match_filters, ignore_literals, replacement_callback, node_name_match)


def _replace(
    gm: GraphModule,
    pattern: _Pattern,
    replacement: _Pattern | None = None,
    match_filters: list[Any] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[..., Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    if replacement is None and replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    graph, pattern_graph = gm.graph, _graph_of(pattern)
    matches = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals).match(graph, node_name_match=node_name_match)
    matches = [match for match in matches if all(fits(match, graph, pattern_graph) for fits in match_filters or ())]
    always = None if replacement is None or replacement_callback is not None else _graph_of(replacement)
    # A node that one replacement took away may be an input of the next.
    changed: dict[Node, Node] = {}
    done = []
    for match in matches:
        made = always if replacement_callback is None else replacement_callback(match, graph, pattern_graph)
        assert made is not None
        done.append(_replace_one(graph, pattern_graph, made, match, changed))
    gm.recompile()
    if isinstance(replacement, Module):
        _take_attributes(gm, replacement)
    return done


def _replace_one(
    graph: Graph, pattern: Graph, replacement: Graph, match: InternalMatch, changed: dict[Node, Node]
) -> ReplacedPatterns:
    inputs = [node for node in replacement.nodes if node.op == "placeholder"]
    if len(match.placeholder_nodes) != len(inputs):
        raise AssertionError(f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(inputs)}")
    copies: dict[Node, Any] = {}
    for number, (node, given, of_pattern) in enumerate(
        zip(inputs, match.placeholder_nodes, (each for each in pattern.nodes if each.op == "placeholder"), strict=True)
    ):
        now = map_arg(given, lambda each: changed.get(each, each))
        copies[node] = match.placeholder_nodes[number] = match.nodes_map[of_pattern] = now
    with graph.inserting_before(_first_after(graph, match.returning_nodes)):
        results = graph.graph_copy(replacement, copies)
    results = (results,) if isinstance(results, Node) else results
    if len(match.returning_nodes) != len(results):
        raise AssertionError(f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(results)}")
    given = [each for each in match.placeholder_nodes if isinstance(each, Node)]
    put = [each for each in copies.values() if isinstance(each, Node) and each not in given]
    for old, new in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(new)
        changed[old] = new
    for node in reversed(pattern.nodes):
        if node.op not in ("placeholder", "output"):
            graph.erase_node(match.nodes_map[node])
    return ReplacedPatterns(match.anchors[0], match.nodes_map, put)


def _first_after(graph: Graph, returning: list[Node]) -> Node:
    """The node before which a replacement is put: the first that uses its result."""
    users = {user for node in returning for user in node.users}
    if users:
        return min(users)
    return max(returning).next
