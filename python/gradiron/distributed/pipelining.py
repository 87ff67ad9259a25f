"""Models that are cut into stages, one for each rank: names that programs import."""

from __future__ import annotations

from enum import Enum

from ._refused import _PIPELINES, Refused, refused

__all__ = [
    "Pipe",
    "PipelineStage",
    "Schedule1F1B",
    "ScheduleDualPipeV",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "SplitPoint",
    "build_stage",
    "pipe_split",
    "pipeline",
]


class SplitPoint(Enum):
    """On which side of a module a model would be cut."""

    BEGINNING = 1
    END = 2


class Pipe(Refused):
    """Would be a model in stages."""

    _full_name, _instead = "pipelining.Pipe", _PIPELINES


class PipelineStage(Refused):
    """Would be a stage."""

    _full_name, _instead = "pipelining.PipelineStage", _PIPELINES


class _Schedule(Refused):
    _full_name, _instead = "pipelining.Schedule", _PIPELINES

    def __init_subclass__(cls) -> None:
        cls._full_name = f"pipelining.{cls.__name__}"


class ScheduleGPipe(_Schedule):
    """Would be an order of work."""


class Schedule1F1B(_Schedule):
    """Would be an order of work."""


class ScheduleInterleaved1F1B(_Schedule):
    """Would be an order of work."""


class ScheduleLoopedBFS(_Schedule):
    """Would be an order of work."""


class ScheduleInterleavedZeroBubble(_Schedule):
    """Would be an order of work."""


class ScheduleZBVZeroBubble(_Schedule):
    """Would be an order of work."""


class ScheduleDualPipeV(_Schedule):
    """Would be an order of work."""


build_stage, pipe_split, pipeline = (
    refused(f"pipelining.{name}", _PIPELINES) for name in ("build_stage", "pipe_split", "pipeline")
)
