"""Measuring the run time of statements."""

from __future__ import annotations

import sys
import textwrap
import time
import timeit as _timeit
from collections.abc import Callable
from enum import Enum
from typing import Any, NoReturn

from ... import _core, cuda
from ._measurement import Measurement, TaskSpec

_Callback = Callable[[int, float], NoReturn] | None


class Language(Enum):
    """Language of a timed statement; only Python is supported.

    Examples:
        >>> torch.utils.benchmark.Language.PYTHON.value
        0
    """

    PYTHON = 0
    CPP = 1


def timer() -> float:
    """Return the time in seconds, after the GPU has finished its work.

    Examples:
        >>> torch.utils.benchmark.timer() > 0
        True
    """
    if cuda.is_initialized():
        cuda.synchronize()
    return time.perf_counter()


class Timer:
    """Measure the run time of a Python statement.

    Args:
        stmt: statement. Default: `"pass"`
        setup: statement that runs once before. Default: `"pass"`
        global_setup: must be empty. Default: `""`
        timer: function that returns the time. Default: `torch.utils.benchmark.timer`
        globals: variables of the statement; `torch` is always one.
        label: title of the measurement.
        sub_label: row in the tables of `Compare`.
        description: column in the tables of `Compare`.
        env: description of the environment.
        num_threads: number of threads for operators. Default: `1`
        language: must be Python. Default: `Language.PYTHON`

    Examples:
        >>> timer = torch.utils.benchmark.Timer("x + 1", globals={"x": torch.ones(2)})
        >>> timer.timeit(10).median > 0
        True
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError("torch.utils.benchmark.Timer: gradiron times Python only, not C++")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        # (Indented code is common: statements stand in functions.)
        stmt, setup = (textwrap.dedent(text).strip() for text in (stmt, setup))
        names = {**dict(globals or {}), "torch": _package()}
        self._globals = names
        self._clock = timer
        self._timer = _timeit.Timer(stmt, setup, timer, names)
        self._task_spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)

    def _run(self, number: int) -> float:
        # A clock that did not move would be divided by.
        return max(self._timer.timeit(number), 1e-9)

    def _with_threads(self, run: Callable[[], Measurement]) -> Measurement:
        before = _core.get_num_threads()
        try:
            _core.set_num_threads(self._task_spec.num_threads)
            return run()
        finally:
            _core.set_num_threads(before)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Measure `number` runs at once, after a short warm-up."""

        def run() -> Measurement:
            self._run(max(number // 100, 2))
            return Measurement(number, [self._run(number)], self._task_spec)

        return self._with_threads(run)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Raises NotImplementedError, as in PyTorch: use `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: _Callback = None) -> None:
        """Raises NotImplementedError, as in PyTorch: use `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block(self, min_run_time: float) -> int:
        """How many runs are long enough beside the clock's own time."""
        spent = min(max(_timeit.Timer("pass", timer=self._clock).timeit(1), 1e-7) for _ in range(5))
        number = 1
        while True:
            taken = self._run(number)
            if (spent / taken <= 1e-4 and taken >= min_run_time / 1000) or taken > min_run_time:
                return number
            number *= 10

    def _measured(
        self, number: int, until: Callable[[list[float]], bool], least: float, most: float, call: _Callback
    ) -> Measurement:
        times: list[float] = []
        spent = 0.0
        while not times or (spent < most and (spent < least or not until(times))):
            taken = self._run(number)
            if call is not None:
                call(number, taken)
            times.append(taken)
            spent += taken
        return Measurement(number, times, self._task_spec)

    def blocked_autorange(self, callback: _Callback = None, min_run_time: float = 0.2) -> Measurement:
        """Measure blocks of suitably many runs for at least `min_run_time` seconds."""

        def run() -> Measurement:
            number = self._block(min_run_time)
            return self._measured(number, lambda times: True, min_run_time, float("inf"), callback)

        return self._with_threads(run)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: _Callback = None,
    ) -> Measurement:
        """Measure blocks of runs until their spread is below `threshold`, or for `max_run_time` seconds."""

        def run() -> Measurement:
            number = self._block(0.05)

            def sure(times: list[float]) -> bool:
                return len(times) > 3 and Measurement(number, times, self._task_spec).meets_confidence(threshold)

            return self._measured(number, sure, min_run_time, max_run_time, callback)

        return self._with_threads(run)

    def collect_callgrind(self, number: int = 100, **options: Any) -> NoReturn:
        """Raises NotImplementedError: instructions are not counted."""
        raise NotImplementedError("torch.utils.benchmark.Timer.collect_callgrind: gradiron counts no instructions")


def _package() -> Any:
    return sys.modules[__name__.partition(".")[0]]
