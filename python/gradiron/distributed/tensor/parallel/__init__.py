"""Layers that are cut over ranks: names that programs ask `isinstance` of."""

from __future__ import annotations

from ..._refused import _SHARDED, Refused, refused

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
    "loss_parallel",
    "parallelize_module",
]


class ParallelStyle(Refused):
    """How a layer would be cut. A program may derive its own; none is ever applied."""

    _full_name = "tensor.parallel.ParallelStyle"


class ColwiseParallel(ParallelStyle):
    """A layer whose outputs would be cut."""

    _full_name = "tensor.parallel.ColwiseParallel"


class RowwiseParallel(ParallelStyle):
    """A layer whose inputs would be cut."""

    _full_name = "tensor.parallel.RowwiseParallel"


class SequenceParallel(ParallelStyle):
    """A layer that would see a part of the sequence."""

    _full_name = "tensor.parallel.SequenceParallel"


class PrepareModuleInput(ParallelStyle):
    """Would cut a layer's inputs."""

    _full_name = "tensor.parallel.PrepareModuleInput"


class PrepareModuleOutput(ParallelStyle):
    """Would cut a layer's outputs."""

    _full_name = "tensor.parallel.PrepareModuleOutput"


class PrepareModuleInputOutput(ParallelStyle):
    """Would cut both."""

    _full_name = "tensor.parallel.PrepareModuleInputOutput"


loss_parallel, parallelize_module = (
    refused(f"tensor.parallel.{name}", _SHARDED) for name in ("loss_parallel", "parallelize_module")
)
