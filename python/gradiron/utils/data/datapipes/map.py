"""Pipes whose samples are accessed by index."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from .... import _core
from .datapipe import DataChunk, MapDataPipe, functional_datapipe

__all__ = ["Batcher", "Concater", "MapDataPipe", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]


class SequenceWrapperMapDataPipe(MapDataPipe):
    """A sequence or mapping, as a pipe."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """A function of each sample."""

    def __init__(self, datapipe: Any, fn: Callable[[Any], Any] = lambda data: data) -> None:
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """One pipe after another."""

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        left = index
        for pipe in self.datapipes:
            if left < len(pipe):
                return pipe[left]
            left -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of the samples of several pipes."""

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """Lists of samples that follow one another."""

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = datapipe, batch_size, drop_last, wrapper_class

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        start = index * self.batch_size
        end = min(start + self.batch_size, len(self.datapipe))
        return self.wrapper_class([self.datapipe[i] for i in range(start, end)])

    def __len__(self) -> int:
        full, rest = divmod(len(self.datapipe), self.batch_size)
        return full + bool(rest and not self.drop_last)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(MapDataPipe):
    """The samples in random order, as a stream."""

    def __init__(self, datapipe: Any, *, indices: list[Any] | None = None) -> None:
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._enabled = True
        self._seed: int | None = None

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Switch the random order on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """Set the seed of the next pass."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        order = self.indices
        if self._enabled:
            # PyTorch hands them out from the end.
            order = generator(self).sample(order, len(order))[::-1]
        return (self.datapipe[index] for index in order)

    def __len__(self) -> int:
        return len(self.datapipe)


def generator(pipe: Any) -> random.Random:
    """The generator of one pass over a pipe: by the seed that it was given, else by a random one."""
    seed, pipe._seed = pipe._seed, None
    return random.Random(int(_core.empty([], dtype=_core.int64).random_().item()) if seed is None else seed)


SequenceWrapper = SequenceWrapperMapDataPipe
Mapper = MapperMapDataPipe
Concater = ConcaterMapDataPipe
Zipper = ZipperMapDataPipe
Batcher = BatcherMapDataPipe
Shuffler = ShufflerIterDataPipe
