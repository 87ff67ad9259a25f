"""When a loop's steps are recorded."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from enum import Enum


class ProfilerActivity(Enum):
    """What can be recorded: the host's work. The GPU's shows as the host's time to hand it over."""

    CPU = 0
    CUDA = 3


class ProfilerAction(Enum):
    """What to do in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """After `skip_first` steps, cycles of `wait` idle, `warmup` warming and `active` recorded steps, `repeat` times.

    With `repeat=0` the cycles do not end; `skip_first_wait` leaves the first cycle's idle steps out.
    """
    if not (wait >= 0 and warmup >= 0 and active > 0 and repeat >= 0 and skip_first >= 0):
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), active={active} "
            f"(need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        cycle, place = divmod(step, wait + warmup + active)
        if place < wait or 0 < repeat <= cycle:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def always(_step: int) -> ProfilerAction:
    """Records everything."""
    return ProfilerAction.RECORD
