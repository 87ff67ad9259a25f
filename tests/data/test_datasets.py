"""Datasets, samplers and the collation of batches."""

import collections

import golden_file
import numpy as np
import pytest
import sampler_cases

from library import IS_GRADIRON, T

if IS_GRADIRON:
    import gradiron.utils.data as D
else:
    import torch.utils.data as D


def test_orders_are_pytorchs():
    expected = golden_file.read("samplers.json")
    assert sampler_cases.orders(T, D) == expected


def test_tensor_datasets():
    x, y = T.arange(6.0).reshape(3, 2), T.arange(3)
    dataset = D.TensorDataset(x, y)
    assert len(dataset) == 3 and [t.tolist() for t in dataset[1]] == [[2.0, 3.0], 1]
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        D.TensorDataset(x, T.arange(4))


def test_datasets_of_datasets():
    a, b = list(range(3)), list(range(10, 15))
    both = D.ConcatDataset([a, b])
    assert [both[i] for i in range(8)] == a + b and both[-1] == 14 and len(both) == 8 and both.cumulative_sizes == [3, 8]
    with pytest.raises(ValueError, match="absolute value of index should not exceed dataset length"):
        both[-9]
    with pytest.raises(AssertionError, match="datasets should not be an empty iterable"):
        D.ConcatDataset([])
    subset = D.Subset(b, [4, 0])
    assert list(map(subset.__getitem__, range(2))) == [14, 10] and subset.__getitems__([1]) == [10] and len(subset) == 2
    stack, named = D.StackDataset(a, b[:3]), D.StackDataset(a=a, b=b[:3])
    assert stack[1] == (1, 11) and named[1] == {"a": 1, "b": 11} and len(stack) == 3
    assert stack.__getitems__([0, 2]) == [(0, 10), (2, 12)] and named.__getitems__([2]) == [{"a": 2, "b": 12}]
    for args, message in (((a, b), "Size mismatch between datasets"), ((), "At least one dataset should be passed")):
        with pytest.raises(ValueError, match=message):
            D.StackDataset(*args)
    with pytest.raises(NotImplementedError, match="Subclasses of Dataset should implement __getitem__"):
        D.Dataset()[0]


@pytest.mark.parametrize("deep", [False, True])
def test_slices_of_subsets(deep):
    whole = D.TensorDataset(T.arange(10, 15))
    subset = D.Subset(whole, [4, 2, 0, 1])
    subset = D.Subset(subset, [0, 1, 2, 3]) if deep else subset
    for part, expected in (
        (slice(None), [14, 12, 10, 11]),
        (slice(1, 3), [12, 10]),
        (slice(0, -1, 2), [14, 10]),
        ([3, 0], [11, 14]),
    ):
        assert subset[part][0].tolist() == expected
    assert subset[-1][0] == 11


class Batched(D.Dataset):
    """It gives many at once, and less than asked for if it is short."""

    def __init__(self, short=False):
        self.data, self.short = T.arange(4.0), short

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return self.data[i]

    def __getitems__(self, indices):
        return self.data[indices][: -1 if self.short else None]


def test_stacks_ask_for_batches():
    names = ["a", "b", "c", "d"]
    assert D.StackDataset(Batched(), names).__getitems__([0, 3]) == [(0.0, "a"), (3.0, "d")]
    assert D.StackDataset(x=Batched(), n=names).__getitems__([2]) == [{"x": 2.0, "n": "c"}]
    assert [x.tolist() for x, _ in D.DataLoader(D.StackDataset(Batched(), names), 3)] == [[0.0, 1.0, 2.0], [3.0]]
    with pytest.raises(IndexError):
        D.StackDataset(Batched(), names).__getitems__([0, 4])
    with pytest.raises(ValueError, match="Nested dataset's output size mismatch. Expected 4, got 3"):
        D.StackDataset(Batched(short=True), names).__getitems__([0, 1, 2, 3])
    with pytest.raises(ValueError, match="Supported either ``tuple``- .via ``args``. or"):
        D.StackDataset(names, a=names)
    with pytest.raises(ValueError, match="Size mismatch between datasets"):
        D.StackDataset(a=names, b=names[:2])


def test_sums_of_datasets():
    parts = [D.TensorDataset(T.arange(3) + 10 * k) for k in range(3)]
    both = parts[0] + parts[1] + parts[2]
    assert [both[i][0].item() for i in (0, 3, 8, -1)] == [0, 10, 22, 22] and len(both) == 9
    assert [D.ConcatDataset([[0], [], [1, 2]])[i] for i in range(3)] == [0, 1, 2]
    with pytest.raises(IndexError):
        D.ConcatDataset([[0], [1]])[2]
    with pytest.warns(FutureWarning, match="`cummulative_sizes` attribute is renamed"):
        assert both.cummulative_sizes == [6, 9]


class Count(D.IterableDataset):
    def __init__(self, start, end):
        self.start, self.end = start, end

    def __iter__(self):
        return iter(range(self.start, self.end))

    def __len__(self):
        return self.end - self.start


