"""Pictures as lists of shapes, which the SVG and the PNG writer both draw; that of a laid-out graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .layout import Layout, place
from .model import Model, Vertex

MARGIN = 20.0
PAD_X, PAD_Y = 13.0, 8.0
TITLE, DETAIL = 13.0, 11.0  # sizes of type
LEADING = 1.35
ADVANCE = 0.6  # of the monospaced letters, by the size of type
HEAD = 7.0  # length of an arrow's head
LINE = "#8a94a6"
REMARK = "#5b6472"


@dataclass(frozen=True)
class Colours:
    fill: str
    stroke: str
    text: str


COLOURS = {
    "operator": Colours("#f4f6fa", "#aab4c8", "#1f2937"),
    "leaf": Colours("#e3f4ea", "#58a97c", "#14532d"),
    "custom": Colours("#f1e9fb", "#9b72cf", "#4c1d95"),
    "inplace": Colours("#fff3dc", "#d9a441", "#7a4d05"),
    "result": Colours("#dfeaff", "#5b8def", "#1e3a8a"),
}


@dataclass(frozen=True)
class Rectangle:
    x: float
    y: float
    width: float
    height: float
    radius: float
    colours: Colours


@dataclass(frozen=True)
class Curve:
    """Bézier pieces, each from the end of the one before; with an arrow's head at the end if `head`."""

    start: tuple[float, float]
    pieces: list[tuple[float, float, float, float, float, float]]
    head: bool


@dataclass(frozen=True)
class Polyline:
    """Straight lines from point to point."""

    points: list[tuple[float, float]]
    colour: str
    width: float


@dataclass(frozen=True)
class Text:
    """A line of text; `x` is its middle, `y` its base line."""

    x: float
    y: float
    size: float
    colour: str
    bold: bool
    text: str


@dataclass(frozen=True)
class Picture:
    width: float
    height: float
    shapes: Sequence[Rectangle | Curve | Polyline | Text]


def draw(model: Model) -> Picture:
    """Lay the graph out and say what to draw, from back to front."""
    many = model.manifold()
    layout = place(model, [_size(vertex, number in many) for number, vertex in enumerate(model.vertices)])
    shapes: list[Rectangle | Curve | Text] = []
    for line in layout.lines:
        shapes += _line(layout, line.upper, line.lower, line.start, line.end)
    for box in layout.boxes:
        if box.vertex is not None:
            x, y = box.x + MARGIN, box.y + MARGIN
            shapes += _vertex(model.vertices[box.vertex], x, y, box.width, box.height)
    pins = {(line.upper, line.output, line.start) for line in layout.lines if layout.boxes[line.upper].vertex in many}
    for upper, output, x in sorted(pins):
        foot = layout.boxes[upper].y + layout.boxes[upper].height
        shapes.append(Text(x + MARGIN, foot + MARGIN - 5, DETAIL, REMARK, False, str(output)))
    width, height = layout.width + 2 * MARGIN, layout.height + 2 * MARGIN
    if model.note:
        width = max(width, len(model.note) * DETAIL * ADVANCE + 2 * MARGIN)
        shapes.append(Text(width / 2, height, DETAIL, REMARK, False, model.note))
        height += MARGIN
    return Picture(width, height, shapes)


def _size(vertex: Vertex, pins: bool) -> tuple[float, float]:
    """Width and height; a vertex with several outputs has a row for their numbers."""
    widths = [len(vertex.title) * TITLE * ADVANCE, *(len(line) * DETAIL * ADVANCE for line in vertex.lines)]
    return max(*widths, 30.0) + 2 * PAD_X, (TITLE + DETAIL * (len(vertex.lines) + pins)) * LEADING + 2 * PAD_Y


def _vertex(vertex: Vertex, x: float, y: float, width: float, height: float) -> list[Rectangle | Curve | Text]:
    colours = COLOURS[vertex.kind]
    radius = min(height / 2, 14.0) if vertex.kind in ("leaf", "result") else 7.0
    shapes: list[Rectangle | Curve | Text] = [Rectangle(x - width / 2, y, width, height, radius, colours)]
    base = y + PAD_Y + TITLE * LEADING * 0.76
    shapes.append(Text(x, base, TITLE, colours.text, True, vertex.title))
    for line in vertex.lines:
        base += DETAIL * LEADING
        shapes.append(Text(x, base, DETAIL, colours.text, False, line))
    return shapes


def _line(layout: Layout, upper: int, lower: int, start: float, end: float) -> list[Rectangle | Curve | Text]:
    """A piece of a link: out of a vertex or a trunk, and into one."""
    above, below = layout.boxes[upper], layout.boxes[lower]
    head = below.vertex is not None
    x0, y0 = start + MARGIN, above.y + above.height + MARGIN
    x1, y1 = end + MARGIN, below.y + MARGIN - (HEAD - 1 if head else 0)
    bend = (y1 - y0) * 0.5
    pieces = [(x0, y0 + bend, x1, y1 - bend, x1, y1)]
    if not head:  # straight through the layer
        foot = y1 + below.height
        pieces.append((x1, y1, x1, foot, x1, foot))
    return [Curve((x0, y0), pieces, head)]
