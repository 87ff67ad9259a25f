"""The history of a result as plain data: vertices and links, told apart from how they are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

if TYPE_CHECKING:
    from gradiron import Tensor

LIMIT = 2000


class Named(Protocol):
    """A module, of gradiron or of a user's own making."""

    def named_parameters(self) -> Iterable[tuple[str, Any]]: ...


def is_named(value: object) -> TypeGuard[Named]:
    """By its class: some objects have any attribute that is asked for."""
    return callable(getattr(type(value), "named_parameters", None))


@dataclass
class Vertex:
    """A leaf, an operator of the graph, or a result."""

    kind: str  # "leaf", "operator", "custom", "inplace" or "result"
    title: str
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Link:
    """A value on its way from the vertex that made it to the vertex that used it."""

    source: int
    target: int
    output: int = 0  # which of the source's outputs it is


@dataclass
class Model:
    """Vertices by number, results first; the links into a vertex stand in the order of its inputs."""

    vertices: list[Vertex]
    links: list[Link]
    results: list[int]
    note: str = ""

    def sources(self) -> list[list[int]]:
        """For each vertex, the vertices that it was computed from."""
        found: list[list[int]] = [[] for _ in self.vertices]
        for link in self.links:
            found[link.target].append(link.source)
        return found

    def manifold(self) -> set[int]:
        """The vertices of which more than one output is in use, so that links have to say which they carry."""
        return {link.source for link in self.links if link.output}


def describe(roots: list[Tensor], names: Names, saved: bool) -> Model:
    """Walk the graph from `roots` back to the leaves, with a worklist: a history may be a million operators long."""
    model = Model([], [], [])
    titles = [names.of(root) or ("result" if len(roots) == 1 else f"result {i}") for i, root in enumerate(roots)]
    known: dict[Any, int] = {}
    waiting: list[Any] = []

    def vertex_of(node: Any) -> int | None:
        if node not in known:
            if len(known) >= LIMIT:
                model.note = f"only the last {LIMIT} operators are shown"
                return None
            known[node] = len(model.vertices)
            model.vertices.append(_vertex(node, names, saved, titles))
            waiting.append(node)
        return known[node]

    for root, title in zip(roots, titles, strict=True):
        node = root.grad_fn
        kind = "leaf" if node is None and root.requires_grad else "result"
        lines = [_kind_of_value(root)] + (["no history"] if node is None and kind == "result" else [])
        model.results.append(len(model.vertices))
        model.vertices.append(Vertex(kind, title, lines))
        if node is not None:
            source = vertex_of(node)
            if source is not None:
                model.links.append(Link(source, model.results[-1], getattr(root, "output_nr", 0)))

    for node in waiting:  # grows while it is walked
        target = known[node]
        for source_node, output in node.next_functions:
            if source_node is not None and (source := vertex_of(source_node)) is not None:
                model.links.append(Link(source, target, output))
    return model


def _vertex(node: Any, names: Names, saved: bool, told: list[str]) -> Vertex:
    """`told` are the names that the results already bear."""
    title = node.name().rsplit("::", 1)[-1]
    leaf = getattr(node, "variable", None)
    if leaf is not None:
        return Vertex("leaf", names.of(leaf) or "leaf", [_kind_of_value(leaf)])
    if title in ("CopySlices", "CopyBackwards"):
        kind = "inplace"
    else:
        # Built-in operators number their derivatives (`MulBackward0`); the user's own Functions do not.
        kind = "custom" if title.endswith("Backward") else "operator"
    called = ", ".join(name for name in names.of_node(node) if name not in told)
    lines = [f"= {called}"] if called else []
    return Vertex(kind, title, lines + (_saved_lines(node) if saved else []))


def _kind_of_value(t: Tensor) -> str:
    dtype = str(t.dtype).removeprefix("torch.")
    text = f"{tuple(t.shape)}" + ("" if dtype == "float32" else f" {dtype}")
    return text if t.device.type == "cpu" else f"{text} {t.device}"


def _saved_lines(node: Any) -> list[str]:
    try:
        return [f"{name}: {value}" for name, value in _saved(node)]
    except RuntimeError:
        return ["saved values are freed"]


def _saved(node: Any) -> Iterable[tuple[str, str]]:
    """The names and kinds of the values that a node keeps for its derivative."""
    if hasattr(node, "saved"):
        for name, value in node.saved():
            yield name, _kind_of_value(value)
        return
    for attribute in dir(node):
        if attribute.startswith("_saved_"):
            value = getattr(node, attribute)
            if hasattr(value, "dtype"):
                yield attribute.removeprefix("_saved_"), _kind_of_value(value)


class Names:
    """What the user calls his tensors: variables, the entries of lists and dicts, a module's parameters."""

    def __init__(self, scope: Mapping[Any, Any] | Named, tensor: type) -> None:
        self.tensor = tensor
        self.leaves: dict[int, str] = {}
        self.nodes: dict[Any, list[str]] = {}
        if isinstance(scope, Mapping):
            self._learn([(name, value) for name, value in scope.items() if name not in ("In", "Out")])
        else:
            for path, parameter in scope.named_parameters():
                self._learn_tensor(path, parameter)

    def of(self, t: Tensor) -> str | None:
        return self.leaves.get(id(t))

    def of_node(self, node: Any) -> list[str]:
        return self.nodes.get(node, [])

    def _learn(self, values: list[tuple[Any, Any]]) -> None:
        """Variables first, then what lies in them, then what lies in that: the shortest way to a tensor is its name."""
        level = [(str(name), value) for name, value in values if not _is_hidden(name)]
        budget = 20_000
        for _ in range(4):
            budget -= len(level)
            inner: list[tuple[str, Any]] = []
            for name, value in level:
                if isinstance(value, self.tensor):
                    self._learn_tensor(name, value)
                elif len(inner) < budget:
                    inner += islice(_parts(name, value), budget - len(inner))
            level = inner

    def _learn_tensor(self, name: str, t: Any) -> None:
        if id(t) not in self.leaves:
            self.leaves[id(t)] = name
            if t.grad_fn is not None:
                self.nodes.setdefault(t.grad_fn, []).append(name)


def _is_hidden(part: Any) -> bool:
    """Whether a name is its owner's own affair: a notebook keeps its last results under such names, for one."""
    return isinstance(part, str) and part.startswith("_")


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What lies in a value, and what it is called there."""
    if isinstance(value, dict):
        for key, entry in list(value.items()):
            if not _is_hidden(key):
                yield f"{name}[{key!r}]", entry
    elif isinstance(value, (list, tuple)):
        for position, entry in enumerate(value):
            yield f"{name}[{position}]", entry
    elif isinstance(value, type) or type(value).__module__ == "builtins":
        return
    elif is_named(value):
        for path, parameter in value.named_parameters():
            if not any(map(_is_hidden, path.split("."))):
                yield f"{name}.{path}", parameter
    else:
        for attribute, entry in list(getattr(value, "__dict__", {}).items()):
            if not _is_hidden(attribute):
                yield f"{name}.{attribute}", entry
