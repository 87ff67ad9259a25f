"""Type annotations on values of a trace."""

from __future__ import annotations

from typing import Any

from ._compatibility import compatibility
from .proxy import Proxy

__all__ = ["annotate"]


@compatibility(is_backward_compatible=False)
def annotate(val: Any, type: Any) -> Any:
    """Give the node of a proxy a type annotation, and return the proxy; other values are returned as they are.

    Args:
        val: value.
        type: annotation.

    Examples:
        >>> annotate = torch.fx.annotate.annotate
        >>> annotate(3, int)
        3
    """
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(
                f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type} and new type is "
                f"{type}. This could happen if you tried to annotate a function parameter value (in which case you should use "
                "the type slot on the function signature) or you called annotate on the same value twice"
            )
        val.node.type = type
    return val
