"""Measurements of run times, and how they are printed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

_UNITS = (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0))
_WORDS = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
# A spread of more than this part of the median deserves a word.
_WIDE, _VERY_WIDE = 0.1, 0.25


def select_unit(t: float) -> tuple[str, float]:
    """Return a unit that suits a time, and its length in seconds.

    Args:
        t: time in seconds.

    Examples:
        >>> torch.utils.benchmark.select_unit(0.002)
        ('ms', 0.001)
    """
    return next((unit for unit in reversed(_UNITS) if t >= unit[1]), _UNITS[0])


def unit_to_english(u: str) -> str:
    """Return the name of a unit.

    Args:
        u: unit, `"ns"`, `"us"`, `"ms"` or `"s"`.

    Examples:
        >>> torch.utils.benchmark.unit_to_english("ms")
        'millisecond'
    """
    return _WORDS[u]


def trim_sigfig(x: float, n: int) -> float:
    """Round a number to significant digits.

    Args:
        x: number.
        n: number of digits.

    Examples:
        >>> torch.utils.benchmark.trim_sigfig(1234.0, 2)
        1200.0
    """
    if x == 0 or not math.isfinite(x):
        return x
    scale = 10.0 ** (math.floor(math.log10(abs(x))) + 1 - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Return a list without repetitions, in the order of first occurrence.

    Args:
        elements: elements.

    Examples:
        >>> torch.utils.benchmark.ordered_unique([2, 1, 2])
        [2, 1]
    """
    return list(dict.fromkeys(elements))


@dataclass(frozen=True)
class TaskSpec:
    """Description of a timed task.

    Args:
        stmt: statement.
        setup: statement that runs once before.
        global_setup: must be empty. Default: `""`
        label, sub_label, description, env: as for `Timer`.
        num_threads: number of threads. Default: `1`

    Examples:
        >>> torch.utils.benchmark.TaskSpec("x + 1", "pass", label="add").title
        'add'
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        lines = "\n".join(f"  {line}" for line in self.stmt.splitlines())
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{lines}"

    def setup_str(self) -> str:
        """Return the setup as it is printed."""
        if self.setup in ("", "pass"):
            return ""
        if "\n" not in self.setup:
            return f"setup: {self.setup}"
        return "setup:\n" + "\n".join(f"  {line}" for line in self.setup.splitlines())

    def summarize(self) -> str:
        named = self.description if self.description and self.label else ""
        head = [f"[{self.env}] {self.title}" if self.env else self.title, named, self.setup_str()]
        return "\n".join(part for part in head if part)


@dataclass(repr=False)
class Measurement:
    """The measured times of a task.

    Args:
        number_per_run: number of runs in each measurement.
        raw_times: measured times in seconds.
        task_spec: description of the task.
        metadata: anything else to keep. Default: `None`

    Examples:
        >>> task = torch.utils.benchmark.TaskSpec("pass", "pass")
        >>> torch.utils.benchmark.Measurement(2, [1.0, 3.0], task).median
        1.0
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = field(default=None)

    def __getattr__(self, name: str) -> Any:
        if name in TaskSpec.__dataclass_fields__ and "task_spec" in vars(self):
            return getattr(self.task_spec, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def times(self) -> list[float]:
        """The times per run in seconds."""
        return [time / self.number_per_run for time in self.raw_times]

    def _quantile(self, part: float) -> float:
        if not self.raw_times:
            raise ValueError("the measurement holds no times")
        times = sorted(self.times)
        at = part * (len(times) - 1)
        low = int(at)
        high = min(low + 1, len(times) - 1)
        return times[low] + (times[high] - times[low]) * (at - low)

    @property
    def median(self) -> float:
        """The median of the times of one run, in seconds."""
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        """The mean of the times of one run, in seconds."""
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The interquartile range of the times."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """The number of significant digits of the median, by its spread; at least 1 and at most 5."""
        count = len(self.raw_times)
        if count < 2:
            return 1
        # As many quarters of a normal distribution as its median is uncertain by.
        doubt = max(self.iqr / 1.35 / math.sqrt(count), self.median * 1e-5)
        return max(math.floor(math.log10(self.median / (2 * doubt))), 1)

    @property
    def has_warnings(self) -> bool:
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = _WIDE) -> bool:
        """Return whether the interquartile range is below a share of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def env(self) -> str | None:
        return self.task_spec.env

    @property
    def as_row_name(self) -> str:
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def _warning(self) -> str:
        spread = self.iqr / self.median
        if len(self.raw_times) < 4 or spread < _WIDE:
            return ""
        text = f"  WARNING: Interquartile range is {spread * 100:.1f}% of the median measurement.\n           "
        if spread < _VERY_WIDE:
            return text + "This could indicate system fluctuation."
        return text + "This suggests significant environmental influence."

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        many, threads = len(self.raw_times), self.task_spec.num_threads
        lines = [
            object.__repr__(self).replace(__name__, "torch.utils.benchmark.utils.common"),
            self.task_spec.summarize(),
            f"  {'Median: ' if many > 1 else ''}{self.median / scale:.2f} {unit}",
        ]
        if many >= 4:
            low, high = self._quantile(0.25) / scale, self._quantile(0.75) / scale
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        runs = f"{self.number_per_run} runs {'per measurement,' if many > 1 else ','}"
        lines += [
            f"  {many} measurement{'s' * (many > 1)}, {runs} {threads} thread{'s' * (threads > 1)}",
            self._warning(),
        ]
        return "\n".join(line for line in lines if line)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Merge the measurements of equal tasks."""
        tasks: dict[TaskSpec, list[Measurement]] = {}
        for measurement in measurements:
            tasks.setdefault(measurement.task_spec, []).append(measurement)
        return [Measurement(1, [time for each in group for time in each.times], task) for task, group in tasks.items()]
