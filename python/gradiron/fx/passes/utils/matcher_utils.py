"""Finds the places where a graph contains a smaller one."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from ...._core import Tensor
from ..._compatibility import compatibility
from ..._names import library_path
from ...graph import Graph
from ...graph_module import _get_attr
from ...node import Node
from ...operator_schemas import normalize_function
from .fuser_utils import validate_partition

__all__ = ["InternalMatch", "SubgraphMatcher"]


@compatibility(is_backward_compatible=False)
@dataclass
class InternalMatch:
    """A place where a graph contains a pattern.

    Args:
        anchors: nodes of the pattern that the search began at.
        nodes_map: node or value in the graph of each node of the pattern. Default: empty
        placeholder_nodes: what stands in the graph for the pattern's inputs, in order. Default: empty
        returning_nodes: nodes of the graph that stand for the pattern's results, in order. Default: empty
        name_node_map: nodes of the graph that the pattern has given names. Default: empty

    Examples:
        >>> graph = torch.fx.symbolic_trace(lambda x: torch.relu(x)).graph
        >>> torch.fx.passes.utils.matcher_utils.SubgraphMatcher(graph).match(graph)[0].returning_nodes
        [relu]
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(self.anchors, dict(self.nodes_map), list(self.placeholder_nodes), list(self.returning_nodes))


@compatibility(is_backward_compatible=False)
class SubgraphMatcher:
    """Finds the places where graphs contain a pattern.

    Args:
        pattern: graph to find. Its inputs stand for anything.
        match_output: whether its result must be the result of the graph. Default: `False`
        match_placeholder: whether its inputs stand for inputs of the graph only. Default: `False`
        remove_overlapping_matches: whether a place is left out that shares nodes with one found before. Default:
            `True`
        ignore_literals: whether numbers and other constants may differ. Default: `False`

    Examples:
        >>> SubgraphMatcher = torch.fx.passes.utils.matcher_utils.SubgraphMatcher
        >>> pattern = torch.fx.symbolic_trace(lambda x: torch.relu(x + 1)).graph
        >>> graph = torch.fx.symbolic_trace(lambda x: torch.relu(torch.relu(x + 1) + 1)).graph
        >>> len(SubgraphMatcher(pattern).match(graph))
        2
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern, self.match_output, self.match_placeholder = pattern, match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if not len(pattern.nodes):
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if not node.users and not node.is_impure():
                raise AssertionError("SubgraphMatcher cannot be initialized with a pattern with dead code")
        self.pattern_placeholder_nodes = [node for node in pattern.nodes if node.op == "placeholder"]
        output = pattern.output_node()
        self.pattern_returning_nodes = output.all_input_nodes
        ends = [node for node in output.all_input_nodes if len(node.users) == 1]
        self.pattern_anchors = [output] if match_output else ends

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return the places where a graph contains the pattern.

        Args:
            graph: graph to search.
            node_name_match: a node of the graph whose name contains this stands for any node of the pattern.
        """
        choices = []
        for anchor in self.pattern_anchors:
            found = [node for node in graph.nodes if self._nodes_are_equal(anchor, node, node_name_match)]
            if found:
                choices.append((anchor, found))
        matches: list[InternalMatch] = []

        def search(depth: int, match: InternalMatch) -> None:
            if depth == len(choices):
                match.placeholder_nodes = [match.nodes_map[node] for node in self.pattern_placeholder_nodes]
                match.returning_nodes = [match.nodes_map[node] for node in self.pattern_returning_nodes]
                matches.append(match)
                return
            anchor, candidates = choices[depth]
            for node in candidates:
                further = copy.copy(match)
                if self._match_nodes(anchor, node, further, node_name_match):
                    search(depth + 1, further)

        if choices:
            search(0, InternalMatch(anchors=self.pattern_anchors))
        whole = [match for match in matches if self._is_contained(match.nodes_map) and validate_partition(_inner(match))]
        return _without_overlaps(whole) if self.remove_overlapping_matches else whole

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        if pn.op == "placeholder" and not self.match_placeholder:
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op == "get_attr":
            return _same_kind_of_attribute(pn, gn)
        return pn.op in ("placeholder", "output") or pn.target == gn.target

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether nobody else uses what the pattern does not return."""
        lookup = {gn: pn for pn, gn in nodes_map.items() if pn.op != "placeholder"}
        inner = [gn for gn, pn in lookup.items() if pn not in self.pattern_returning_nodes]
        return all(user in lookup for gn in inner for user in gn.users)

    def _match_literals(self, pn: Any, gn: Any, match: InternalMatch) -> bool:
        if not isinstance(pn, Node):
            return type(gn) is type(pn) and bool(gn == pn)
        if pn.op != "placeholder":
            return False
        if pn in match.nodes_map:
            return bool(match.nodes_map[pn] == gn)
        match.nodes_map[pn] = gn
        return True

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str = "") -> bool:
        """Whether the graph contains, with this node, what the pattern has from this one on."""
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if any(gn is each for each in match.nodes_map.values()) or not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        of_pattern, of_graph = _arguments(pn), _arguments(gn)
        if len(pn.args) != len(gn.args) or list(pn.kwargs) != list(gn.kwargs):
            # One leaves out what the other gives: with defaults filled in they can be compared.
            whole = [_with_defaults(node) for node in (pn, gn)]
            if None in whole:
                return False
            of_pattern, of_graph = whole  # type: ignore[assignment]
        return self._match_arguments(of_pattern, of_graph, match)

    def _match_arguments(self, of_pattern: Any, of_graph: Any, match: InternalMatch) -> bool:
        if len(of_pattern) != len(of_graph):
            return False
        for a, b in zip(of_pattern, of_graph, strict=True):
            if isinstance(a, Node) and isinstance(b, Node):
                fits = self._match_nodes(a, b, match)
            elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
                fits = self._match_arguments(a, b, match)
            elif isinstance(b, Node):
                fits = self.ignore_literals
            else:
                fits = self._match_literals(a, b, match) or self.ignore_literals
            if not fits:
                return False
        return True


def _arguments(node: Node) -> tuple[Any, ...]:
    return (*node.args, *node.kwargs.values())


def _with_defaults(node: Node) -> tuple[Any, ...] | None:
    if node.op != "call_function" or library_path(node.target) is None:
        return None
    whole = normalize_function(node.target, node.args, node.kwargs, normalize_to_only_use_kwargs=True)
    return None if whole is None else tuple(whole.kwargs.values())


def _same_kind_of_attribute(pn: Node, gn: Node) -> bool:
    values = [_get_attr(node.graph.owning_module, str(node.target)) for node in (pn, gn)]
    if type(values[0]) is not type(values[1]):
        return False
    if not isinstance(values[0], Tensor):
        raise RuntimeError(f"Unsupported type {values[0]} when matching attributes")
    return True


def _inner(match: InternalMatch) -> list[Node]:
    """The nodes of the graph that the pattern computes."""
    return [gn for pn, gn in match.nodes_map.items() if pn.op not in ("placeholder", "output")]


def _without_overlaps(matches: list[InternalMatch]) -> list[InternalMatch]:
    kept, taken = [], set[Node]()
    for match in matches:
        nodes = _inner(match)
        if taken.isdisjoint(nodes):
            kept.append(match)
            taken.update(nodes)
    return kept
