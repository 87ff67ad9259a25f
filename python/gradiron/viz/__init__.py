"""Pictures, with nothing to install: `viz.graph(y)` draws how `y` came about, `viz.loss(values)` how a loss fell.

A notebook shows them as SVG, a terminal as text; `.svg` and `.png` write them to a file, `.dot` a graph.
"""

from .graph import Graph, graph
from .loss import Loss, loss

__all__ = ["Graph", "Loss", "graph", "loss"]
