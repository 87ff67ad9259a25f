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
    with pytest.raises(AssertionError, match="ConcatDataset does not support IterableDataset"):
        D.ConcatDataset([Count(0, 1)])


def test_splits():
    parts = D.random_split(range(10), [0.33, 0.33, 0.34])
    assert [len(part) for part in parts] == [4, 3, 3] and sorted(i for part in parts for i in part.indices) == list(range(10))
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0. This might result in an empty dataset."):
        D.random_split(range(2), [0.9, 0.1])
    with pytest.raises(ValueError, match="Sum of input lengths does not equal the length of the input dataset!"):
        D.random_split(range(3), [1, 1])
    with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
        D.random_split(range(3), [1.5, -0.5])


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
