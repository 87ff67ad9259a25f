"""The attributes that calls of modules stand for."""

from __future__ import annotations

from typing import Any

from ...nn import Module
from .._compatibility import compatibility
from ..graph_module import GraphModule, _get_attr

__all__ = ["lift_lowering_attrs_to_nodes"]


@compatibility(is_backward_compatible=False)
def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Note the attributes of modules at the nodes that call them, as `attrs_for_lowering`.

    Args:
        fx_module: module.
    """
    submodules = dict(fx_module.named_modules())
    for node in fx_module.graph.nodes:
        if node.op != "call_module":
            continue
        module = submodules[str(node.target)]
        if isinstance(module, GraphModule):
            lift_lowering_attrs_to_nodes(module)
        else:
            node.attrs_for_lowering = _attributes(module)


def _attributes(module: Module) -> dict[str, Any]:
    named = {"name": f"{type(module).__module__}.{type(module).__qualname__}"}
    return {**named, **{name: _get_attr(module, name) for name in getattr(module, "__constants__", ())}}
