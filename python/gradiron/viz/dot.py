"""A graph in Graphviz' language, for those who have it."""

from __future__ import annotations

from .model import Model
from .picture import COLOURS


def dot(model: Model) -> str:
    """The text of a `digraph`."""
    rows = [
        "digraph {",
        "  rankdir=TB;",
        '  node [shape=box, style="rounded,filled", fontname="monospace", fontsize=11];',
        '  edge [color="#8a94a6", arrowsize=0.7];',
    ]
    for number, vertex in enumerate(model.vertices):
        colours = COLOURS[vertex.kind]
        label = "\\n".join(_escaped(line) for line in [vertex.title, *vertex.lines])
        look = f'fillcolor="{colours.fill}", color="{colours.stroke}", fontcolor="{colours.text}"'
        rows.append(f'  v{number} [label="{label}", {look}];')
    many = model.manifold()
    for link in model.links:
        label = f' [label="{link.output}"]' if link.source in many else ""
        rows.append(f"  v{link.source} -> v{link.target}{label};")
    if model.note:
        rows.append(f'  label="{_escaped(model.note)}";')
    return "\n".join([*rows, "}", ""])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
