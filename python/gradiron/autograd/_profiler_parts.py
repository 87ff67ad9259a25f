"""Small things that programs reach for in the profiler's modules: kinds of devices, tables, step counts."""

from __future__ import annotations

import bisect
import warnings
from collections import defaultdict
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple


class DeviceType(IntEnum):
    """Where an event's time was measured: here always the host."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20

    def __str__(self) -> str:
        return f"DeviceType.{self.name}"

    def __repr__(self) -> str:
        return f"<DeviceType.{self.name}: {self.value}>"


class Kernel(NamedTuple):
    """A piece of a GPU's work."""

    name: str
    device: int
    duration: int


class StringTable(dict[str, str]):
    """Texts, each once; one that is not there yet is its own."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """Finds records by when they begin. A record is a pair, whose first half has `start_ns()`."""

    def __init__(self, mem_records: list[Any]) -> None:
        self._records = sorted(mem_records, key=_start)
        self._starts = [_start(record) for record in self._records]

    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[Any]:
        """The records that begin in an interval, its ends included."""
        first, last = bisect.bisect_left(self._starts, start_ns), bisect.bisect_right(self._starts, end_ns)
        yield from self._records[first:last]


def _start(record: Any) -> int:
    start: int = record[0].start_ns()
    return start


class EnforceUnique:
    """Refuses what it has seen."""

    def __init__(self) -> None:
        warnings.warn(
            "`torch.autograd.profiler.EnforceUnique` is deprecated and will be removed in PyTorch 2.17.",
            FutureWarning,
            stacklevel=2,
        )
        self.seen: set[tuple[Any, ...]] = set()

    def see(self, *key: Any) -> None:
        """Raises if the key was seen before."""
        if key in self.seen:
            raise RuntimeError(f"duplicate key: {key}")
        self.seen.add(key)


class KinetoStepTracker:
    """Counts steps for whoever counts them: the step of all is that of who is furthest."""

    _current_step = 0
    _step_dict: ClassVar[defaultdict[str, int]] = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Begins counting for somebody, at the present step."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forgets somebody; whether they had counted."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """One step more for somebody; the step of all."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        furthest = max(cls._step_dict.values())
        if furthest > cls._current_step + 1:
            warnings.warn(
                f"Profiler step count has increased more than 1 - current_step = {cls._current_step} step dict =  "
                f"{cls._step_dict}",
                stacklevel=2,
            )
        cls._current_step = max(cls._current_step, furthest)
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The step of all."""
        return cls._current_step
