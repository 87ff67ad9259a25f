"""The form of a pass."""

from __future__ import annotations

import abc
from typing import NamedTuple

from ....nn import Module
from ..._compatibility import compatibility
from ...graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


@compatibility(is_backward_compatible=False)
class PassResult(NamedTuple):
    """The result of a pass.

    Args:
        graph_module: module.
        modified: whether it was changed.

    Examples:
        >>> torch.fx.passes.infra.pass_base.PassResult(torch.fx.symbolic_trace(torch.nn.ReLU()), False).modified
        False
    """

    graph_module: Module
    modified: bool


@compatibility(is_backward_compatible=False)
class PassBase(abc.ABC):
    """A pass over a graph module. A subclass defines `call`, and checks of what goes in and comes out.

    Examples:
        >>> PassBase = torch.fx.passes.infra.pass_base.PassBase
        >>> PassResult = torch.fx.passes.infra.pass_base.PassResult
        >>> class Clean(PassBase):
        ...     def call(self, graph_module):
        ...         return PassResult(graph_module, graph_module.graph.eliminate_dead_code())
        >>> Clean()(torch.fx.symbolic_trace(lambda x: (x + 1, x)[1])).modified
        True
    """

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Carry the pass out.

        Args:
            graph_module: module.
        """

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raise an error if a module does not fit the pass.

        Args:
            graph_module: module that goes in.
        """

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raise an error if a module is not what the pass promises.

        Args:
            graph_module: module after the pass.
        """
