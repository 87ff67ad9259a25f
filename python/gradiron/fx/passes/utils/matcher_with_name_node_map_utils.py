"""Finds patterns that give some of their nodes names."""

from __future__ import annotations

from ....utils import _pytree as pytree
from ..._compatibility import compatibility
from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from .matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm: GraphModule) -> tuple[GraphModule, dict[str, Node]]:
    """Takes the dict of names, the last that a pattern returns, from its result."""
    output = gm.graph.output_node()
    spec = getattr(gm, "_out_spec", None)
    result = output.args[0] if spec is None else pytree.tree_unflatten(output.args[0], spec)
    if not isinstance(result, tuple):
        raise AssertionError("Expecting the pattern graph to return a tuple")
    if len(result) < 2:
        raise AssertionError("Expecting the pattern graph to have at least two outputs")
    *rest, names = result
    if not isinstance(names, dict):
        raise AssertionError("Expecting the input graph to have a dict output as the last element")
    leaves, out_spec = pytree.tree_flatten(rest)
    output.args = (leaves,)
    if spec is not None:
        codegen = gm.graph._codegen
        codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)  # type: ignore[attr-defined]
    gm.recompile()
    return gm, names


@compatibility(is_backward_compatible=False)
class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """Finds the places where graphs contain a pattern, with the nodes there that it has given names.

    Args:
        pattern_gm: pattern, which returns a dict of nodes by name last.
        match_output, match_placeholder, remove_overlapping_matches, ignore_literals: as in `SubgraphMatcher`. Default: as there

    Examples:
        >>> room = torch.fx.passes.utils.matcher_with_name_node_map_utils
        >>> def pattern(x):
        ...     y = torch.relu(x)
        ...     return y, {"relu": y}
        >>> matcher = room.SubgraphMatcherWithNameNodeMap(torch.fx.symbolic_trace(pattern))
        >>> matcher.match(torch.fx.symbolic_trace(lambda x: torch.relu(x + 1)).graph)[0].name_node_map
        {'relu': relu}
    """

    def __init__(
        self,
        pattern_gm: GraphModule,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(pattern_gm.graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return the places where a graph contains the pattern.

        Args:
            graph: graph to search.
            node_name_match: as in `SubgraphMatcher`.
        """
        matches = super().match(graph, node_name_match)
        for match in matches:
            match.name_node_map.update((name, match.nodes_map[node]) for name, node in self.name_node_map.items())
        return matches
