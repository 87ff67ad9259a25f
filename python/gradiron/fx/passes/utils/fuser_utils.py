"""Whether nodes can become one."""

from __future__ import annotations

from ..._compatibility import compatibility
from ...node import Node

__all__ = ["validate_partition"]


@compatibility(is_backward_compatible=False)
def validate_partition(partition: list[Node]) -> bool:
    """Return whether nodes can become one node: no way leads out of them and into them again.

    Args:
        partition: nodes.

    Examples:
        >>> validate_partition = torch.fx.passes.utils.fuser_utils.validate_partition
        >>> nodes = list(torch.fx.symbolic_trace(lambda x: torch.relu(torch.neg(torch.relu(x)))).graph.nodes)
        >>> validate_partition(nodes[1:3]), validate_partition([nodes[1], nodes[3]])
        (True, False)
    """
    inside = set(partition)
    ahead = [user for node in partition for user in node.users if user not in inside]
    seen = set(ahead)
    while ahead:
        for user in ahead.pop().users:
            if user in inside:
                return False
            if user not in seen:
                seen.add(user)
                ahead.append(user)
    return True
