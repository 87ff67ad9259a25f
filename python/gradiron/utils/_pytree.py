"""Nested tuples, lists and dicts of values, taken apart and put together again; None and everything else is a leaf."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

MISSING = object()


class Tree:
    """The structure of nested containers, without what was in them."""

    __slots__ = ("children", "context", "count", "kind")

    def __init__(self, kind: type | None, context: Any, children: list[Tree]) -> None:
        self.kind, self.context, self.children = kind, context, children
        self.count: int = 1 if kind is None else sum([child.count for child in children])

    @property
    def is_leaf(self) -> bool:
        return self.kind is None

    def __eq__(self, other: object) -> bool:
        pairs: list[tuple[object, object]] = [(self, other)]
        while pairs:
            a, b = pairs.pop()
            if not (isinstance(a, Tree) and isinstance(b, Tree) and (a.kind, a.context) == (b.kind, b.context)):
                return False
            if len(a.children) != len(b.children):
                return False
            pairs += zip(a.children, b.children, strict=True)
        return True

    __hash__ = None  # type: ignore[assignment]

    def text(self, indent: int = 0) -> str:
        if self.kind is None:
            return "*"
        indent += 2
        parts = (",\n" + " " * indent).join([child.text(indent) for child in self.children])
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


class LeafSpec(Tree):
    """The structure of what is taken apart no further."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


LEAF: Tree = LeafSpec()


class NodeDef(NamedTuple):
    """How one kind of container is taken apart, into its items and what else it is, and put together again."""

    type: Any
    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], Any] | None = None


def _defaults(items: Iterable[Any], context: Any) -> Any:
    factory, keys = context
    return defaultdict(factory, zip(keys, items, strict=True))


def _dict_flatten(value: Any) -> tuple[list[Any], list[Any]]:
    return list(value.values()), list(value)


def _dict_unflatten(items: Iterable[Any], keys: list[Any]) -> dict[Any, Any]:
    return dict(zip(keys, items, strict=True))


_NODES = (
    NodeDef(tuple, lambda value: (list(value), None), lambda items, _: tuple(items)),
    NodeDef(list, lambda value: (list(value), None), lambda items, _: list(items)),
    NodeDef(dict, _dict_flatten, _dict_unflatten),
    NodeDef(OrderedDict, _dict_flatten, lambda items, keys: OrderedDict(zip(keys, items, strict=True))),
    NodeDef(defaultdict, lambda value: (list(value.values()), [value.default_factory, list(value)]), _defaults),
    NodeDef(deque, lambda value: (list(value), value.maxlen), lambda items, length: deque(items, maxlen=length)),
    NodeDef(namedtuple, lambda value: (list(value), type(value)), lambda items, kind: kind(*items)),
)
#: All kinds of containers, with those that programs have registered.
SUPPORTED_NODES: dict[Any, NodeDef] = {node.type: node for node in _NODES}


def _get_node_type(value: Any) -> Any:
    """What a value's kind is registered as: all named tuples are one kind."""
    kind = type(value)
    return namedtuple if kind not in SUPPORTED_NODES and isinstance(value, tuple) and hasattr(value, "_fields") else kind


def _parts(value: Any) -> tuple[Any, Any, list[Any]] | None:
    kind = type(value)
    if kind is tuple or kind is list:
        return kind, None, list(value)
    node = SUPPORTED_NODES.get(kind) or SUPPORTED_NODES.get(_get_node_type(value))
    if node is None:
        return None
    items, context = node.flatten_fn(value)
    return node.type, context, list(items)


def flatten(value: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Tree]:
    """The leaves in order, and the structure that they were in; `is_leaf` says what is not taken apart."""
    leaves: list[Any] = []
    return leaves, _taken_apart(value, leaves, is_leaf)


def _taken_apart(value: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> Tree:
    found = None if is_leaf is not None and is_leaf(value) else _parts(value)
    if found is None:
        leaves.append(value)
        return LEAF
    kind, context, items = found
    return Tree(kind, context, [_taken_apart(item, leaves, is_leaf) for item in items])


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
    return SUPPORTED_NODES[tree.kind].unflatten_fn(items, tree.context)


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
PyTree: TypeAlias = Any


class MappingKey(NamedTuple):
    """Where in a dict."""

    key: Any


def _dict_flatten_with_keys(value: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], list[Any]]:
    return [(MappingKey(key), item) for key, item in value.items()], list(value)


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list[Any], Any]],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Callable[[Any], Any] | None = None,
) -> None:
    """From now on, objects of this class are containers: of the items that `flatten_fn` gives beside what else they are."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


_register_pytree_node = register_pytree_node


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether it is taken apart no further."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


tree_flatten = flatten


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
    return flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Tree:
    """The structure without the leaves."""
    return flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The structure with what `func` makes of each leaf, and of those in the same place of the others."""
    leaves, spec = flatten(tree, is_leaf)
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
