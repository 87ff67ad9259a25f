"""Pipes of data: what comes out is what PyTorch 2.15 printed for the same calls."""

import pytest

from library import T

iters = pytest.importorskip(f"{T.__name__}.utils.data.datapipes.iter")
maps = pytest.importorskip(f"{T.__name__}.utils.data.datapipes.map")
W, S = iters.IterableWrapper, maps.SequenceWrapper

pytestmark = pytest.mark.filterwarnings("ignore:Local function is not supported by pickle")


def odd(x):
    return x % 2


@pytest.mark.parametrize(
    "make, wanted",
    [
        (lambda: W(range(5)).batch(2), [[0, 1], [2, 3], [4]]),
        (lambda: W(range(5)).batch(2, drop_last=True), [[0, 1], [2, 3]]),
        (lambda: W(range(5)).batch(2).batch(2).unbatch(2), [0, 1, 2, 3, 4]),
        (lambda: W(range(5)).batch(2).batch(2).unbatch(-1), [0, 1, 2, 3, 4]),
        (lambda: W(range(5)).groupby(odd), [[0, 2, 4], [1, 3]]),
        (lambda: W(range(5)).groupby(odd, group_size=2), [[0, 2], [1, 3], [4]]),
        (lambda: W(range(3)).mux(W(range(10, 15))), [0, 10, 1, 11, 2, 12]),
        (lambda: W(range(3)).zip(W(range(10, 15))), [(0, 10), (1, 11), (2, 12)]),
        (lambda: W(range(2)).concat(W(range(10, 12))), [0, 1, 10, 11]),
        (lambda: W([(1, 2), (3, 4)]).map(lambda x: x * 10, input_col=0, output_col=1), [(1, 10), (3, 30)]),
        (lambda: W([(1, 2), (3, 4)]).map(lambda x, y: x + y, input_col=[0, 1], output_col=-1), [(1, 2, 3), (3, 4, 7)]),
        (lambda: W([(1, 2), (3, 4)]).map(lambda x, y: x + y, input_col=[0, 1]), [(3,), (7,)]),
        (lambda: W([{"a": 1}]).map(lambda x: x + 1, input_col="a", output_col="b"), [{"a": 1, "b": 2}]),
        (lambda: W([(0, 1), (1, 0)]).filter(bool, input_col=1), [(0, 1)]),
        (lambda: W(range(10)).shuffle().set_seed(0), [6, 7, 0, 3, 8, 5, 9, 2, 4, 1]),
        (lambda: W(range(10)).shuffle(buffer_size=3).set_seed(0), [1, 3, 0, 4, 2, 6, 8, 9, 7, 5]),
        (lambda: S(range(10)).shuffle().set_seed(0), [7, 8, 1, 5, 3, 4, 2, 0, 9, 6]),
        (lambda: S([1, 2, 3]).map(lambda x: x * 2).batch(2), [[2, 4], [6]]),
        (lambda: iters.Sampler(W(range(3))), [0, 1, 2]),
    ],
)
def test_samples(make, wanted):
    pipe = make()
    assert list(pipe) == wanted


def test_several_pipes_of_one():
    assert [list(part) for part in W(range(5)).fork(2)] == [[0, 1, 2, 3, 4]] * 2
    assert [list(part) for part in W(range(5)).demux(2, odd)] == [[0, 2, 4], [1, 3]]
    with pytest.raises(BufferError, match="overflow"):
        list(W(range(5)).fork(2, buffer_size=1)[0])


def test_collate_and_loaders():
    first, second = W(range(4)).batch(2).collate()
    assert first.tolist() == [0, 1] and second.tolist() == [2, 3]
    batches = T.utils.data.DataLoader(W(range(5)).map(lambda x: x * 2), batch_size=2)
    assert [batch.tolist() for batch in batches] == [[0, 2], [4, 6], [8]]


def test_maps_by_index():
    assert S([1, 2]).zip(S("abc"))[1] == (2, "b") and S([1, 2]).concat(S("abc"))[3] == "b"
    with pytest.raises(IndexError):
        S([1, 2])[5]


def test_shards():
    pipe = W(range(7)).sharding_filter()
    assert list(pipe) == list(range(7))
    pipe.apply_sharding(3, 1)
    assert list(pipe) == [1, 4] and len(pipe) == 2


def test_own_pipes_are_methods():
    class Squares(T.utils.data.IterDataPipe):
        def __iter__(self):
            return (x * x for x in range(4))

    assert list(Squares().filter(lambda x: x > 1).batch(2)) == [[4, 9]]
    with pytest.raises(AttributeError, match="'Squares' object has no attribute 'nothing"):
        Squares().nothing  # noqa: B018


def test_refusals():
    for make, error, text in (
        (lambda: W(1).batch(0), AssertionError, "Batch size is required to be larger than 0!"),
        (lambda: len(W(iter([1]))), TypeError, "doesn't have valid length"),
        (lambda: list(W(range(3)).filter(lambda x: 3)), ValueError, "Boolean output is required"),
        (lambda: list(W(range(5)).batch(2).unbatch(3)), IndexError, "exceeds the depth of the DataPipe"),
        (lambda: iters.Zipper(3), TypeError, "All inputs are required to be `IterDataPipe`"),
    ):
        with pytest.raises(error, match=text):
            make()
