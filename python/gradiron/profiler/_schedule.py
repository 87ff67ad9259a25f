"""Schedules: which steps of a loop the profiler records."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from enum import Enum


class ProfilerActivity(Enum):
    """What the profiler records: work of the CPU or of a GPU.

    For the GPU, only the time to submit the work is measured.

    Examples:
        >>> torch.profiler.ProfilerActivity.CPU.name
        'CPU'
    """

    CPU = 0
    CUDA = 3


class ProfilerAction(Enum):
    """What the profiler does in a step: `NONE`, `WARMUP`, `RECORD` or `RECORD_AND_SAVE`.

    Examples:
        >>> torch.profiler.schedule(wait=1, warmup=1, active=1)(0).name
        'NONE'
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return a schedule for `profile`: cycles of idle, warm-up and recorded steps.

    Args:
        wait: number of idle steps per cycle.
        warmup: number of warm-up steps per cycle.
        active: number of recorded steps per cycle.
        repeat: number of cycles; 0 for no end. Default: `0`
        skip_first: number of idle steps before the first cycle. Default: `0`
        skip_first_wait: leave out the idle steps of the first cycle, if not 0. Default: `0`

    Examples:
        >>> steps = torch.profiler.schedule(wait=1, warmup=1, active=2)
        >>> [steps(i).name for i in range(4)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE']
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
    """Record every step."""
    return ProfilerAction.RECORD