def test_chains():
    chain = Count(0, 2) + Count(5, 7)
    assert isinstance(chain, D.ChainDataset) and list(chain) == [0, 1, 5, 6] and len(chain) == 4
    with pytest.raises(AssertionError, match="ChainDataset only supports IterableDataset"):
        list(D.ChainDataset([[1, 2]]))
    for parts in ([Count(0, 1)], [[1], Count(0, 1)]):
        with pytest.raises(AssertionError, match="ConcatDataset does not support IterableDataset"):
            D.ConcatDataset(parts)
    with pytest.raises(AssertionError, match="ChainDataset only supports IterableDataset"):
        list(Count(0, 1) + [1])


def test_splits():
    parts = D.random_split(range(10), [0.33, 0.33, 0.34])
    assert [len(part) for part in parts] == [4, 3, 3] and sorted(i for part in parts for i in part.indices) == list(range(10))
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0. This might result in an empty dataset."):
        D.random_split(range(2), [0.9, 0.1])
    with pytest.raises(ValueError, match="Sum of input lengths does not equal the length of the input dataset!"):
        D.random_split(range(3), [1, 1])
    with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
        D.random_split(range(3), [1.5, -0.5])


class Asked(D.Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, i):
        return type(i).__name__


def test_splits_by_a_generator():
    def drawn(seed, lengths, n=10):
        return [list(part) for part in D.random_split(range(n), lengths, T.Generator().manual_seed(seed))]

    assert drawn(1, [3, 7]) == [[5, 6, 1], [2, 0, 8, 9, 3, 7, 4]]
    assert drawn(4, [0.33, 0.33, 0.34], 100) == drawn(4, [0.33, 0.33, 0.34], 100) != drawn(5, [0.33, 0.33, 0.34], 100)
    assert [len(part) for part in drawn(1, [0.1, 0.2, 0.3, 0.4], 106)] == [11, 22, 31, 42]
    state = T.get_rng_state()
    drawn(1, [5, 5])
    assert T.equal(T.get_rng_state(), state)
    D.random_split(range(10), [5, 5])
    assert not T.equal(T.get_rng_state(), state)
    for lengths in ([5], [1.0]):
        assert [kind for (kind,) in D.DataLoader(D.random_split(Asked(), lengths)[0])] == ["int"] * 5


def test_numbers_that_samplers_draw():
    data = list(range(10))
    for options, most in (({}, 1), ({"num_samples": 20}, 2), ({"num_samples": 11}, 2), ({"num_samples": 9}, 1)):
        sampler = D.RandomSampler(data, **options)
        counts = collections.Counter(sampler)
        assert sum(counts.values()) == len(sampler) == options.get("num_samples", 10) and max(counts.values()) == most
        assert len(D.DataLoader(data, 6, sampler=sampler)) == -(-len(sampler) // 6)
    sampler = D.RandomSampler(data, replacement=True, num_samples=11)
    assert max(collections.Counter(sampler).values()) > 1 and set(sampler) <= set(data)
    for sampler in (sampler, D.RandomSampler(data), D.SubsetRandomSampler(data), D.WeightedRandomSampler([1.0, 2.0], 5)):
        # Each walk draws its seed when it begins, so that two at once do not disturb each other.
        walks = [iter(sampler), iter(sampler)]
        found = [[], []]
        for i in range(len(sampler)):
            for walk, seen in zip(walks, found):
                if i == 0:
                    T.manual_seed(0)
                seen.append(next(walk))
        assert found[0] == found[1]
    found = [D.DistributedSampler(range(9), 4, rank, drop_last=True) for rank in range(4)]
    assert len({i for sampler in found for i in sampler}) == 8


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: D.RandomSampler([]), ValueError, "num_samples should be a positive integer value, but got num_samples=0"),
        (
            lambda: D.RandomSampler([1], replacement=1),
            TypeError,
            "replacement should be a boolean value, but got replacement=1",
        ),
        (
            lambda: D.BatchSampler([1], 0, False),
            ValueError,
            "batch_size should be a positive integer value, but got batch_size=0",
        ),
        (lambda: D.BatchSampler([1], 1, 0), ValueError, "drop_last should be a boolean value, but got drop_last=0"),
        (lambda: D.RandomSampler([1], num_samples=0), ValueError, "num_samples should be a positive integer value"),
        (lambda: D.DistributedSampler([1], 2, -1), ValueError, r"Invalid rank -1, rank should be in the interval \[0, 1\]"),
        (lambda: D.WeightedRandomSampler([1.0], True), ValueError, "num_samples should be a positive integer value"),
        (
            lambda: D.WeightedRandomSampler([[1.0]], 1),
            ValueError,
            "weights should be a 1d sequence but given weights have shape",
        ),
        (lambda: D.DistributedSampler([1], 2, 2), ValueError, r"Invalid rank 2, rank should be in the interval \[0, 1\]"),
    ],
)
def test_what_samplers_refuse(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


Point = collections.namedtuple("Point", "x y")  # noqa: PYI024


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, T.Tensor):
        assert (a.dtype, a.tolist()) == (b.dtype, b.tolist())
    elif isinstance(a, dict):
        assert list(a) == list(b)
        [same(a[k], b[k]) for k in a]
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        [same(x, y) for x, y in zip(a, b)]
    else:
        assert a == b


