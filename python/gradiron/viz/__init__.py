"""Pictures of a computation, with nothing to install: `viz.graph(y)` draws how `y` came about.

A notebook shows the graph as SVG, a terminal as a tree; `.svg`, `.png` and `.dot` write it to a file.
"""

from .graph import Graph, graph

__all__ = ["Graph", "graph"]
