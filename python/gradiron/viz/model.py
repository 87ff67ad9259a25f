"""The history of a result as plain data: vertices and links, told apart from how they are drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradiron import Tensor

LIMIT = 2000


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

    def __init__(self, scope: dict[str, Any], tensor: type) -> None:
        self.tensor = tensor
        self.leaves: dict[int, str] = {}
        self.nodes: dict[Any, list[str]] = {}
        self.budget = 20_000
        for name, value in scope.items():
            if not name.startswith("_") and name not in ("In", "Out"):
                self._learn(name, value, 0)

    def of(self, t: Tensor) -> str | None:
        return self.leaves.get(id(t))

    def of_node(self, node: Any) -> list[str]:
        return self.nodes.get(node, [])

    def _learn(self, name: str, value: Any, depth: int) -> None:
        self.budget -= 1
        if self.budget < 0 or depth > 3:
            return
        if isinstance(value, self.tensor):
            self._learn_tensor(name, value)
        elif isinstance(value, dict):
            for key, entry in list(value.items()):
                self._learn(f"{name}[{key!r}]", entry, depth + 1)
        elif isinstance(value, (list, tuple)):
            for position, entry in enumerate(value):
                self._learn(f"{name}[{position}]", entry, depth + 1)
        elif isinstance(value, type) or type(value).__module__ == "builtins":
            return
        elif callable(getattr(value, "named_parameters", None)):
            for path, parameter in value.named_parameters():
                self._learn_tensor(f"{name}.{path}", parameter)
        else:
            for attribute, entry in list(getattr(value, "__dict__", {}).items()):
                self._learn(f"{name}.{attribute}", entry, depth + 1)

    def _learn_tensor(self, name: str, t: Any) -> None:
        if id(t) not in self.leaves:
            self.leaves[id(t)] = name
            if t.grad_fn is not None:
                self.nodes.setdefault(t.grad_fn, []).append(name)
