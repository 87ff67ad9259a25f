"""Calls that are made twice with the same arguments, made once."""

from __future__ import annotations

from typing import Any

import gradiron

from ..... import _core
from ...._compatibility import compatibility
from ....graph import Graph
from ....graph_module import GraphModule
from ....node import Node
from ....operator_schemas import normalize_function
from ...infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]


@compatibility(is_backward_compatible=False)
def get_CSE_banned_ops() -> set[Any]:
    """Return operators whose calls differ although their arguments are the same: random ones, and those that write.

    Examples:
        >>> torch.ops.aten.rand in torch.fx.passes.dialect.common.cse_pass.get_CSE_banned_ops()
        True
    """
    rows = _core.rows()
    random = {
        row["name"] for row in rows if row["sample"] == "random" or any(param[0] == "generator" for param in row["params"])
    }
    writing = {f"{row['name']}_" for row in rows if row["inplace"]}
    return {getattr(gradiron.ops.aten, name) for name in random | writing}


@compatibility(is_backward_compatible=False)
class CSEPass(PassBase):
    """Has calls that are made twice with the same arguments made once.

    Args:
        banned_ops: functions whose calls stay; default: none.

    Examples:
        >>> CSEPass = torch.fx.passes.dialect.common.cse_pass.CSEPass
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + torch.relu(x))
        >>> len(traced.graph.nodes), len(CSEPass()(traced).graph_module.graph.nodes)
        (5, 4)
    """

    def __init__(self, banned_ops: set[Any] | None = None) -> None:
        self.banned_ops = banned_ops or set()

    def call(self, graph_module: GraphModule) -> PassResult:
        """Return a module whose graph makes each call once.

        Args:
            graph_module: module.
        """
        made = Graph()
        copies: dict[Node, Node] = {}
        known: dict[Any, Node] = {}
        for node in graph_module.graph.nodes:
            if node.op in ("placeholder", "output", "get_attr") or self._is_banned(node):
                copies[node] = made.node_copy(node, copies.__getitem__)
                continue
            whole = normalize_function(node.target, node.args, node.kwargs) if node.op == "call_function" else None
            args, kwargs = (node.args, node.kwargs) if whole is None else whole
            key = (node.op, node.target, _key(args, copies), _key(kwargs, copies))
            if key not in known:
                known[key] = made.node_copy(node, copies.__getitem__)
            copies[node] = known[key]
        if len(made.nodes) == len(graph_module.graph.nodes):
            return PassResult(graph_module, False)
        return PassResult(GraphModule(graph_module, made), True)

    def _is_banned(self, node: Node) -> bool:
        target: Any = node.target
        name = getattr(target, "__name__", target)
        targets = (
            getattr(target, "overloadpacket", target),
            getattr(gradiron.ops.aten, name, None),
            getattr(gradiron, name, None),
        )
        return any(each in self.banned_ops for each in targets if each is not None)


def _key(value: Any, copies: dict[Node, Node]) -> Any:
    """A value by which arguments are compared: `1` and `1.0` differ, and containers are known by what is in them."""
    if isinstance(value, Node):
        return copies[value]
    if isinstance(value, (tuple, list)):
        return (type(value), *(_key(item, copies) for item in value))
    if isinstance(value, dict):
        return (dict, *((key, _key(item, copies)) for key, item in value.items()))
    if isinstance(value, slice):
        return (slice, _key((value.start, value.stop, value.step), copies))
    return (type(value), value)
