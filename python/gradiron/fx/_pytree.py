"""Nested values taken apart by a structure that is known: what generated code calls."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from ..utils._pytree import TreeSpec, tree_flatten

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]

#: How values of some kinds give their items for a structure.
SUPPORTED_NODES: dict[Any, Callable[[Any, TreeSpec], list[Any]]] = {}
#: Whether a value has just the items of a structure.
SUPPORTED_NODES_EXACT_MATCH: dict[Any, Callable[[Any, TreeSpec], bool] | None] = {}


def register_pytree_flatten_spec(
    cls: Any,
    flatten_fn_spec: Callable[[Any, TreeSpec], list[Any]],
    flatten_fn_exact_match_spec: Callable[[Any, TreeSpec], bool] | None = None,
) -> None:
    """Register how a container gives its items for a structure.

    Args:
        cls: class of the container.
        flatten_fn_spec: function of a container and a structure that returns the items.
        flatten_fn_exact_match_spec: function of both that returns whether it has just these items.
    """
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """Return the leaves of a nested value.

    Args:
        pytree: nested value.
        spec: its structure. A sequence may have more items, and a dict more keys; they are left out.

    Examples:
        >>> tree_flatten_spec = torch.fx._pytree.tree_flatten_spec
        >>> tree_structure = torch.utils._pytree.tree_structure
        >>> tree_flatten_spec([1, (2, 3)], tree_structure([0, (0, 0)]))
        [1, 2, 3]
    """
    if spec.is_leaf():
        return [pytree]
    items = SUPPORTED_NODES.get(spec.type)
    if items is None:
        leaves, found = tree_flatten(pytree)
        if found != spec:
            raise RuntimeError(f"Real spec {found} of object {pytree} is different from expected spec {spec}.")
        return leaves
    pairs = zip(items(pytree, spec), spec.children(), strict=True)
    return [leaf for item, child in pairs for leaf in tree_flatten_spec(item, child)]


def _items(value: Any, spec: TreeSpec) -> list[Any]:
    return [value[number] for number in range(spec.num_children)]


def _has_just_these(value: Any, spec: TreeSpec) -> bool:
    return len(value) == spec.num_children


register_pytree_flatten_spec(dict, lambda value, spec: [value[key] for key in spec.context], _has_just_these)
for _kind in (list, tuple, namedtuple):
    register_pytree_flatten_spec(_kind, _items, _has_just_these)
