"""Nested tuples, lists and dicts of values, taken apart and put together again; None and everything else is a leaf."""

from __future__ import annotations

import builtins
import dataclasses
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import UnionType
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

MISSING = object()

PyTree: TypeAlias = Any
Context: TypeAlias = Any
FlattenFn: TypeAlias = Callable[[Any], tuple[list[Any], Any]]
UnflattenFn: TypeAlias = Callable[[Iterable[Any], Any], Any]
IsLeaf: TypeAlias = Callable[[Any], bool] | None
_T = TypeVar("_T")


class TreeSpec:
    """The structure of nested containers, without what was in them.

    Attributes:
        type: kind of container; None for a leaf.
        context: what the container is besides its items, as the keys of a dict.
        num_nodes, num_leaves, num_children: containers and leaves in it, leaves alone, and items of the container itself.
    """

    __slots__ = ("_children", "_context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type, self._context, self._children = type, context, children_specs
        self.num_children = len(children_specs)
        if type is None:
            self.num_nodes = self.num_leaves = 1
        else:
            self.num_nodes = 1 + sum([child.num_nodes for child in children_specs])
            self.num_leaves = sum([child.num_leaves for child in children_specs])

    @property
    def context(self) -> Any:
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        """Structures of the items: the older name of `children()`."""
        warnings.warn(
            "`treespec.children_specs` is deprecated. Use `treespec.child(index)` to access a single child, or "
            "`treespec.children()` to get all children.",
            FutureWarning,
            stacklevel=2,
        )
        return self._children

    def is_leaf(self) -> bool:
        """Whether it is taken apart no further."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """Structures of the items."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """Structure of one item."""
        return self._children[index]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The structure with these leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds "
                f"{self.num_leaves} items ({self})."
            )
        return _build(iter(leaves), self)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """What stands in another tree where this one has leaves: a subtree is one there."""
        found: list[Any] = []
        _take_up_to(self, tree, found)
        return found

    def __eq__(self, other: object) -> bool:
        pairs: list[tuple[object, object]] = [(self, other)]
        while pairs:
            a, b = pairs.pop()
            if not (isinstance(a, TreeSpec) and isinstance(b, TreeSpec) and a.type is b.type and a._context == b._context):
                return False
            if a.num_children != b.num_children:
                return False
            pairs += zip(a._children, b._children, strict=True)
        return True

    def __hash__(self) -> int:
        context = self._context
        if self.type is defaultdict:
            context = (context[0], tuple(context[1]))
        elif self.type in (dict, OrderedDict):
            context = tuple(context)
        elif self.type is not None and self.type not in BUILTIN_TYPES:
            context = None
        return hash((self.type, context, tuple(self._children)))

    def _text(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        indent += 2
        parts = (",\n" + " " * indent).join([child._text(indent) for child in self._children])
        return f"TreeSpec({self.type.__name__}, {self._context}, [{parts}])"

    def __repr__(self) -> str:
        return self._text()

    def short(self) -> str:
        """The structure as Python writes containers, with stars for what is in them."""
        if self.type is None:
            return "*"
        parts = [child.short() for child in self._children]
        if self.type is list:
            return f"[{', '.join(parts)}]"
        if self.type in (dict, OrderedDict):
            return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(self._context, parts, strict=True)) + "}"
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


class LeafSpec(TreeSpec):
    """The structure of what is taken apart no further."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])

    def __reduce__(self) -> Any:
        return treespec_leaf, ()


PyTreeSpec: TypeAlias = TreeSpec
LEAF: TreeSpec = LeafSpec()


def treespec_leaf() -> TreeSpec:
    """The structure of a leaf."""
    return LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The structure of a tuple of structures."""
    children = list(iterable)
    if not all(isinstance(child, TreeSpec) for child in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The structure of a dict of structures."""
    children = dict(mapping, **kwargs)
    if not all(isinstance(child, TreeSpec) for child in children.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {children!r}.")
    return TreeSpec(dict, list(children), list(children.values()))


# The way to a leaf: a key for each container.


@dataclasses.dataclass(frozen=True, slots=True)
class SequenceKey(Generic[_T]):
    """A place in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The item that stands there."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True, slots=True)
class MappingKey(Generic[_T]):
    """A place in a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The item that stands there."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True, slots=True)
class GetAttrKey:
    """An attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The value of it."""
        return getattr(obj, self.name)


KeyPath: TypeAlias = tuple[Any, ...]


def keystr(kp: KeyPath) -> str:
    """The way to a leaf as Python writes it."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What stands at the end of a way."""
    for key in kp:
        obj = key.get(obj)
    return obj


# Kinds of containers.


class NodeDef(NamedTuple):
    """How one kind of container is taken apart, into its items and what else it is, and put together again."""

    type: Any
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: Callable[[Any], Any] | None = None


def _with_indices(flatten_fn: FlattenFn) -> Callable[[Any], Any]:
    def with_keys(value: Any) -> Any:
        items, context = flatten_fn(value)
        return [(SequenceKey(number), item) for number, item in enumerate(items)], context

    return with_keys


def _with_dict_keys(flatten_fn: FlattenFn) -> Callable[[Any], Any]:
    def with_keys(value: Any) -> Any:
        return [(MappingKey(key), item) for key, item in value.items()], flatten_fn(value)[1]

    return with_keys


def _tuple_flatten(value: tuple[Any, ...]) -> tuple[list[Any], None]:
    return list(value), None


def _tuple_unflatten(items: Iterable[Any], context: None) -> tuple[Any, ...]:
    return tuple(items)


def _list_flatten(value: list[Any]) -> tuple[list[Any], None]:
    return list(value), None


def _list_unflatten(items: Iterable[Any], context: None) -> list[Any]:
    return list(items)


def _dict_flatten(value: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    return list(value.values()), list(value)


def _dict_unflatten(items: Iterable[Any], keys: list[Any]) -> dict[Any, Any]:
    return dict(zip(keys, items, strict=True))


def _ordereddict_unflatten(items: Iterable[Any], keys: list[Any]) -> OrderedDict[Any, Any]:
    return OrderedDict(zip(keys, items, strict=True))


def _defaultdict_flatten(value: defaultdict[Any, Any]) -> tuple[list[Any], list[Any]]:
    return list(value.values()), [value.default_factory, list(value)]


def _defaultdict_unflatten(items: Iterable[Any], context: Any) -> defaultdict[Any, Any]:
    factory, keys = context
    return defaultdict(factory, zip(keys, items, strict=True))


def _deque_flatten(value: deque[Any]) -> tuple[list[Any], int | None]:
    return list(value), value.maxlen


def _deque_unflatten(items: Iterable[Any], length: int | None) -> deque[Any]:
    return deque(items, maxlen=length)


def _namedtuple_flatten(value: Any) -> tuple[list[Any], Any]:
    return list(value), type(value)


def _namedtuple_unflatten(items: Iterable[Any], kind: Any) -> Any:
    return kind(*items)


def _namedtuple_flatten_with_keys(value: Any) -> Any:
    return [(GetAttrKey(name), item) for name, item in zip(value._fields, value, strict=True)], type(value)


_list_flatten_with_keys = _with_indices(_list_flatten)
_tuple_flatten_with_keys = _with_indices(_tuple_flatten)
_dict_flatten_with_keys = _with_dict_keys(_dict_flatten)

_NODES = (
    NodeDef(tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
    NodeDef(list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
    NodeDef(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    NodeDef(OrderedDict, _dict_flatten, _ordereddict_unflatten, _dict_flatten_with_keys),
    NodeDef(defaultdict, _defaultdict_flatten, _defaultdict_unflatten, _with_dict_keys(_defaultdict_flatten)),
    NodeDef(deque, _deque_flatten, _deque_unflatten, _with_indices(_deque_flatten)),
    NodeDef(namedtuple, _namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys),
)
#: All kinds of containers, with those that programs have registered.
SUPPORTED_NODES: dict[Any, NodeDef] = {node.type: node for node in _NODES}
STANDARD_DICT_TYPES = frozenset((dict, OrderedDict, defaultdict))
BUILTIN_TYPES = frozenset(SUPPORTED_NODES)


def register_pytree_node(
    cls: builtins.type,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
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


_register_pytree_node = _private_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls: builtins.type) -> None:
    del SUPPORTED_NODES[cls]


def register_dataclass(
    cls: Any,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """From now on, objects of this class are containers of their fields; fields that are None are none."""
    if not dataclasses.is_dataclass(cls):
        if field_names is None:
            raise ValueError(
                f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a dataclass."
            )
        names = field_names
    else:
        fields = [field.name for field in dataclasses.fields(cls) if field.init]
        names = fields if field_names is None else field_names
        wanted = set(fields) - set(drop_field_names or ())
        if field_names is not None and wanted != set(names):
            raise ValueError(
                f"field_names does not include all dataclass fields.\nMissing fields in `field_names`: {wanted - set(names)}. "
                f"Unexpected fields in `field_names`: {set(names) - wanted}."
            )

    def split(value: Any) -> tuple[list[str], list[str]]:
        there = [name for name in names if getattr(value, name) is not None]
        return there, [name for name in names if name not in there]

    def flatten_fn(value: Any) -> Any:
        there, absent = split(value)
        return [getattr(value, name) for name in there], [there, absent]

    def with_keys(value: Any) -> Any:
        there, absent = split(value)
        return [(GetAttrKey(name), getattr(value, name)) for name in there], [there, absent]

    def unflatten_fn(items: Iterable[Any], context: Any) -> Any:
        there, absent = context
        return cls(**dict(zip(there, items, strict=True)), **dict.fromkeys(absent))

    register_pytree_node(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn=with_keys)


def is_namedtuple_class(cls: builtins.type) -> bool:
    """Whether a class is one of named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def is_namedtuple_instance(obj: object) -> bool:
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Whether an object is a named tuple, or a class of such."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def _get_node_type(value: Any) -> Any:
    """What a value's kind is registered as: all named tuples are one kind."""
    kind = type(value)
    return namedtuple if kind not in SUPPORTED_NODES and isinstance(value, tuple) and hasattr(value, "_fields") else kind


# Taking apart and putting together.


def _parts(value: Any) -> tuple[Any, Any, list[Any]] | None:
    kind = type(value)
    if kind is tuple or kind is list:
        return kind, None, list(value)
    node = SUPPORTED_NODES.get(kind) or SUPPORTED_NODES.get(_get_node_type(value))
    if node is None:
        return None
    items, context = node.flatten_fn(value)
    return node.type, context, list(items)


def flatten(value: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the structure that they were in; `is_leaf` says what is not taken apart."""
    leaves: list[Any] = []
    return leaves, _taken_apart(value, leaves, is_leaf)


def _taken_apart(value: Any, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    found = None if is_leaf is not None and is_leaf(value) else _parts(value)
    if found is None:
        leaves.append(value)
        return LEAF
    kind, context, items = found
    return TreeSpec(kind, context, [_taken_apart(item, leaves, is_leaf) for item in items])


def unflatten(leaves: list[Any] | tuple[Any, ...], tree: TreeSpec) -> Any:
    """The structure with these leaves."""
    left = iter(leaves)
    made = _build(left, tree)
    if next(left, MISSING) is not MISSING:
        raise ValueError(f"unflatten: more leaves than the {tree.num_leaves} places of {tree}")
    return made


def _build(left: Any, tree: TreeSpec) -> Any:
    if tree.type is None:
        return next(left)
    items = [_build(left, child) for child in tree._children]
    return SUPPORTED_NODES[tree.type].unflatten_fn(items, tree._context)


def map_leaves(function: Any, value: Any) -> Any:
    leaves, tree = flatten(value)
    return unflatten([function(leaf) for leaf in leaves], tree)


def spread(prefix: Any, tree: TreeSpec) -> list[Any] | None:
    """The leaves of `prefix`, each for all the leaves of `tree` below it; None where the two do not fit."""
    found = _parts(prefix)
    if found is None:
        return [prefix] * tree.num_leaves
    kind, context, items = found
    if tree.type is not kind or tree._context != context or len(items) != tree.num_children:
        return None
    out: list[Any] = []
    for item, child in zip(items, tree._children, strict=True):
        inner = spread(item, child)
        if inner is None:
            return None
        out += inner
    return out


_broadcast_to_and_flatten = spread


def _take_up_to(spec: TreeSpec, value: Any, found: list[Any]) -> None:
    if spec.type is None:
        found.append(value)
        return
    kind = _get_node_type(value)
    mappings = spec.type in STANDARD_DICT_TYPES and kind in STANDARD_DICT_TYPES
    if kind is not spec.type and not mappings:
        where = "Node type" if spec.type in BUILTIN_TYPES else "Type"
        raise ValueError(f"{where} mismatch; expected {spec.type!r}, but got {kind!r}.")
    items, context = SUPPORTED_NODES[kind].flatten_fn(value)
    items = list(items)
    if len(items) != spec.num_children:
        raise ValueError(f"Node arity mismatch; expected {spec.num_children}, but got {len(items)}.")
    if mappings:
        keys = spec._context[1] if spec.type is defaultdict else spec._context
        _check_keys(set(keys), set(value))
        items = [value[key] for key in keys]
    elif kind is not deque and context != spec._context:
        raise ValueError(
            f"Node context mismatch for node type {spec.type!r}; expected {spec._context!r}, but got {context!r}."
            if spec.type in BUILTIN_TYPES
            else f"Node context mismatch for custom node type {spec.type!r}."
        )
    for item, child in zip(items, spec._children, strict=True):
        _take_up_to(child, item, found)


def _check_keys(expected: set[Any], got: set[Any]) -> None:
    missing, extra = expected - got, got - expected
    if missing or extra:
        told = (f"; missing key(s): {missing}" if missing else "") + (f"; extra key(s): {extra}" if extra else "")
        raise ValueError(f"Node keys mismatch{told}.")


# PyTorch's names of the same.

Tree = TreeSpec
tree_flatten = flatten


def tree_is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether it is taken apart no further."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The structure with these leaves."""
    if not isinstance(treespec, TreeSpec):
        if not isinstance(leaves, TreeSpec):
            raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
        leaves, treespec = treespec, leaves
    return treespec.unflatten(leaves)


def tree_iter(tree: Any, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """Goes through the leaves in order."""
    return iter(flatten(tree, is_leaf)[0])


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves in order."""
    return flatten(tree, is_leaf)[0]


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of all arguments in order."""
    return flatten((args, tuple(kwargs.values())))[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> TreeSpec:
    """The structure without the leaves."""
    return flatten(tree, is_leaf)[1]


def _together(tree: Any, rests: tuple[Any, ...], is_leaf: IsLeaf) -> tuple[Iterable[Any], TreeSpec]:
    """Each leaf with what stands in the same place of the other trees."""
    leaves, spec = flatten(tree, is_leaf)
    return zip(leaves, *(spec.flatten_up_to(rest) for rest in rests), strict=True), spec


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """The structure with what `func` makes of each leaf, and of what stands in the same place of the others."""
    together, spec = _together(tree, rests, is_leaf)
    return spec.unflatten([func(*each) for each in together])


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Calls `func` on each leaf, and what stands in the same place of the others, and returns the tree as it is."""
    for each in _together(tree, rests, is_leaf)[0]:
        func(*each)
    return tree


def _chosen(kinds: Any) -> Callable[[Any], bool]:
    if isinstance(kinds, (type, tuple, UnionType)):
        return lambda leaf: isinstance(leaf, kinds)
    if callable(kinds):
        return kinds
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(kinds: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Decorates a function of one value so that others than those of some types, or chosen by a function, stay."""
    chosen = _chosen(kinds)

    def decorate(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda value: func(value) if chosen(value) else value

    return decorate


def tree_map_only(kinds: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """The same for leaves of some types, or of which a function says yes; the others stay."""
    return tree_map(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_map_only_(kinds: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Calls `func` on leaves of some types, or of which a function says yes, and returns the tree as it is."""
    return tree_map_(map_only(kinds)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether it holds of every leaf."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether it holds of a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(kinds: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether it holds of every leaf of some types."""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, kinds))


def tree_any_only(kinds: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether it holds of a leaf of some types."""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, kinds))


def _ways(path: KeyPath, tree: Any, is_leaf: IsLeaf) -> Iterator[tuple[KeyPath, Any]]:
    node = None if is_leaf is not None and is_leaf(tree) else SUPPORTED_NODES.get(_get_node_type(tree))
    if node is None:
        yield path, tree
        return
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node.type}. Please pass a flatten_with_keys_fn argument to "
            "register_pytree_node."
        )
    for key, item in node.flatten_with_keys_fn(tree)[0]:
        yield from _ways((*path, key), item, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves in order, each with the way to it."""
    return list(_ways((), tree, is_leaf))


def tree_flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves in order, each with the way to it, and the structure that they were in."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """The structure with what `func` makes of the way to each leaf, of the leaf, and of those in the same place."""
    ways = [path for path, _ in tree_leaves_with_path(tree, is_leaf)]
    together, spec = _together(tree, rests, is_leaf)
    return spec.unflatten([func(path, *each) for path, each in zip(ways, together, strict=True)])


class _Star(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The structure as Python writes containers, with stars for what is in them."""
    return repr(treespec.unflatten([_Star("*")] * treespec.num_leaves))
