"""How far right each box stands: above its users and below its sources, with straight trunks and straight spines.

First each layer in turn takes the best places for its neighbours' sake; then chains of boxes move as one until upright.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .layout import Box

GAP = 26.0  # between neighbours in a layer
STIFFNESS = 8.0  # how much stronger trunks pull than other lines
SPINE = 2  # a box stands right below its deepest source if that is so many layers deeper than the others
ROUNDS = 12

Rows = list[list[int]]


def set_abscissae(boxes: list[Box], rows: Rows) -> None:
    """Give every box its `x`, keeping the order of `rows`."""
    _sweep(boxes, rows)
    _stand_upright(boxes, rows)


def _sweep(boxes: list[Box], rows: Rows) -> None:
    for row in rows:
        edge = 0.0
        for box in row:
            boxes[box].x = edge + boxes[box].width / 2
            edge += boxes[box].width + GAP
        for box in row:
            boxes[box].x -= edge / 2
    sweeps = max(4, min(16, 400_000 // len(boxes)))
    for sweep in range(sweeps):
        last = sweep >= sweeps - 2
        for row in reversed(rows) if sweep % 2 == 0 else rows:
            wishes = [_wish(boxes, boxes[box], sweep % 2 == 0 or last, sweep % 2 == 1 or last) for box in row]
            _settle(boxes, row, wishes)


def _wish(boxes: list[Box], box: Box, look_up: bool, look_down: bool) -> tuple[float, float]:
    """Where a box would like to be, and how much."""
    total = weight = 0.0
    for neighbour in (box.above if look_up else []) + (box.below if look_down else []):
        other = boxes[neighbour]
        pull = STIFFNESS if box.vertex is None and other.vertex is None else 1.0
        total, weight = total + pull * other.x, weight + pull
    return (total / weight, weight) if weight else (box.x, 0.1)


def _settle(boxes: list[Box], row: list[int], wishes: list[tuple[float, float]]) -> None:
    """Least squares under the condition that neighbours keep apart: pool those that would overlap, and place the pool."""
    pools: list[tuple[float, float, int]] = []  # position of the pool, its weight, its number of boxes
    offsets, offset, before = [], 0.0, 0.0
    for position, box in enumerate(row):
        width = boxes[box].width
        offset += (before + width) / 2 + GAP if position else 0.0
        before = width
        offsets.append(offset)
        place, weight = wishes[position]
        pool = (place - offset, weight, 1)
        while pools and pools[-1][0] > pool[0]:
            x, w, count = pools.pop()
            pool = ((x * w + pool[0] * pool[1]) / (w + pool[1]), w + pool[1], count + pool[2])
        pools.append(pool)
    places = [x for x, _, count in pools for _ in range(count)]
    for box, place, offset in zip(row, places, offsets, strict=True):
        boxes[box].x = place + offset


# --- chains that move as one ---


def _stand_upright(boxes: list[Box], rows: Rows) -> None:
    left, right = _neighbours(boxes, rows)
    chains = _chains(boxes)
    member = {box: number for number, chain in enumerate(chains) for box in chain}
    for turn in range(ROUNDS):
        for chain in chains if turn % 2 else reversed(chains):
            least = max((_edge(boxes, left[box], box, 1) for box in chain), default=0.0)
            most = min((_edge(boxes, right[box], box, -1) for box in chain), default=0.0)
            if least <= most:
                wish = _wish_of_chain(boxes, chain, member)
                for box in chain:
                    boxes[box].x = min(max(wish, least), most)


def _neighbours(boxes: list[Box], rows: Rows) -> tuple[list[int | None], list[int | None]]:
    left: list[int | None] = [None] * len(boxes)
    right: list[int | None] = [None] * len(boxes)
    for row in rows:
        for a, b in pairwise(row):
            right[a], left[b] = b, a
    return left, right


def _edge(boxes: list[Box], neighbour: int | None, box: int, side: int) -> float:
    """How far `box` may go towards its neighbour, which stands on its left (`side` is 1) or right (-1)."""
    if neighbour is None:
        return -1e9 * side
    other = boxes[neighbour]
    return other.x + side * ((other.width + boxes[box].width) / 2 + GAP)


def _chains(boxes: list[Box]) -> list[list[int]]:
    """All boxes, in runs that should stand upright."""
    depth = _depths(boxes)
    chains = []
    for number in range(len(boxes)):
        if _stands_below(boxes, depth, number) is None:
            chain = [number]
            while (follower := _follower(boxes, depth, chain[-1])) is not None:
                chain.append(follower)
            chains.append(chain)
    return chains


def _depths(boxes: list[Box]) -> list[int]:
    """How many layers lie between each box and the furthest leaf behind it."""
    depth = [0] * len(boxes)
    for number in sorted(range(len(boxes)), key=lambda number: -boxes[number].layer):
        for end in boxes[number].below:
            trunk = boxes[end].vertex is None
            depth[end] = max(depth[end], depth[number] + (0 if trunk else 1))
    return depth


def _follower(boxes: list[Box], depth: list[int], upper: int) -> int | None:
    for lower in boxes[upper].below:
        if _stands_below(boxes, depth, lower) == upper:
            return lower
    return None


def _stands_below(boxes: list[Box], depth: list[int], lower: int) -> int | None:
    """The box right above which `lower` stands, if there is one for which it should."""
    above = set(boxes[lower].above)
    if not above:
        return None
    upper = max(above, key=lambda box: depth[box])
    if boxes[lower].vertex is None:  # a trunk: upright but for its first piece, which fans out from its source
        return upper if boxes[upper].vertex is None or len(set(boxes[upper].below)) == 1 else None
    others = max((depth[box] for box in above if box != upper), default=None)
    deepest = others is None or depth[upper] - others >= SPINE
    return upper if deepest and set(boxes[upper].below) == {lower} else None


def _wish_of_chain(boxes: list[Box], chain: list[int], member: dict[int, int]) -> float:
    """The mean place of what the chain is linked to, or its own."""
    total, count = 0.0, 0
    for box in chain:
        for other in boxes[box].above + boxes[box].below:
            if member[other] != member[chain[0]]:
                total, count = total + boxes[other].x, count + 1
    if count:
        return total / count
    return sum(boxes[box].x for box in chain) / len(chain)
