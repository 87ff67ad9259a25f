"""`loss` and the drawing that it returns."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from .drawing import Drawing
from .picture import ADVANCE, REMARK, Picture, Polyline, Rectangle, Text

if TYPE_CHECKING:
    from gradiron import Tensor

WIDTH, HEIGHT = 640.0, 360.0
TOP, BOTTOM = 44.0, 48.0
TITLE, LABEL = 14.0, 11.0  # sizes of type
GAP = 8.0  # between an axis and its numbers
GRID, EACH, MEAN, INK = "#e3e7ee", "#9bc4e2", "#1f6fab", "#1f2937"
COLUMNS = 400  # more values than that are drawn as the least and the greatest of each column
LEVELS = "▁▂▃▄▅▆▇█"


def loss(values: Iterable[float | Tensor], *, title: str = "loss") -> Loss:
    """Draw a loss curve.

    Each value is a thin line and the running mean a bold one. The axis is logarithmic if the loss falls by a factor of
    100 or more. A notebook shows the result as a drawing; its `svg(path)` and `png(path)` write files.

    Args:
        values: numbers or tensors of one element, one per step.
        title: title of the drawing. Default: `"loss"`

    Examples:
        >>> torch.viz.loss([2.3, 1.9, 1.2, 0.8, 0.7])
        loss in 5 steps: 2.3 █▇▃▁▁ 0.7
    """
    numbers = [float(value if isinstance(value, (int, float)) else value.item()) for value in values]
    if not any(map(_is_finite, numbers)):
        raise ValueError("loss() needs at least one finite value")
    return Loss(numbers, title)


class Loss(Drawing):
    """A drawn loss curve, which `loss` returns.

    Args:
        values: losses, one per step.
        title: title of the drawing.

    Examples:
        >>> torch.viz.loss([2.0, 1.0], title="error")
        error in 2 steps: 2 █▁ 1
    """

    def __init__(self, values: list[float], title: str) -> None:
        finite = [value for value in values if _is_finite(value)]
        above = [value for value in finite if value > 0]
        self._values, self._title = values, title
        self._is_log = min(finite) >= 0 and bool(above) and max(above) >= 100 * min(above)
        # On a logarithmic scale zeros are drawn at the lower edge.
        self._low, self._high = self._scaled(min(above if self._is_log else finite)), self._scaled(max(finite))

    def _scaled(self, value: float) -> float:
        """A value as it is drawn."""
        if not _is_finite(value):
            return math.nan
        if not self._is_log:
            return value
        return math.log10(value) if value > 0 else self._low

    @cached_property
    def _picture(self) -> Picture:
        low, high = self._low, self._high
        if low == high:
            pad = abs(low) / 10 or 0.5
            low, high = low - pad, high + pad
        marks = _decades(low, high) if self._is_log else [(at, f"{at:.6g}") for at in _round_numbers(low, high, 5)]
        count = len(self._values)
        left = max(len(text) for _, text in marks) * LABEL * ADVANCE + 3 * GAP
        right = WIDTH - len(str(count)) * LABEL * ADVANCE / 2 - 2 * GAP

        def x(step: float) -> float:
            return left + (step - 1) / max(count - 1, 1) * (right - left)

        def y(value: float) -> float:
            return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - BOTTOM - TOP)

        shapes: list[Rectangle | Polyline | Text] = []
        for at, text in marks:
            shapes.append(Polyline([(left, y(at)), (right, y(at))], GRID, 1.0))
            shapes.append(_label(left - GAP - len(text) * LABEL * ADVANCE / 2, y(at) + LABEL * 0.36, text))
        for at in _round_numbers(1, count, 7):
            if at == int(at):
                shapes.append(Polyline([(x(at), HEIGHT - BOTTOM), (x(at), HEIGHT - BOTTOM + 4)], REMARK, 1.0))
                shapes.append(_label(x(at), HEIGHT - BOTTOM + GAP + LABEL, str(int(at))))
        shapes.append(Polyline([(left, TOP), (left, HEIGHT - BOTTOM), (right, HEIGHT - BOTTOM)], REMARK, 1.0))
        drawn = [self._scaled(value) for value in self._values]
        lines = [(drawn, EACH, 1.0), (_running_mean(drawn), MEAN, 2.0)] if count > 20 else [(drawn, MEAN, 2.0)]
        for values, colour, width in lines:
            for part in _unbroken(_thinned(values)):
                points = [(x(step), y(value)) for step, value in part]
                shapes.append(Polyline(points if len(points) > 1 else points * 2, colour, width if len(points) > 1 else 4.0))
        shapes.append(Text(WIDTH / 2, TOP - 20, TITLE, INK, True, self._title))
        shapes.append(_label(WIDTH / 2, HEIGHT - 10, self._remark()))
        return Picture(WIDTH, HEIGHT, shapes)

    def _remark(self) -> str:
        text = "step, logarithmic scale" if self._is_log else "step"
        wrong = [step for step, value in enumerate(self._values, 1) if not _is_finite(value)]
        return f"{text}; not finite at step {wrong[0]}{' and others' if wrong[1:] else ''}" if wrong else text

    def __repr__(self) -> str:
        count = len(self._values)
        columns = min(count, 60)
        edges = [column * count // columns for column in range(columns + 1)]
        bars = ""
        for begin, end in pairwise(edges):
            part = [value for value in map(self._scaled, self._values[begin:end]) if not math.isnan(value)]
            share = (sum(part) / len(part) - self._low) / ((self._high - self._low) or 1.0) if part else None
            bars += " " if share is None else LEVELS[min(int(share * len(LEVELS)), len(LEVELS) - 1)]
        steps = "1 step" if count == 1 else f"{count} steps"
        return f"{self._title} in {steps}: {self._values[0]:.4g} {bars} {self._values[-1]:.4g}"


def _is_finite(value: float) -> bool:
    return abs(value) < 1e300  # differences are finite then, too


def _label(x: float, base: float, text: str) -> Text:
    return Text(x, base, LABEL, REMARK, False, text)


def _round_numbers(low: float, high: float, most: int) -> list[float]:
    """At most so many multiples of 1, 2 or 5 times a power of ten from `low` to `high`."""
    power = 10.0 ** math.floor(math.log10((high - low) or 1.0) - 1)
    for step in (power * factor for factor in (1, 2, 5, 10, 20, 50, 100)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            return [number * step for number in range(first, last + 1)]
    return [low]


def _decades(low: float, high: float) -> list[tuple[float, str]]:
    """Marks of a logarithmic axis and their numbers: powers of ten, and what lies between where there are few."""
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    apart = max(1, math.ceil((last - first) / 6))
    exponents = [exponent for exponent in range(first, last + 1) if exponent % apart == 0]
    digits = (1, 2, 5) if len(exponents) < 4 else (1,)
    marks = [(exponent + math.log10(digit), digit, exponent) for exponent in range(first - 1, last + 1) for digit in digits]
    kept = [(at, digit, exponent) for at, digit, exponent in marks if low - 1e-9 <= at <= high + 1e-9]
    if len(digits) == 1:
        kept = [mark for mark in kept if mark[2] in exponents]
    return [(at, f"{digit}e{e}" if not -3 <= e <= 3 else f"{digit * 10.0**e:g}") for at, digit, e in kept]


def _running_mean(values: list[float]) -> list[float]:
    """The mean of the values before and after each, which count less the further away they are; gaps stay gaps."""
    fade = 1 - 1 / max(10, len(values) / 40)

    def from_before(values: list[float]) -> list[tuple[float, float]]:
        """Sums and weights up to each value."""
        found, total, weight = [], 0.0, 0.0
        for value in values:
            if not math.isnan(value):
                total, weight = fade * total + value, fade * weight + 1.0
            found.append((total, weight))
        return found

    sides = zip(values, from_before(values), reversed(from_before(values[::-1])), strict=True)
    return [value if math.isnan(value) else (a + b - value) / (v + w - 1) for value, (a, v), (b, w) in sides]


def _thinned(values: list[float]) -> list[tuple[float, float]]:
    """Steps and values; of many values the least and the greatest of each column, in their order."""
    points = [(float(step), value) for step, value in enumerate(values, 1)]
    if len(points) <= 2 * COLUMNS:
        return points
    kept = []
    for column in range(COLUMNS):
        part = points[column * len(points) // COLUMNS : (column + 1) * len(points) // COLUMNS]
        finite = [point for point in part if not math.isnan(point[1])] or part
        kept += sorted({min(finite, key=lambda point: point[1]), max(finite, key=lambda point: point[1])})
    return kept


def _unbroken(points: list[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """The runs of points between values that are not finite."""
    return [list(part) for broken, part in groupby(points, lambda point: math.isnan(point[1])) if not broken]
