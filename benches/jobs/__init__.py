"""What `compare.py` times, by groups: a file each.

Each job is one statement, written once against the interface that both libraries share. `T` is the library; the set-up
returns the names that the statement uses. `goal` is how many times as fast as PyTorch gradiron wants to be; `numpy` is
the same work in NumPy, on the arrays of the names, where that makes sense.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Names = dict[str, Any]
Setup = Callable[[Any], Names]


@dataclass(frozen=True)
class Group:
    """What its jobs want together: the geometric mean of their ratios, and the least of them."""

    mean: float | None = None
    worst: float | None = None
    threads: int | None = None
    """Its own number of threads."""
    memory: bool = False
    """Whether the peak of memory is looked at, too."""


GROUPS = {
    "calls": Group(),
    "graphs": Group(),
    "derivatives": Group(),
    "kernels": Group(),
    "layers": Group(1.2, 0.8),
    "steps": Group(1.5, 1, memory=True),
    "optimizers": Group(1.5, 1),
    "data": Group(),
    "single": Group(1.2, 1, threads=1),
    "fft": Group(),
    "random": Group(),
    "compiled": Group(threads=1),
    "gpu": Group(),
}


@dataclass(frozen=True)
class Job:
    group: str
    name: str
    statement: str
    setup: Setup
    goal: float | None = None
    numpy: str | None = None
    slow: bool = False  # one call a round


JOBS: list[Job] = []


def group(name: str) -> Callable[..., None]:
    """What adds jobs to a group."""

    def job(
        title: str,
        statement: str,
        setup: Setup,
        goal: float | None = None,
        numpy: str | None = None,
        slow: bool = False,
    ) -> None:
        JOBS.append(Job(name, title, statement, setup, goal, numpy, slow))

    return job


from . import (  # noqa: E402, F401
    calls,
    compiled,
    data,
    derivatives,
    fft,
    gpu,
    graphs,
    kernels,
    layers,
    optimizers,
    random,
    single,
    steps,
)
