"""Pipes whose samples come as a stream."""

from __future__ import annotations

import copy
import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

from ...._as_torch.refused import refuse
from ..dataloader import default_collate, get_worker_info
from ..sampler import SequentialSampler
from .datapipe import DataChunk, IterDataPipe, _lacks_length, functional_datapipe
from .map import generator

__all__ = [
    "Batcher",
    "Collator",
    "Concater",
    "Demultiplexer",
    "Filter",
    "Forker",
    "Grouper",
    "IterDataPipe",
    "IterableWrapper",
    "Mapper",
    "Multiplexer",
    "Sampler",
    "ShardingFilter",
    "Shuffler",
    "UnBatcher",
    "Zipper",
]


class IterableWrapperIterDataPipe(IterDataPipe):
    """An iterable, as a pipe; each pass has its own copy, as far as it can be copied."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:
                pass  # Generators and open files cannot be copied: these are read once.
        yield from source

    def __len__(self) -> int:
        if isinstance(self.iterable, Sized):
            return len(self.iterable)
        raise _lacks_length(self)


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """A function of each sample, or of some of its columns, which may take the place of others."""

    def __init__(self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None) -> None:
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            (output_col,) = output_col
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col

    def _applied(self, sample: Any) -> Any:
        columns = self.input_col
        if columns is None:
            return self.fn(sample)
        many = isinstance(columns, (list, tuple))
        result = self.fn(*(sample[column] for column in columns)) if many else self.fn(sample[columns])
        made = list(sample) if isinstance(sample, tuple) else copy.copy(sample)
        if self.output_col == -1:
            made.append(result)
        elif self.output_col is not None:
            made[self.output_col] = result
        elif many:
            # The result takes the place of the first column, and the others go.
            made[columns[0]] = result
            for column in sorted(columns[1:], reverse=True):
                del made[column]
        else:
            made[columns] = result
        return tuple(made) if isinstance(sample, tuple) else made

    def __iter__(self) -> Iterator[Any]:
        for sample in self.datapipe:
            yield self._applied(sample)

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Tensors of the samples of each batch."""

    def __init__(self, datapipe: Any, conversion: Any = default_collate, collate_fn: Any = None) -> None:
        fn = conversion if collate_fn is None else collate_fn
        if not callable(fn):
            refuse("utils.data.datapipes.iter.Collator", "gradiron has no data frames, whose columns a dict converts")
        super().__init__(datapipe, fn)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The samples that a function is true for; `None` means those that differ from `None` in its column."""

    def __init__(self, datapipe: Any, filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def _wanted(self, sample: Any) -> bool:
        columns = self.input_col
        if columns is None:
            wanted = self.filter_fn(sample)
        elif isinstance(columns, (list, tuple)):
            wanted = self.filter_fn(*(sample[column] for column in columns))
        else:
            wanted = self.filter_fn(sample[columns])
        if not isinstance(wanted, bool):
            raise ValueError("Boolean output is required for `filter_fn` of FilterIterDataPipe, got", type(wanted))
        return wanted

    def __iter__(self) -> Iterator[Any]:
        return filter(self._wanted, self.datapipe)


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """Lists of samples that follow one another."""

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = datapipe, batch_size, drop_last, wrapper_class

    def __iter__(self) -> Iterator[Any]:
        source = iter(self.datapipe)
        while batch := list(itertools.islice(source, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.wrapper_class(batch)

    def __len__(self) -> int:
        full, rest = divmod(len(self.datapipe), self.batch_size)
        return full + bool(rest and not self.drop_last)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The samples of batches; -1 means of batches of batches, to any depth."""

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def _parts(self, element: Any, level: int) -> Iterator[Any]:
        is_batch = isinstance(element, list)
        if level == 0 or (level == -1 and not is_batch):
            yield element
            return
        if not is_batch:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
        for part in element:
            yield from self._parts(part, level if level == -1 else level - 1)

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            yield from self._parts(element, self.unbatch_level)


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """One pipe after another."""

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datapipes)

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Tuples of the samples of several pipes, as long as all have some."""

    def __init__(self, *datapipes: Any) -> None:
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        return zip(*self.datapipes)  # noqa: B905

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """One sample of each pipe in turn, as long as all have some."""

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(zip(*self.datapipes))  # noqa: B905

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes) * len(self.datapipes)


class _Shared:
    """A pass over a pipe that several others make together: what one reads waits for the others that want it."""

    def __init__(self, source: Any, count: int, targets: Callable[[Any], Iterable[int]], most: int) -> None:
        self.source, self.targets, self.most, self.count = source, targets, most, count
        self.begun: set[int] = set()
        self.reading: Iterator[Any] = iter(())

    def begin(self, which: int) -> None:
        """A new pass of a part; the second of the same part begins a new one of all."""
        if not self.begun or which in self.begun:
            self.begun = set()
            self.reading = iter(self.source)
            self.waiting: list[deque[Any]] = [deque() for _ in range(self.count)]
        self.begun.add(which)

    def samples(self, which: int) -> Iterator[Any]:
        self.begin(which)
        waiting, reading = self.waiting, self.reading
        while True:
            while not waiting[which]:
                try:
                    sample = next(reading)
                except StopIteration:
                    return
                for target in self.targets(sample):
                    waiting[target].append(sample)
                if self.most >= 0 and sum(map(len, waiting)) > self.most * self.count:
                    raise BufferError(f"DataPipe buffer overflow, buffer size {self.most} is insufficient.")
            yield waiting[which].popleft()


class _Part(IterDataPipe):
    def __init__(self, shared: _Shared, which: int, source: Any = None) -> None:
        self.shared, self.which, self.source = shared, which, source

    def __iter__(self) -> Iterator[Any]:
        return self.shared.samples(self.which)

    def __len__(self) -> int:
        if self.source is None:
            raise _lacks_length(self)
        return len(self.source)


def _parts(source: Any, count: int, targets: Any, most: int, whole: bool) -> list[Any]:
    if count < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {count} is found")
    shared = _Shared(source, count, targets, most)
    return [_Part(shared, which, source if whole else None) for which in range(count)]


class ForkerIterDataPipe(IterDataPipe):
    """The same samples for several pipes, which are returned as a list."""

    def __new__(cls, datapipe: Any, num_instances: int, buffer_size: int = 1000, copy: Any = None) -> Any:
        if copy is not None:
            refuse("utils.data.datapipes.iter.Forker", "gradiron's forks share their samples; copy them by map")
        return _parts(datapipe, num_instances, lambda sample: range(num_instances), buffer_size, True)


class DemultiplexerIterDataPipe(IterDataPipe):
    """Several pipes, of which a function says the number of the one that a sample goes to, as a list."""

    def __new__(
        cls, datapipe: Any, num_instances: int, classifier_fn: Any, drop_none: bool = False, buffer_size: int = 1000
    ) -> Any:
        def targets(sample: Any) -> Iterable[int]:
            found = classifier_fn(sample)
            if found is None and drop_none:
                return ()
            if found is None or not 0 <= found < num_instances:
                raise ValueError(
                    f"Output of the classification fn should be between 0 and {num_instances - 1}. {found} is returned."
                )
            return (int(found),)

        return _parts(datapipe, num_instances, targets, buffer_size, False)


IterDataPipe.register_function("fork", ForkerIterDataPipe)
IterDataPipe.register_function("demux", DemultiplexerIterDataPipe)


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Lists of the samples of equal keys, each as soon as it is full, the others in the end."""

    def __init__(
        self,
        datapipe: Any,
        group_key_fn: Callable[[Any], Any],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        if guaranteed_group_size is not None and (group_size is None or not 0 < guaranteed_group_size <= group_size):
            raise AssertionError("guaranteed_group_size must be > 0 and <= group_size")
        self.datapipe, self.group_key_fn, self.keep_key, self.buffer_size = datapipe, group_key_fn, keep_key, buffer_size
        self.group_size, self.drop_remaining = group_size, drop_remaining
        self.guaranteed_group_size = group_size if guaranteed_group_size is None else guaranteed_group_size

    def _made(self, key: Any, group: list[Any]) -> Any:
        return (key, DataChunk(group)) if self.keep_key else DataChunk(group)

    def __iter__(self) -> Iterator[Any]:
        groups: dict[Any, list[Any]] = defaultdict(list)
        held = 0
        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            groups[key].append(sample)
            held += 1
            if self.group_size == len(groups[key]):
                held -= self.group_size
                yield self._made(key, groups.pop(key))
            if held == self.buffer_size:
                # The largest group makes room.
                largest = max(groups, key=lambda k: len(groups[k]))
                group = groups.pop(largest)
                held -= len(group)
                if self.guaranteed_group_size is not None and len(group) < self.guaranteed_group_size:
                    if not self.drop_remaining:
                        raise RuntimeError("Failed to group items", str(group))
                else:
                    yield self._made(largest, group)
        for key, group in groups.items():
            yield self._made(key, group)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe):
    """The samples in random order, as far as a buffer of them reaches."""

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise ValueError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size, self._enabled = buffer_size, True
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
        if not self._enabled:
            yield from self.datapipe
            return
        chance = generator(self)
        buffer: list[Any] = []
        for sample in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(sample)
                continue
            place = chance.randint(0, len(buffer) - 1)
            sample, buffer[place] = buffer[place], sample
            yield sample
        while buffer:
            yield buffer.pop(chance.randint(0, len(buffer) - 1))

    def __len__(self) -> int:
        return len(self.datapipe)


