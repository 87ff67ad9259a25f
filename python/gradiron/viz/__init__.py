"""Drawings without dependencies: `viz.graph(y)` of the graph of a tensor, `viz.loss(values)` of a loss curve.

A notebook shows them as SVG, a terminal as text. `svg` and `png` write files, `dot` a Graphviz file of a graph.
"""

from .graph import Graph, graph
from .loss import Loss, loss

__all__ = ["Graph", "Loss", "graph", "loss"]
