"""The graph as objects: nodes, and the edges that gradients flow along."""

from __future__ import annotations

from typing import NamedTuple

from .. import _core
from .._core import Node, Tensor, increment_version

__all__ = ["GradientEdge", "Node", "get_gradient_edge", "increment_version"]


class GradientEdge(NamedTuple):
    """A place in the graph: output `output_nr` of `node`."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where the gradient of `tensor` is computed, or accumulated for a leaf."""
    return GradientEdge(*_core.gradient_edge(tensor))
