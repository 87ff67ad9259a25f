"""The order of the boxes in each layer: few crossings, found by barycentre sweeps and swaps of neighbours."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .layout import Box

Rows = list[list[int]]


def ordered(boxes: list[Box]) -> Rows:
    """The boxes of each layer, from left to right."""
    rows = _first_order(boxes)
    best, fewest = [list(row) for row in rows], _crossings(boxes, rows)
    rank = [0.0] * len(boxes)
    for row in rows:
        _number(row, rank)
    for sweep in range(max(4, min(16, 400_000 // len(boxes)))):
        if fewest == 0:
            break
        downwards = sweep % 2 == 0
        for row in reversed(rows) if downwards else rows:
            row.sort(key=lambda box: _barycentre(boxes[box].above if downwards else boxes[box].below, rank, box))
            _number(row, rank)
        crossings = _crossings(boxes, rows)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    if fewest:
        _swap_neighbours(boxes, best)
    return best


def _number(row: list[int], rank: list[float]) -> None:
    for position, box in enumerate(row):
        rank[box] = float(position)


def _barycentre(neighbours: list[int], rank: list[float], box: int) -> float:
    return sum(rank[n] for n in neighbours) / len(neighbours) if neighbours else rank[box]


def _first_order(boxes: list[Box]) -> Rows:
    """Depth first from the results, inputs in the order of the arguments: trees come out without a crossing."""
    rows: Rows = [[] for _ in range(1 + max(box.layer for box in boxes))]
    seen = [False] * len(boxes)
    waiting = [number for number, box in reversed(list(enumerate(boxes))) if not box.below]
    while waiting:
        number = waiting.pop()
        if not seen[number]:
            seen[number] = True
            rows[boxes[number].layer].append(number)
            waiting += reversed(boxes[number].above)
    return rows


def _crossings(boxes: list[Box], rows: Rows) -> int:
    """How many pairs of lines cross."""
    total = 0
    for upper, lower in zip(rows[1:], rows, strict=False):
        rank = {box: position for position, box in enumerate(lower)}
        seen: list[int] = []
        for box in upper:
            ends = sorted(rank[end] for end in boxes[box].below)
            total += sum(len(seen) - bisect_left(seen, end + 1) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _swap_neighbours(boxes: list[Box], rows: Rows) -> None:
    rank = [0.0] * len(boxes)
    for row in rows:
        _number(row, rank)
    for _ in range(6):
        swapped = False
        for row in rows:
            for i in range(len(row) - 1):
                a, b = row[i], row[i + 1]
                if _gain(boxes, rank, a, b) > 0:
                    row[i], row[i + 1] = b, a
                    rank[a], rank[b] = rank[b], rank[a]
                    swapped = True
        if not swapped:
            return


def _gain(boxes: list[Box], rank: list[float], a: int, b: int) -> int:
    """How many crossings go away when `a`, now left of `b`, goes to its right."""
    gain = 0
    for ends_a, ends_b in ((boxes[a].above, boxes[b].above), (boxes[a].below, boxes[b].below)):
        for end_a in ends_a:
            for end_b in ends_b:
                gain += (rank[end_a] > rank[end_b]) - (rank[end_a] < rank[end_b])
    return gain
