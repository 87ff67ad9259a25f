"""Pictures of graphs."""

from __future__ import annotations

from typing import Any

from ..._as_torch.refused import refuse
from .._compatibility import compatibility

__all__ = ["FxGraphDrawer"]


@compatibility(is_backward_compatible=False)
class FxGraphDrawer:
    """Would draw a graph by pydot. It raises NotImplementedError: print the graph by `print_tabular` or `print_readable`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        refuse("fx.passes.graph_drawer.FxGraphDrawer", "print a graph by graph.print_tabular() or module.print_readable()")
