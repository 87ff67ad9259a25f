"""The bytes under tensors: `untyped_storage`, and how `resize_` and `set_` make them more for all who share them."""

import copy
import gc
import pathlib
import sys

import numpy as np
import pytest

from library import T, leaf

RESIZES = {
    "resize_": lambda x: x.resize_(100_000),
    "resize_as_": lambda x: x.resize_as_(T.empty(100_000, device=x.device)),
    "set_": lambda x: x.set_(x.untyped_storage(), 0, (100_000,)),
    "storage": lambda x: x.untyped_storage().resize_(400_000),
    "out": lambda x: T.add(T.zeros(100_000, device=x.device), 1, out=x),
}


@pytest.mark.parametrize("how", RESIZES)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_all_who_share_memory_see_it_grow(how, device):
    x = T.arange(4.0).to(device)
    others = [x[1:], x.view(2, 2), x.detach(), x.data, x.T if x.dim() == 2 else x.unsqueeze(0)]
    starts = [other.data_ptr() - x.data_ptr() for other in others]
    RESIZES[how](x)
    assert x.untyped_storage().nbytes() == 400_000
    assert [other.data_ptr() - x.data_ptr() for other in others] == starts
    x.fill_(5)
    assert all((other == 5).all() for other in others)
    others[0].fill_(6)
    assert x[:5].tolist() == [5.0, 6.0, 6.0, 6.0] + ([5.0] if x.numel() > 4 else [])


def test_growth_keeps_what_was_there():
    x = T.arange(4.0)
    for n in (5, 17, 1000, 100_000, 3_000_000):
        x.resize_(n)
        assert x[:4].tolist() == [0.0, 1.0, 2.0, 3.0] and x.untyped_storage().nbytes() == 4 * n
        x[4:] = 1.0
        assert float(x.sum()) == n + 2
    base = T.arange(6.0)
    view = base[2:4].resize_(3, 3)
    assert view.tolist()[0] == [2.0, 3.0, 4.0] and view.storage_offset() == 2
    view[2, 2] = 9
    assert base.untyped_storage().nbytes() == 44 and base.resize_(11)[10] == 9


def test_growth_counts_as_a_write_once():
    x = T.ones(2)
    view = x[:]
    x.resize_(2)
    assert x._version == 0
    x.resize_(50)
    assert (x._version, view._version) == (1, 1)
    x.untyped_storage().resize_(4000)
    assert x._version == 1


def test_what_a_derivative_saved_may_grow():
    x, w = T.ones(3), leaf([1.0, 2.0, 3.0])
    y = w * x
    x.untyped_storage().resize_(1 << 20)
    y.sum().backward()
    assert w.grad.tolist() == [1.0, 1.0, 1.0]
    w.untyped_storage().resize_(1 << 20)
    assert w.tolist() == [1.0, 2.0, 3.0] and w._version == 0
    y = w * x
    x.resize_(60_000)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_borrowed_memory_does_not_grow():
    array = np.ones(3, dtype=np.float32)
    x = T.from_numpy(array)
    assert not x.untyped_storage().resizable() and T.ones(1).untyped_storage().resizable()
    for grow in (lambda: x.resize_(10), lambda: x.untyped_storage().resize_(100)):
        with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
            grow()
    assert T.from_numpy(array).resize_(2).tolist() == [1.0, 1.0]


def test_sizes_of_a_storage():
    storage = T.ones(3).untyped_storage()
    assert storage.resize_(8) is storage and storage.nbytes() == len(storage) == storage.size() == 8
    with pytest.raises(RuntimeError, match="resize_ expects an int, but got str"):
        storage.resize_("8")
    with pytest.raises(RuntimeError):
        storage.resize_(-1)
    assert storage.resize_(0).tolist() == []
    assert T.UntypedStorage(4).nbytes() == 4 and T.UntypedStorage().nbytes() == 0


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_sizes_of_storages_count_their_bytes():
    few, many = T.ones(3), T.ones(1000)
    assert sys.getsizeof(many.untyped_storage()) - sys.getsizeof(few.untyped_storage()) == 3988
    assert sys.getsizeof(many.storage()) - sys.getsizeof(few.storage()) == 3988
    storage = few.untyped_storage()
    storage.owner = "me"
    assert few.untyped_storage().owner == "me"


