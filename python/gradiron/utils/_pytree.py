"""Nested tuples, lists and dicts of values, taken apart and put together again; None and everything else is a leaf."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

MISSING = object()


class Tree:
    """The structure of nested containers, without what was in them."""

    __slots__ = ("children", "context", "kind")

    def __init__(self, kind: type | None, context: Any, children: list[Tree]) -> None:
        self.kind, self.context, self.children = kind, context, children

    @property
    def is_leaf(self) -> bool:
        return self.kind is None

    @property
    def count(self) -> int:
        return 1 if self.kind is None else sum(child.count for child in self.children)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tree)
            and (self.kind, self.context) == (other.kind, other.context)
            and self.children == other.children
        )

    __hash__ = None  # type: ignore[assignment]

    def text(self, indent: int = 0) -> str:
        if self.kind is None:
            return "*"
        indent += 2
        parts = (",\n" + " " * indent).join(child.text(indent) for child in self.children)
        return f"TreeSpec({self.kind.__name__}, {self.context}, [{parts}])"

    def __repr__(self) -> str:
        return self.text()

    def short(self) -> str:
        """The structure as Python writes containers, with stars for what is in them."""
        if self.kind is None:
            return "*"
        parts = [child.short() for child in self.children]
        if self.kind is list:
            return f"[{', '.join(parts)}]"
        if self.kind in (dict, OrderedDict):
            return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(self.context, parts, strict=True)) + "}"
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


LEAF = Tree(None, None, [])


def _parts(value: Any) -> tuple[type, Any, list[Any]] | None:
    kind = type(value)
    if kind is tuple or kind is list:
        return kind, None, list(value)
    if kind is dict or kind is OrderedDict:
        return kind, list(value), list(value.values())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind, None, list(value)
    return None


def flatten(value: Any) -> tuple[list[Any], Tree]:
    """The leaves in order, and the structure that they were in."""
    found = _parts(value)
    if found is None:
        return [value], LEAF
    kind, context, items = found
    leaves: list[Any] = []
    children = []
    for item in items:
        inner, tree = flatten(item)
        leaves += inner
        children.append(tree)
    return leaves, Tree(kind, context, children)


def unflatten(leaves: list[Any] | tuple[Any, ...], tree: Tree) -> Any:
    """The structure with these leaves."""
    left = iter(leaves)
    made = _build(left, tree)
    if next(left, MISSING) is not MISSING:
        raise ValueError(f"unflatten: more leaves than the {tree.count} places of {tree}")
    return made


def _build(left: Any, tree: Tree) -> Any:
    if tree.kind is None:
        return next(left)
    items = [_build(left, child) for child in tree.children]
    if tree.kind in (tuple, list):
        return tree.kind(items)
    if tree.kind in (dict, OrderedDict):
        return tree.kind(zip(tree.context, items, strict=True))
    return tree.kind(*items)


def map_leaves(function: Any, value: Any) -> Any:
    leaves, tree = flatten(value)
    return unflatten([function(leaf) for leaf in leaves], tree)


def spread(prefix: Any, tree: Tree) -> list[Any] | None:
    """The leaves of `prefix`, each for all the leaves of `tree` below it; None where the two do not fit."""
    found = _parts(prefix)
    if found is None:
        return [prefix] * tree.count
    kind, context, items = found
    if tree.kind is not kind or tree.context != context or len(items) != len(tree.children):
        return None
    out: list[Any] = []
    for item, child in zip(items, tree.children, strict=True):
        inner = spread(item, child)
        if inner is None:
            return None
        out += inner
    return out


# PyTorch's names of the same.

TreeSpec = Tree


def _flatten_until(value: Any, is_leaf: Callable[[Any], bool] | None) -> tuple[list[Any], Tree]:
    if is_leaf is None:
        return flatten(value)
    found = None if is_leaf(value) else _parts(value)
    if found is None:
        return [value], LEAF
    kind, context, items = found
    parts = [_flatten_until(item, is_leaf) for item in items]
    return [leaf for leaves, _ in parts for leaf in leaves], Tree(kind, context, [tree for _, tree in parts])


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Tree]:
    """The leaves in order, and the structure that they were in; `is_leaf` says what is not taken apart."""
    return _flatten_until(tree, is_leaf)


def tree_unflatten(leaves: Iterable[Any], treespec: Tree) -> Any:
    """The structure with these leaves."""
    leaves = list(leaves)
    if len(leaves) != treespec.count:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
            f"holds {treespec.count} items ({treespec})."
        )
    return unflatten(leaves, treespec)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves in order."""
    return _flatten_until(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Tree:
    """The structure without the leaves."""
    return _flatten_until(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The structure with what `func` makes of each leaf, and of those in the same place of the others."""
    leaves, spec = _flatten_until(tree, is_leaf)
    others = []
    for rest in rests:
        more = spread(rest, spec)
        if more is None or tree_structure(rest, is_leaf) != spec:
            raise ValueError(f"tree_map: a tree has another structure than the first, {spec}")
        others.append(more)
    return tree_unflatten([func(*each) for each in zip(leaves, *others, strict=True)], spec)


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The same for leaves of some types, or of which a function says yes; the others stay."""
    chosen = kind if callable(kind) and not isinstance(kind, type) else lambda leaf: isinstance(leaf, kind)
    return tree_map(lambda leaf: func(leaf) if chosen(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether it holds of every leaf."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether it holds of a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))
