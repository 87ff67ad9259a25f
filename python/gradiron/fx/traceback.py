"""What a pass that makes nodes notes of where they come from."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import wraps
from typing import Any

from ._compatibility import compatibility
from .node import Node

__all__ = [
    "NodeSource",
    "NodeSourceAction",
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_stack_trace",
]

# What new nodes are noted to come from, while notes are kept at all.
current_meta: dict[str, Any] = {}
should_preserve_node_meta = False

#: The entries of `meta` that a new node gets from the one that it is made of.
COPIED = (
    "nn_module_stack",
    "torch_fn",
    "source_fn_stack",
    "original_aten",
    "recompute",
    "ac_graph_id",
    "has_backward_hook",
    "from_node",
    "quantization_tag",
    "_numeric_debug_handle",
    "custom",
    "partitioner_tag",
)


@compatibility(is_backward_compatible=False)
class NodeSourceAction(Enum):
    """What a pass did to a node."""

    CREATE = "create"
    REPLACE = "replace"


@compatibility(is_backward_compatible=False)
class NodeSource:
    """The node that another was made of.

    Args:
        node: that node, or None.
        pass_name: name of the pass.
        action: what the pass did, one or several.

    Examples:
        >>> NodeSource = torch.fx.traceback.NodeSource
        >>> NodeSourceAction = torch.fx.traceback.NodeSourceAction
        >>> node = torch.fx.Graph().placeholder("x")
        >>> NodeSource(node, "fold", NodeSourceAction.CREATE).name
        'x'
    """

    def __init__(
        self, node: Node | None, pass_name: str = "", action: NodeSourceAction | list[NodeSourceAction] | None = None
    ) -> None:
        self.pass_name = pass_name
        self.action = action if isinstance(action, list) else [] if action is None else [action]
        self.name, self.target, self.graph_id = ("", "", -1) if node is None else (node.name, str(node.target), id(node.graph))
        self.from_node: list[NodeSource] = [] if node is None else list(node.meta.get("from_node", ()))

    def to_dict(self) -> dict[str, Any]:
        """Return what it notes as a dict."""
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": "+".join(action.name.lower() for action in self.action),
            "from_node": [source.to_dict() for source in self.from_node],
        }

    def print_readable(self, indent: int = 0) -> str:
        """Return it as text, with what the other node was made of below it.

        Args:
            indent: depth.
        """
        told = self.to_dict()
        line = f"(name={self.name}, pass_name={self.pass_name}, action={told['action']}, graph_id={self.graph_id})\n"
        return " " * 4 * indent + line + "".join(source.print_readable(indent + 1) for source in self.from_node)

    def __repr__(self) -> str:
        return self.print_readable()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.target, self.graph_id, self.pass_name, len(self.from_node)))


@compatibility(is_backward_compatible=False)
@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Have nodes that are made in a `with` block get the notes of those that they are made of.

    Args:
        enable: whether they do.
    """
    global should_preserve_node_meta, current_meta
    before = should_preserve_node_meta, current_meta.copy()
    try:
        should_preserve_node_meta = enable
        yield
    finally:
        should_preserve_node_meta, current_meta = before


@compatibility(is_backward_compatible=False)
def has_preserved_node_meta() -> bool:
    """Return whether nodes get the notes of those that they are made of."""
    return should_preserve_node_meta


@compatibility(is_backward_compatible=False)
def set_stack_trace(stack: list[str]) -> None:
    """Set the place in the program that new nodes are noted to come from.

    Args:
        stack: lines, outermost first.
    """
    if should_preserve_node_meta and stack:
        current_meta["stack_trace"] = "".join(stack)


@compatibility(is_backward_compatible=False)
def format_stack() -> list[str]:
    """Return the place in the program that new nodes are noted to come from, as lines."""
    if should_preserve_node_meta:
        return [current_meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@compatibility(is_backward_compatible=False)
@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Have nodes that are made in a `with` block be noted as made of another one, if notes are kept.

    Args:
        node: other node.
        pass_name: name of the pass.
    """
    global current_meta
    if not (should_preserve_node_meta and node.meta):
        yield
        return
    before = current_meta
    try:
        current_meta = node.meta.copy()
        current_meta["from_node"] = [NodeSource(node, pass_name, NodeSourceAction.CREATE)]
        yield
    finally:
        current_meta = before


@compatibility(is_backward_compatible=False)
def get_current_meta() -> dict[str, Any]:
    """Return the notes that new nodes get."""
    return current_meta


def copy_notes(node: Node) -> None:
    """Gives a new node the notes of the one that it is made of."""
    if current_meta.get("stack_trace"):
        node.stack_trace = current_meta["stack_trace"]
    for key in COPIED:
        if key in current_meta:
            node.meta[key] = copy.copy(current_meta[key])


@compatibility(is_backward_compatible=False)
@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Have nodes that are made in a `with` block under `preserve_node_meta` note something in `meta["custom"]`.

    Args:
        annotation_dict: what they note.
    """
    global current_meta
    before = current_meta
    try:
        current_meta = {**before, "custom": {**before.get("custom", {}), **annotation_dict}}
        yield
    finally:
        current_meta = before


@compatibility(is_backward_compatible=False)
def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function as if its body stood below `annotate`.

    Args:
        annotation_dict: what nodes note that are made in it.
    """

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(func)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return func(*args, **kwargs)

        return annotated

    return decorate
