"""What does not depend on the inputs, computed once."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from ..._core import Tensor
from ..._creation import tensor
from ...nn import Module, Parameter, ParameterList
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule, _get_attr
from ..node import Node, map_arg
from ..passes.split_module import split_module

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A graph module that computes its constant part before the first call.

    Args:
        root: module that holds its attributes.
        graph: graph that is left.
        const_subgraph: graph of the constant part, or None.
        fx_const_folded_attrs_name: attribute that holds what it computes.
        device_for_folded_attrs: device of numbers among that. Default: `"cuda"`

    Examples:
        >>> traced = torch.fx.symbolic_trace(torch.nn.ReLU())
        >>> torch.fx.experimental.const_fold.FoldedGraphModule(traced, traced.graph)(torch.ones(1))
        tensor([1.])
    """

    def __init__(
        self,
        root: Module,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name, self.device_for_folded_attrs = fx_const_folded_attrs_name, device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Compute the constant part."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        folded = self.const_subgraph_module()
        made = ParameterList(map(self._parameter, folded)) if isinstance(folded, tuple) else self._parameter(folded)
        setattr(self, self.fx_const_folded_attrs_name, made)

    def _parameter(self, value: Any) -> Parameter:
        if isinstance(value, Tensor):
            return Parameter(value.detach().clone(), requires_grad=value.requires_grad)
        return Parameter(tensor([float(value)], device=self.device_for_folded_attrs), requires_grad=False)


def _inline_module(gm: GraphModule, inline_mod_name: str, run_dce: bool = True, is_impure_node: Any = None) -> dict[Node, Any]:
    """Puts the nodes of a module in place of the node that calls it."""
    inner = gm.get_submodule(inline_mod_name)
    if not isinstance(inner, GraphModule):
        raise AssertionError(f"Expected GraphModule, got {type(inner)}")
    call = next((node for node in gm.graph.find_nodes(op="call_module", target=inline_mod_name)), None)
    if call is None:
        raise AssertionError(f"Could not find call_module node for {inline_mod_name}")
    copies: dict[Node, Any] = {}
    given = iter(call.args)
    for node in inner.graph.nodes:
        if node.op == "placeholder":
            copies[node] = call.kwargs[node.name] if node.name in call.kwargs else next(given)
            if isinstance(copies[node], Node):
                copies[node].meta = node.meta.copy()
        elif node.op == "output":
            result = map_arg(node.args[0], copies.__getitem__)
            _use_instead(gm.graph, call, result)
        else:
            with gm.graph.inserting_before(call):
                copies[node] = gm.graph.node_copy(node, copies.__getitem__)
    gm.graph.erase_node(call)
    if run_dce:
        gm.graph.eliminate_dead_code(is_impure_node)
    return copies


def _use_instead(graph: Graph, call: Node, result: Any) -> None:
    """Has the users of a call use its result, and those that take one element of it that element."""
    for user in list(call.users):
        if isinstance(result, (tuple, list)) and user.target is operator.getitem and isinstance(user.args[1], int):
            user.replace_all_uses_with(result[user.args[1]])
            graph.erase_node(user)
        else:
            swap = lambda node: result if node is call else node
            user.args, user.kwargs = map_arg(user.args, swap), map_arg(user.kwargs, swap)


def get_unique_attr_name_in_module(mod_traced: GraphModule, name: str) -> str:
    """Return the name of an attribute that a module does not have.

    Args:
        mod_traced: module.
        name: wish.

    Examples:
        >>> model = torch.nn.Linear(2, 3)
        >>> torch.fx.experimental.const_fold.get_unique_attr_name_in_module(model, "weight")
        'weight_1'
    """
    name = re.sub(r"[^0-9a-zA-Z_]+", "_", name)
    name = f"_{name}" if name[0].isdigit() else name
    while hasattr(mod_traced, name):
        found = re.fullmatch(r"(.*)_(\d+)", name)
        name = f"{name}_1" if found is None else f"{found[1]}_{int(found[2]) + 1}"
    return name


def _inner_nodes(module: GraphModule) -> list[Node]:
    """The calls in a module and in the graph modules that it calls."""
    found = []
    for node in module.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        found.append(node)
        inner = module.get_submodule(str(node.target)) if node.op == "call_module" else None
        if isinstance(inner, GraphModule):
            found += _inner_nodes(inner)
    return found


def _constant_nodes(module: GraphModule, skip: Callable[[Node], bool] | None) -> set[Node]:
    """The nodes that depend on no input."""
    found: set[Node] = set()
    for node in module.graph.nodes:
        if node.op in ("placeholder", "output") or node.is_impure() or (skip is not None and skip(node)):
            continue
        if node.op == "get_attr":
            if not isinstance(_get_attr(module, str(node.target)), Module):
                found.add(node)
            continue
        inner = module.get_submodule(str(node.target)) if node.op == "call_module" else None
        calls = _inner_nodes(inner) if isinstance(inner, GraphModule) else []
        stays = any((each.op == "call_function" and each.is_impure()) or (skip is not None and skip(each)) for each in calls)
        if not stays and found.issuperset(node.all_input_nodes):
            found.add(node)
    return found


def split_const_subgraphs(
    module: Module | GraphModule,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
    is_impure_node: Callable[[Node], bool] | None = None,
) -> FoldedGraphModule:
    """Return a module that computes what does not depend on its inputs once, before its first call.

    Args:
        module: module.
        skip_folding_node_fn: function of a node that returns whether it is computed in every call all the same.
        device_for_folded_attrs: device of numbers that are computed once. Default: `"cpu"`
        is_impure_node: function of a node that returns whether it stays though nobody uses it.

    Examples:
        >>> split_const_subgraphs = torch.fx.experimental.const_fold.split_const_subgraphs
        >>> class Model(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.w = torch.nn.Parameter(torch.ones(2))
        ...     def forward(self, x):
        ...         return x + torch.exp(self.w - 1)
        >>> folded = split_const_subgraphs(Model())
        >>> folded(torch.ones(2)), len(folded.graph.nodes)
        (tensor([2., 2.], grad_fn=<AddBackward0>), 4)
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constant_nodes(traced, skip_folding_node_fn)
    if all(node.op == "get_attr" for node in constant):
        return FoldedGraphModule(traced, traced.graph)
    split = split_module(traced, module, lambda node: 0 if node in constant else 1)
    once: Any = split.submod_0
    rest = getattr(split, "submod_1", None)
    for part in (once, rest):
        for node in part.graph.find_nodes(op="call_module") if part is not None else ():
            setattr(split, str(node.target), getattr(part, str(node.target)))
    call = split.graph.find_nodes(op="call_module", target="submod_0")[0]
    first = GraphModule(split, once.graph)
    _read_inputs(first.graph, call.args)
    several = isinstance(first.graph.output_node().args[0], tuple)
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    setattr(split, name, ParameterList() if several else Parameter(tensor([])))
    with split.graph.inserting_before(call):
        folded = split.graph.get_attr(name)
    folded.meta = call.meta.copy()
    call.replace_all_uses_with(folded)
    if rest is not None:
        _inline_module(split, "submod_1", is_impure_node=is_impure_node)
    split.graph.eliminate_dead_code(is_impure_node)
    return FoldedGraphModule(split, split.graph, first.graph, name, device_for_folded_attrs)


def _read_inputs(graph: Graph, given: Any) -> None:
    """Has a graph read the attributes that it is given as inputs."""
    for node, attribute in zip(graph.find_nodes(op="placeholder"), given, strict=False):
        if attribute.op != "get_attr":
            raise AssertionError(f"Expected get_attr, got {attribute.op}")
        with graph.inserting_before(node):
            made = graph.create_node("get_attr", str(attribute.target))
        made.meta = node.meta.copy()
        node.replace_all_uses_with(made)
        graph.erase_node(node)