def test_collation():
    f64 = T.float64
    for batch, expected in (
        ([1, 2], T.tensor([1, 2])),
        ([1.0, 2.0], T.tensor([1.0, 2.0], dtype=f64)),
        ([True, False], T.tensor([True, False])),
        (["a", "b"], ["a", "b"]),
        ([b"a"], [b"a"]),
        ([T.ones(2), T.zeros(2)], T.tensor([[1.0, 1.0], [0.0, 0.0]])),
        ([np.ones(2, "float32"), np.zeros(2, "float32")], T.tensor([[1.0, 1.0], [0.0, 0.0]])),
        ([np.float32(1), np.float32(2)], T.tensor([1.0, 2.0])),
        ([np.float64(1)], T.tensor([1.0], dtype=f64)),
        ([(1, "a"), (2, "b")], [T.tensor([1, 2]), ("a", "b")]),
        ([[1, 2], [3, 4]], [T.tensor([1, 3]), T.tensor([2, 4])]),
        ([{"a": 1, "b": [2]}, {"a": 3, "b": [4]}], {"a": T.tensor([1, 3]), "b": [T.tensor([2, 4])]}),
        ([Point(1, 2.0), Point(3, 4.0)], Point(T.tensor([1, 3]), T.tensor([2.0, 4.0], dtype=f64))),
        ([range(2), range(2, 4)], [T.tensor([0, 2]), T.tensor([1, 3])]),
    ):
        same(D.default_collate(batch), expected)
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        D.default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists"):
        D.default_collate([object()])
    with pytest.raises(TypeError, match="default_collate: batch must contain .* found <U1"):
        D.default_collate([np.array("a")])


class Words(list):
    pass


class Named(dict):
    pass


class Frozen(collections.abc.Mapping):
    def __init__(self, content):
        self.content = content

    def __getitem__(self, key):
        return self.content[key]

    def __iter__(self):
        return iter(self.content)

    def __len__(self):
        return len(self.content)


def test_own_classes_are_kept():
    same(D.default_collate([Named(a=1), Named(a=3)]), Named(a=T.tensor([1, 3])))
    same(D.default_collate([Words([1, 2]), Words([4, 5])]), Words([T.tensor([1, 4]), T.tensor([2, 5])]))
    assert D.default_collate([Frozen({"a": 1}), Frozen({"a": 2})])["a"].tolist() == [1, 2]
    counted = D.default_collate([collections.defaultdict(list, a=1), collections.defaultdict(list, a=2)])
    assert type(counted) is collections.defaultdict and counted["b"] == []
    same(D.default_convert(Named(a=np.array(1))), Named(a=T.tensor(1)))
    same(D.default_convert(Words([1, "x"])), Words([1, "x"]))
    assert D.default_convert(range(2)) == [0, 1]


def test_arrays_that_lie_in_a_file(tmp_path):
    rows = np.memmap(tmp_path / "rows", dtype="int64", mode="w+", shape=(4, 2))
    rows[:] = np.arange(8).reshape(4, 2)
    assert D.default_collate(list(rows)).tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize("kind", "float64 float32 float16 int64 int32 int16 int8 uint8 bool".split())
def test_numbers_of_numpy(kind):
    values = [np.dtype(kind).type(k % 2) for k in range(3)]
    found = D.default_collate(values)
    assert found.dtype == getattr(T, kind) and found.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "batch", [[["x"], ["x", "x"]], [["x", "x"], ["x"]], [np.array(object())], [None], [{"a": 1}, {"b": 1}]]
)
def test_what_cannot_be_collated(batch):
    with pytest.raises((TypeError, RuntimeError, KeyError)):
        D.default_collate(batch)


def test_conversion():
    for data, expected in (
        (np.array([1, 2]), T.tensor([1, 2])),
        ({"a": np.array([1.0])}, {"a": T.tensor([1.0], dtype=T.float64)}),
        ((np.array(1), 2), [T.tensor(1), 2]),
        (Point(np.array(1), "x"), Point(T.tensor(1), "x")),
        (["a", 1.5], ["a", 1.5]),
    ):
        same(D.default_convert(data), expected)
    words = np.array(["a"])
    assert D.default_convert(words) is words


def test_own_functions_for_collation():
    from importlib import import_module

    collate = import_module(D.__name__ + "._utils.collate").collate
    found = collate([1, 2], collate_fn_map={int: lambda batch, *, collate_fn_map: sum(batch)})
    assert found == 3


def test_a_sampler_for_very_many_processes_makes_no_list_for_them():
    if T.__name__ == "torch":
        pytest.skip("it makes the list")
    assert list(D.DistributedSampler(range(3), 2**40, 4, shuffle=False)) == [1]
