"""A graph as text: results at the left, what they came from further right.

A row of operators with one input each shares a line; a vertex used twice is told once and referred to by its number.
"""

from __future__ import annotations

from .model import Model

WIDTH = 100
DEPTH = 16  # deeper branches are told below, under their number, rather than off the screen


def tree(model: Model) -> str:
    """The text for a terminal."""
    return "\n".join(_Teller(model).tell())


class _Teller:
    def __init__(self, model: Model) -> None:
        self.model = model
        self.sources = model.sources()
        uses = [0] * len(model.vertices)
        for link in model.links:
            uses[link.source] += 1
        self.shared = [count > 1 for count in uses]
        self.numbers: dict[int, int] = {}
        self.told: set[int] = set()
        self.later: list[int] = []

    def tell(self) -> list[str]:
        lines: list[str] = []
        self.later = list(self.model.results)
        for root in self.later:  # grows while it is walked
            if root not in self.told:
                lines += self._branches(root)
        return lines + ([f"({self.model.note})"] if self.model.note else [])

    def _branches(self, root: int) -> list[str]:
        """The lines of everything under `root` that has not been told yet."""
        lines: list[str] = []
        waiting = [(root, "", "", 0)]
        while waiting:
            vertex, first, rest, depth = waiting.pop()
            lines_here, end = self._row(vertex, first, rest)
            lines += lines_here
            inputs = self.sources[end] if end is not None else []
            below = []
            for position, source in enumerate(inputs):
                last = position == len(inputs) - 1
                twig = rest + ("└─ " if last else "├─ ")
                if depth == DEPTH and self.sources[source] and source not in self.told:
                    self.later.append(source)
                    lines.append(f"{twig}{self._reference(source)} (below)")
                else:
                    below.append((source, twig, rest + ("   " if last else "│  "), depth + 1))
            waiting += reversed(below)
        return lines

    def _row(self, vertex: int, first: str, rest: str) -> tuple[list[str], int | None]:
        """A vertex and the row of single inputs behind it, and the vertex whose several inputs branch off."""
        lines: list[str] = []
        line = first
        while True:
            if vertex in self.told and self.sources[vertex]:
                return [*lines, f"{line}{self._reference(vertex)} (above)"], None
            self.told.add(vertex)
            numbered = vertex in self.numbers or (self.shared[vertex] and self.sources[vertex])
            line += self._name(vertex) if numbered else self._label(vertex)
            if len(self.sources[vertex]) != 1:
                return [*lines, line], vertex
            vertex = self.sources[vertex][0]
            line += " ← "
            if len(line) + len(self._label(vertex)) > WIDTH:
                lines.append(line.rstrip())
                line = rest + "   "

    def _label(self, vertex: int) -> str:
        told = self.model.vertices[vertex]
        if told.kind in ("leaf", "result"):
            return " ".join([told.title, *told.lines])
        return f"{told.title} [{', '.join(told.lines)}]" if told.lines else told.title

    def _name(self, vertex: int) -> str:
        return f"#{self._number(vertex)} {self._label(vertex)}"

    def _reference(self, vertex: int) -> str:
        return f"#{self._number(vertex)} {self.model.vertices[vertex].title}"

    def _number(self, vertex: int) -> int:
        return self.numbers.setdefault(vertex, len(self.numbers) + 1)
