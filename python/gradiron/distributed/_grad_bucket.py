"""`GradBucket`: what a communication hook of `DistributedDataParallel` is given."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from .._core import Tensor
from ..autograd.grad_mode import no_grad

__all__ = ["BuiltinCommHookType", "GradBucket"]


class BuiltinCommHookType(enum.Enum):
    """Hooks that `_register_builtin_comm_hook` knows."""

    ALLREDUCE = 0
    FP16_COMPRESS = 1


class GradBucket:
    """Gradients of several parameters, one after another in a tensor of one dimension."""

    def __init__(
        self, index: int, count: int, buffer: Tensor, places: Sequence[tuple[Any, Any, int]], parameters: list[Tensor]
    ) -> None:
        self._index, self._count = index, count
        self._buffer = buffer
        self._places = places  # For each gradient its sizes, strides and offset in the buffer.
        self._parameters = parameters

    def index(self) -> int:
        """The bucket's number, in the order in which buckets are reduced."""
        return self._index

    def is_last(self) -> bool:
        """Tells whether this is the last bucket of a backward."""
        return self._index == self._count - 1

    def buffer(self) -> Tensor:
        """All gradients as one tensor."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Puts another tensor of gradients in place."""
        if buffer.numel() != self._buffer.numel():
            raise RuntimeError(f"set_buffer: expected a tensor of {self._buffer.numel()} elements, but got {buffer.numel()}")
        self._buffer = buffer.reshape(-1)

    def gradients(self) -> list[Tensor]:
        """The gradient of each parameter, as a view of the buffer."""
        with no_grad():
            return [self._buffer.as_strided(size, stride, offset) for size, stride, offset in self._places]

    def parameters(self) -> list[Tensor]:
        """The parameters, in the order of their gradients."""
        return list(self._parameters)