class SamplerIterDataPipe(IterDataPipe):
    """The indices that a sampler gives for a pipe."""

    def __init__(
        self, datapipe: Any, sampler: Any = SequentialSampler, sampler_args: Any = None, sampler_kwargs: Any = None
    ) -> None:
        options = {**(sampler_kwargs or {}), "data_source": datapipe}
        self.datapipe, self.sampler = datapipe, sampler(*(sampler_args or ()), **options)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe):
    """Every n-th sample: each worker of a `DataLoader` has its own ones."""

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        self.source_datapipe = source_datapipe
        self._given: tuple[int, int] | None = None

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> None:
        """Set how many parts there are, and which one this is."""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        self._given = (num_of_instances, instance_id)

    def _share(self) -> tuple[int, int]:
        worker = get_worker_info()
        return self._given or ((1, 0) if worker is None else (worker.num_workers, worker.id))

    def __iter__(self) -> Iterator[Any]:
        count, own = self._share()
        return itertools.islice(self.source_datapipe, own, None, count)

    def __len__(self) -> int:
        count, own = self._share()
        total = len(self.source_datapipe)
        return total // count + (own < total % count)


IterableWrapper = IterableWrapperIterDataPipe
Mapper = MapperIterDataPipe
Collator = CollatorIterDataPipe
Filter = FilterIterDataPipe
Batcher = BatcherIterDataPipe
UnBatcher = UnBatcherIterDataPipe
Concater = ConcaterIterDataPipe
Zipper = ZipperIterDataPipe
Multiplexer = MultiplexerIterDataPipe
Forker = ForkerIterDataPipe
Demultiplexer = DemultiplexerIterDataPipe
Grouper = GrouperIterDataPipe
Shuffler = ShufflerIterDataPipe
Sampler = SamplerIterDataPipe
ShardingFilter = ShardingFilterIterDataPipe
