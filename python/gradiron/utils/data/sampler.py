"""Samplers: the order in which the samples of a dataset are taken, equal to PyTorch's for the same seed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from ... import _core
from ..._core import Generator
from ..._creation import as_tensor

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

_T_co = TypeVar("_T_co", covariant=True)


class Sampler(Generic[_T_co]):
    """Base class of samplers, which iterate over indices or lists of indices.

    A subclass writes `__iter__`, and `__len__` if the number is known.

    Examples:
        >>> class Reversed(torch.utils.data.Sampler):
        ...     def __iter__(self):
        ...         return iter([2, 1, 0])
        >>> list(torch.utils.data.DataLoader([10, 20, 30], batch_size=3, sampler=Reversed()))
        [tensor([30, 20, 10])]
    """

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError


def draw_seed(generator: Generator | None = None) -> int:
    """Draw a seed for a generator."""
    return int(_core.empty([], dtype=_core.int64).random_(generator=generator).item())


def _check_count(name: str, count: Any) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or count <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={count}")


class SequentialSampler(Sampler[int]):
    """Sampler of all indices in order.

    Args:
        data_source: dataset with a length.

    Examples:
        >>> list(torch.utils.data.SequentialSampler(range(3)))
        [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Sampler of indices in random order.

    Args:
        data_source: dataset with a length.
        replacement: draw each index independently instead of a permutation. Default: `False`
        num_samples: number of indices; the length of the dataset if `None`.
        generator: random number generator.

    Examples:
        >>> sorted(torch.utils.data.RandomSampler(range(4)))
        [0, 1, 2, 3]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """Number of indices that are drawn."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        count, generator = len(self.data_source), self.generator
        if generator is None:
            generator = Generator().manual_seed(draw_seed())
        left = self.num_samples
        while left >= 0:
            # The last draw, of none perhaps, is made like the others: the generator is left as PyTorch leaves it.
            if self.replacement:
                part, drawn = 32, _core.randint(0, count, [min(left, 32)], dtype=_core.int64, generator=generator)
            else:
                part, drawn = max(count, 1), _core.randperm(count, generator=generator)
            yield from drawn.tolist()[:left]
            left -= part

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Sampler of given indices in random order.

    Args:
        indices: indices to draw from, without replacement.
        generator: random number generator.

    Examples:
        >>> sorted(torch.utils.data.SubsetRandomSampler([1, 3, 5]))
        [1, 3, 5]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in _core.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Sampler of indices with given probabilities.

    Args:
        weights: weight of each index; they need not sum to 1.
        num_samples: number of indices to draw.
        replacement: whether an index can be drawn again. Default: `True`
        generator: random number generator.

    Examples:
        >>> list(torch.utils.data.WeightedRandomSampler([0.0, 1.0], 3))
        [1, 1, 1]
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        _check_count("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=_core.float64)
        if self.weights.dim() != 1:
            shape = tuple(self.weights.shape)
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {shape}")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = _core.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Sampler of lists of indices, batches of what another sampler gives.

    Args:
        sampler: sampler of single indices.
        batch_size: number of indices in each list.
        drop_last: drop the last list if it is shorter.

    Examples:
        >>> list(torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool) -> None:
        _check_count("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
