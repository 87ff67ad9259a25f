"""Buckets: memory in which the gradients of several parameters are stored one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _core
from ..._core import Tensor, storage_holders
from ...distributed._grad_bucket import GradBucket

__all__ = ["Bucket", "assign_buckets"]


def assign_buckets(params: Sequence[Tensor], order: Sequence[int], limits: Sequence[int]) -> list[list[int]]:
    """Return the parameters of each bucket, which have one dtype and device, taken in `order`.

    A bucket is complete when it holds as many bytes as the next limit for its dtype and device; the last limit is
    repeated. Buckets are sorted by the position of their last parameter.
    """
    open_buckets: dict[Any, list[int]] = {}
    sizes: dict[Any, int] = {}
    numbers: dict[Any, int] = {}
    full: list[list[int]] = []
    for index in order:
        param = params[index]
        kind = (param.dtype, param.device)
        open_buckets.setdefault(kind, []).append(index)
        sizes[kind] = sizes.get(kind, 0) + param.numel() * param.element_size()
        number = numbers.get(kind, 0)
        if sizes[kind] >= limits[min(number, len(limits) - 1)]:
            full.append(open_buckets.pop(kind))
            sizes[kind], numbers[kind] = 0, number + 1
    full += open_buckets.values()
    arrival = {index: at for at, index in enumerate(order)}
    return sorted(full, key=lambda members: arrival[members[-1]])


def _dense_strides(tensor: Tensor) -> tuple[int, ...]:
    """Return the strides of a tensor without gaps, in any order of dimensions; else contiguous strides."""
    expected = 1
    for size, stride in sorted(zip(tensor.shape, tensor.stride(), strict=True), key=lambda pair: (pair[1], pair[0])):
        if size != 1:
            if stride != expected:
                break
            expected *= size
    else:
        return tuple(tensor.stride())
    strides, step = [], 1
    for size in reversed(tensor.shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


class Bucket:
    """Gradients of one dtype and device that are all-reduced together."""

    def __init__(self, number: int, members: list[int], params: Sequence[Tensor]) -> None:
        self.number = number
        self.members = members
        self.params = [params[index] for index in members]
        self.places: list[tuple[Any, tuple[int, ...], int]] = []
        offset = 0
        for param in self.params:
            self.places.append((param.shape, _dense_strides(param), offset))
            offset += param.numel()
        self.numel = offset
        self.bytes = offset * self.params[0].element_size()
        self.left = len(members)  # The number of gradients that this backward has yet to compute.
        self.skipped = False  # Whether no rank uses its parameters.
        self.memory: Tensor | None = None
        self.addresses: list[int] = []
        self.pending: Any = None  # The work, or the future of a hook, that reduces it.

    def provide(self, persistent: bool) -> Tensor:
        """Return memory for the gradients of a backward, which nobody else holds unless `persistent`."""
        memory = self.memory
        if memory is None:
            return self._allocate()
        if persistent or storage_holders(memory) == 1:
            return memory
        own = [at for at, param in enumerate(self.params) if self.holds(at, param.grad)]
        if storage_holders(memory) <= 1 + len(own):
            return memory
        # Gradients of an earlier backward are referenced elsewhere.
        self.memory = None
        new = self._allocate()
        for at in own:
            self.move(at, new)
        return new

    def _allocate(self) -> Tensor:
        like = self.params[0]
        memory = self.memory = _core.empty(self.numel, dtype=like.dtype, device=like.device)
        base, unit = memory.data_ptr(), memory.element_size()
        self.addresses = [base + offset * unit for _, _, offset in self.places]
        return memory

    def holds(self, at: int, gradient: Tensor | None) -> bool:
        """Return whether a gradient is the view of the bucket for its parameter number `at`."""
        return gradient is not None and bool(self.addresses) and gradient.data_ptr() == self.addresses[at]

    def move(self, at: int, memory: Tensor) -> None:
        """Move the gradient of parameter number `at` into the memory of the bucket."""
        param = self.params[at]
        view = memory.as_strided(*self.places[at])
        view.copy_(param.grad)
        param.grad = view

    def as_grad_bucket(self, count: int) -> GradBucket:
        """Return the bucket as communication hooks get it."""
        assert self.memory is not None
        return GradBucket(self.number, count, self.memory, self.places, self.params)
