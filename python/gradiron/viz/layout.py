"""Where to put what: a layered drawing after Sugiyama, leaves above and results below.

Layers come from longest paths, the order in a layer from barycentres, and the abscissae from a sweep that gives each layer
the best positions for its neighbours' sake. Values that are used far below run down a trunk which all their users share.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .coordinates import set_abscissae
from .model import Model
from .order import ordered

DROP = 40.0  # between layers
LANE = 10.0  # the room of a trunk that passes through a layer
PIN = 26.0  # between the lines that arrive at a box


@dataclass
class Box:
    """A vertex, or a place where a trunk passes through a layer."""

    layer: int
    width: float
    height: float = 0.0
    vertex: int | None = None
    x: float = 0.0  # the centre
    y: float = 0.0  # the upper edge
    above: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)


@dataclass
class Line:
    """A piece of a link between boxes of adjacent layers."""

    upper: int
    lower: int
    output: int = 0
    start: float = 0.0  # where it leaves and where it arrives
    end: float = 0.0


@dataclass
class Layout:
    boxes: list[Box]
    lines: list[Line]
    layers: list[list[int]]
    width: float
    height: float


def place(model: Model, sizes: list[tuple[float, float]]) -> Layout:
    """Positions for all vertices, whose widths and heights are `sizes`."""
    boxes, lines = _boxes(model, sizes)
    layers = ordered(boxes)
    set_abscissae(boxes, layers)
    width = _shift_to_origin(boxes)
    height = _set_ordinates(boxes, layers)
    _set_ports(boxes, lines)
    return Layout(boxes, lines, layers, width, height)


def _layers(model: Model) -> list[int]:
    """The longest way from each vertex to a result, so that vertices stand close above what uses them."""
    sources = model.sources()
    waiting_for = [0] * len(sources)
    for link in model.links:
        waiting_for[link.source] += 1
    layer = [0] * len(sources)
    ready = [vertex for vertex, count in enumerate(waiting_for) if count == 0]
    for vertex in ready:  # grows while it is walked
        for source in sources[vertex]:
            layer[source] = max(layer[source], layer[vertex] + 1)
            waiting_for[source] -= 1
            if waiting_for[source] == 0:
                ready.append(source)
    for result in model.results:  # a result that others are computed from stays near its maker
        layer[result] = min((layer[source] - 1 for source in sources[result]), default=0)
    return layer


def _boxes(model: Model, sizes: list[tuple[float, float]]) -> tuple[list[Box], list[Line]]:
    layer = _layers(model)
    boxes = [Box(layer[vertex], *size, vertex) for vertex, size in enumerate(sizes)]
    lines: list[Line] = []
    trunks: dict[tuple[int, int], list[int]] = {}

    def connect(upper: int, lower: int, output: int) -> None:
        lines.append(Line(upper, lower, output))
        boxes[upper].below.append(lower)
        boxes[lower].above.append(upper)

    for link in model.links:
        trunk = trunks.setdefault((link.source, link.output), [link.source])
        steps = layer[link.source] - layer[link.target]
        while len(trunk) < steps:
            boxes.append(Box(layer[link.source] - len(trunk), LANE))
            connect(trunk[-1], len(boxes) - 1, link.output)
            trunk.append(len(boxes) - 1)
        connect(trunk[steps - 1], link.target, link.output)
    return boxes, lines


def _shift_to_origin(boxes: list[Box]) -> float:
    left = min(box.x - box.width / 2 for box in boxes)
    for box in boxes:
        box.x -= left
    return max(box.x + box.width / 2 for box in boxes)


def _set_ordinates(boxes: list[Box], layers: list[list[int]]) -> float:
    """Stack the layers, the last one (furthest from the results) on top, further apart where lines run far aside."""
    y = 0.0
    for upper in range(len(layers) - 1, -1, -1):
        row = layers[upper]
        height = max(boxes[box].height for box in row)
        for box in row:
            boxes[box].y = y + (height - boxes[box].height) / 2 if boxes[box].vertex is not None else y
            if boxes[box].vertex is None:
                boxes[box].height = height
        aside = max((abs(boxes[box].x - boxes[end].x) for box in row for end in boxes[box].below), default=0.0)
        y += height + (DROP + min(aside * 0.06, DROP) if upper else 0.0)
    return y


def _set_ports(boxes: list[Box], lines: list[Line]) -> None:
    """Lines arrive side by side, in the order in which they come; each output of a vertex leaves from its own place."""
    arriving: dict[int, list[Line]] = {}
    leaving: dict[int, list[Line]] = {}
    for line in lines:
        arriving.setdefault(line.lower, []).append(line)
        leaving.setdefault(line.upper, []).append(line)
    for number, group in leaving.items():
        ends: dict[int, list[float]] = {}
        for line in group:
            ends.setdefault(line.output, []).append(boxes[line.lower].x)
        outputs = sorted(ends, key=lambda output: (sum(ends[output]) / len(ends[output]), output))
        ports = _spread(boxes[number], len(outputs))
        for line in group:
            line.start = ports[outputs.index(line.output)]
    for number, group in arriving.items():
        group.sort(key=lambda line: boxes[line.upper].x)
        for line, port in zip(group, _spread(boxes[number], len(group)), strict=True):
            line.end = port


def _spread(box: Box, count: int) -> list[float]:
    if box.vertex is None:
        return [box.x] * count
    step = min(PIN, (box.width - 20.0) / max(count - 1, 1))
    return [box.x + (i - (count - 1) / 2) * step for i in range(count)]