def test_bytes_of_a_storage():
    x = T.arange(4, dtype=T.uint8)
    storage = x.untyped_storage()
    assert storage is x[1:].untyped_storage() and storage.untyped() is storage and storage.cpu() is storage
    assert (storage[1], storage[-1], list(storage)) == (1, 3, [0, 1, 2, 3])
    storage[0] = 9
    part = storage[1:3]
    part[0] = 7
    assert x.tolist() == [9, 7, 2, 3] and part.tolist() == [7, 2]
    with pytest.raises(IndexError, match="index 4 out of range for storage of size 4"):
        storage[4]
    assert storage.fill_(2) is storage and x.tolist() == [2, 2, 2, 2]
    assert storage.copy_(T.UntypedStorage([1, 2, 3, 4])) is storage and x.tolist() == [1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="size does not match, self was 4 bytes but src was 5 bytes"):
        storage.copy_(T.UntypedStorage(5))
    assert storage.element_size() == 1 and not storage.is_cuda


def test_copies_of_what_grew():
    x = T.arange(3.0)
    storage = x.untyped_storage()
    x.resize_(1000).fill_(3)
    made = copy.deepcopy(x)
    assert made.untyped_storage().nbytes() == storage.nbytes() == 4000 and made.tolist() == x.tolist()
    assert storage.clone().nbytes() == 4000


@pytest.mark.skipif(not pathlib.Path("/proc/self/statm").exists(), reason="told by Linux only")
def test_memory_of_what_shrank_is_given_back():
    def resident():
        return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096

    x = T.ones(1 << 25)
    gc.collect()
    before = resident()
    x.untyped_storage().resize_(0)
    assert before - resident() > 1 << 26
    x.untyped_storage().resize_(4 << 25)
    assert x.fill_(1).sum() == 1 << 25


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_elements_of_a_storage_as_others():
    storage = T.tensor([0.0, 2.0]).storage()
    kinds = {
        "double": T.float64,
        "float": T.float32,
        "half": T.float16,
        "bfloat16": T.bfloat16,
        "long": T.int64,
        "int": T.int32,
        "short": T.int16,
        "char": T.int8,
        "byte": T.uint8,
        "bool": T.bool,
        "complex_double": T.complex128,
        "complex_float": T.complex64,
    }
    for name, kind in kinds.items():
        other = getattr(storage, name)()
        assert other.dtype is kind and other.tolist() == T.tensor([0.0, 2.0]).to(kind).tolist()
        assert other.data_ptr() != storage.data_ptr()


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_old_constructors_share_a_storage():
    x = T.tensor([1.0, 2.0])
    whole = x.storage(), x.untyped_storage()
    for source in whole:
        for made in (T.FloatTensor(source), T.Tensor(source), x.new(source)):
            assert made.tolist() == [1.0, 2.0] and made.data_ptr() == x.data_ptr()
    assert T.IntTensor(whole[1]).tolist() == x.view(T.int32).tolist()
    with pytest.raises(RuntimeError, match="^Expected a Storage of type Double or an UntypedStorage, but got type Float"):
        T.DoubleTensor(whole[0])


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_set_takes_no_storage_of_another_dtype():
    x = T.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="^Expected a Storage of type float or an UntypedStorage, but got type Double"):
        x.set_(T.ones(2, dtype=T.float64).storage())
    assert x.tolist() == [1.0, 2.0]
    assert x.set_(T.tensor([3.0]).storage()).tolist() == [3.0]
