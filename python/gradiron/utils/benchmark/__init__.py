"""How long a statement takes: timers, what they measured, and tables that compare it."""

from __future__ import annotations

from ._compare import Compare
from ._measurement import Measurement, TaskSpec, ordered_unique, select_unit, trim_sigfig, unit_to_english
from ._timer import Language, Timer, timer

__all__ = [
    "Compare",
    "Language",
    "Measurement",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]
