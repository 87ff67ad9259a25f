"""Modules made quicker for inference."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from ... import nn
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node

__all__ = [
    "extract_subgraph",
    "fuse",
    "matches_module_pattern",
    "optimize_for_inference",
    "remove_dropout",
    "replace_node_module",
]

_NORMALIZED = {nn.Conv1d: nn.BatchNorm1d, nn.Conv2d: nn.BatchNorm2d, nn.Conv3d: nn.BatchNorm3d, nn.Linear: nn.BatchNorm1d}


def _parent_name(target: str) -> tuple[str, str]:
    above, _, name = target.rpartition(".")
    return above, name


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Any]) -> bool:
    """Return whether a node calls a module of the second class on what one of the first class returns.

    Args:
        pattern: two classes.
        node: node.
        modules: modules by path.

    Examples:
        >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
        >>> node = list(traced.graph.nodes)[2]
        >>> matches = torch.fx.experimental.optimization.matches_module_pattern
        >>> matches((torch.nn.Linear, torch.nn.ReLU), node, dict(traced.named_modules()))
        True
    """
    nodes = (node.args[0] if node.args else None, node)
    return all(
        isinstance(each, Node) and each.op == "call_module" and type(modules.get(each.target)) is kind
        for kind, each in zip(pattern, nodes, strict=True)
    )


def replace_node_module(node: Node, modules: dict[str, Any], new_module: nn.Module) -> None:
    """Have a node call another module.

    Args:
        node: node that calls a module.
        modules: modules by path, with the root as `""`.
        new_module: module to put there.

    Examples:
        >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
        >>> node = list(traced.graph.nodes)[1]
        >>> replace = torch.fx.experimental.optimization.replace_node_module
        >>> replace(node, dict(traced.named_modules()), torch.nn.Tanh())
        >>> traced(torch.zeros(1))
        tensor([0.])
    """
    above, name = _parent_name(str(node.target))
    modules[str(node.target)] = new_module
    setattr(modules[above], name, new_module)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> nn.Module:
    """Return a module in which convolutions and linear layers have taken in the batch normalizations after them.

    Args:
        model: module in evaluation mode.
        inplace: whether its own layers change. Default: `False`
        no_trace: whether a graph module is taken as it is rather than traced again. Default: `False`

    Examples:
        >>> fuse = torch.fx.experimental.optimization.fuse
        >>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), torch.nn.BatchNorm2d(4)).eval()
        >>> len(list(fuse(model).children()))
        1
    """
    model = model if inplace else copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules: dict[str, Any] = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for node in graph.nodes:
        for kind, norm in _NORMALIZED.items():
            if not matches_module_pattern((kind, norm), node, modules):
                continue
            before = node.args[0]
            layer, normalization = modules[before.target], modules[str(node.target)]
            if len(before.users) > 1 or not normalization.track_running_stats:
                continue
            fused = (fuse_linear_bn_eval if kind is nn.Linear else fuse_conv_bn_eval)(layer, normalization)
            replace_node_module(before, modules, fused)
            node.replace_all_uses_with(before)
            graph.erase_node(node)
            break
    return GraphModule(traced, graph)


class _DropoutRemover(Transformer):
    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(self.submodules[target], nn.Dropout):
            return args[0]
        return super().call_module(target, args, kwargs)


def remove_dropout(model: nn.Module) -> nn.Module:
    """Return a module without its dropout layers.

    Args:
        model: module.

    Examples:
        >>> remove_dropout = torch.fx.experimental.optimization.remove_dropout
        >>> remove_dropout(torch.nn.Sequential(torch.nn.Dropout(), torch.nn.ReLU()))(torch.ones(2))
        tensor([1., 1.])
    """
    return _DropoutRemover(symbolic_trace(model)).transform()


def extract_subgraph(orig_module: nn.Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]) -> GraphModule:
    """Return a module of some nodes of a graph.

    Args:
        orig_module: module that holds what they call.
        nodes: nodes, in order.
        inputs: nodes that become inputs.
        outputs: nodes that are returned, in a list.

    Examples:
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.neg(torch.relu(x)))
        >>> x, relu, neg, output = traced.graph.nodes
        >>> torch.fx.experimental.optimization.extract_subgraph(traced, [neg], [relu], [neg])(torch.ones(1))
        [tensor([-1.])]
    """
    graph = Graph()
    copies = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output([copies[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)


def optimize_for_inference(model: nn.Module, pass_config: dict[str, Any] | None = None, tracer: Any = None) -> nn.Module:
    """Return a module with normalizations fused and dropout removed.

    Args:
        model: module in evaluation mode.
        pass_config: `conv_bn_fuse` and `remove_dropout`, which are true by default. Others are ignored, as layouts of MKL-DNN
            are.
        tracer: ignored.

    Examples:
        >>> optimize_for_inference = torch.fx.experimental.optimization.optimize_for_inference
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout()).eval()
        >>> optimize_for_inference(model)(torch.ones(1, 2)).shape
        torch.Size([1, 3])
    """
    chosen = {"conv_bn_fuse": True, "remove_dropout": True, **(pass_config or {})}
    if chosen["conv_bn_fuse"]:
        model = fuse(model)
    return remove_dropout(model) if chosen["remove_dropout"] else model
