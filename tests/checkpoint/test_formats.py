"""Files of PyTorch's and ours: each is read by the other, and ours are PyTorch's byte for byte."""

import base64
import copy
import gzip
import importlib
import io
import os
import pickle
import struct
import tarfile
import zipfile
import zlib

import golden_file
import pytest
from checkpoint_cases import CASES, OPTIMIZERS, Training, describe

from library import IS_GRADIRON, T

FILES = {name: zlib.decompress(base64.b85decode(text)) for name, text in golden_file.read("checkpoints.json").items()}


def saved(obj, **options):
    file = io.BytesIO()
    T.save(obj, file, **options)
    return file.getvalue()


def loaded(data, **options):
    return T.load(io.BytesIO(data), **options)


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_pytorch_files_are_read(name, weights_only):
    found = loaded(FILES[name], weights_only=weights_only)
    assert describe(found, T) == describe(CASES[name](T), T)


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_is_what_pytorch_writes(name):
    ours, theirs = saved(CASES[name](T), _use_new_zipfile_serialization=name != "legacy"), FILES[name]
    if name == "legacy":
        assert len(ours) - len(theirs) == 0 or not ours.startswith(b"PK")  # Its keys are addresses.
        assert describe(loaded(ours), T) == describe(loaded(theirs), T)
        return
    parts = [zipfile.ZipFile(io.BytesIO(data)) for data in (ours, theirs)]
    ours, theirs = ([(e.filename, e.header_offset, e.file_size, part.read(e)) for e in part.infolist()] for part in parts)
    assert ours[:-1] == theirs[:-1]
    # The last record is a number of the file's own.
    assert ours[-1][:3] == theirs[-1][:3]


@pytest.mark.parametrize(
    "options", [{}, {"pickle_protocol": 4}, {"pickle_protocol": 3}, {"_use_new_zipfile_serialization": False}]
)
@pytest.mark.parametrize("name", CASES)
def test_round_trips(name, options):
    made = CASES[name](T)
    safe = options.get("pickle_protocol") is None
    assert describe(loaded(saved(made, **options), weights_only=safe), T) == describe(made, T)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_from_a_file_of_pytorchs(name):
    state = loaded(FILES["training"])[name]
    made = Training(T, name).load(state).steps(3, 6).state()
    assert describe(made, T) == describe(loaded(FILES["further"])[name], T)


def test_what_shares_memory_goes_on_sharing_it():
    x = T.arange(6.0)
    a, b, c = loaded(saved([x, x[2:], T.ones(2)]))
    a[3] = 100.0
    assert b.tolist() == [2.0, 100.0, 4.0, 5.0] and c.tolist() == [1.0, 1.0]
    # All of the memory is saved, also of a part.
    assert loaded(saved(x[:1])).untyped_storage().nbytes() == 24


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_one_memory_has_one_dtype():
    x = T.ones(2)
    z = T.ones(2, dtype=T.complex128)
    message = "Cannot save multiple tensors or storages that view the same data as different types"
    for pair in ([x, x.view(T.int32)], [z, z.imag], [z.storage(), z.imag], [z, z.imag.storage()]):
        with pytest.raises(RuntimeError, match=message):
            saved(pair)
    assert [t.dtype for t in loaded(saved([T.empty(0), T.empty(0, dtype=T.int64)]))] == [T.float32, T.int64]


def test_history_is_not_saved():
    x = T.ones(2, requires_grad=True)
    y = loaded(saved(x * 2))
    assert y.is_leaf and y.requires_grad and y.tolist() == [2.0, 2.0]
    x.grad = T.ones(2)
    assert loaded(saved(x)).grad is None


def test_hooks_are_not_saved():
    x = T.ones(1, requires_grad=True)
    x.register_hook(print)
    with pytest.warns(UserWarning, match="backward hook .* on tensor will not be serialized"):
        data = saved(x)
    assert not loaded(data)._backward_hooks


class Marked(T.Tensor):
    pass


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


def test_objects_of_the_user():
    x = T.ones(2).as_subclass(Marked)
    x.note = "kept"
    made = {"tensor": x, "object": Slotted(T.ones(1), 2), "function": describe, "class": Slotted}
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        loaded(saved(made))
    found = loaded(saved(made), weights_only=False)
    assert type(found["tensor"]) is Marked and found["tensor"].note == "kept"
    assert (found["object"].a.tolist(), found["object"].b) == ([1.0], 2)
    assert found["function"] is describe and found["class"] is Slotted


class Slotful(T.Tensor):
    __slots__ = ("mine",)


class Telling(T.Tensor):
    """It says itself what a pickle is to hold."""

    def __getstate__(self):
        return "told", self.__dict__

    def __setstate__(self, state):
        word, self.__dict__ = state
        self.found = word


class Special(T.nn.Parameter):
    pass


WAYS = {
    "file": lambda x: loaded(saved(x), weights_only=False),
    "old file": lambda x: loaded(saved(x, _use_new_zipfile_serialization=False), weights_only=False),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "copy": copy.copy,
}


@pytest.mark.parametrize("way", WAYS)
def test_what_hangs_on_a_tensor_goes_with_it(way):
    go = WAYS[way]
    slotted, telling = T.ones(2).as_subclass(Slotful), T.ones(2).as_subclass(Telling)
    slotted.mine, slotted.more, telling.note = 3, 4, 5
    found = go(slotted)
    assert (type(found), found.mine, found.more) == (Slotful, 3, 4)
    found = go(telling)
    assert (type(found), found.note, found.found) == (Telling, 5, "told")
    for made in (T.tensor([1 + 2j]).conj(), T.tensor([1 + 2j]).conj().imag, T.ones(2, device="meta")):
        made.note = "kept"
        found = go(made)
        assert (found.is_conj(), found.is_neg(), found.device) == (made.is_conj(), made.is_neg(), made.device)
        assert found.note == "kept"
    # An optimizer takes it.
    special = Special(T.ones(2))
    special.note = "kept"
    found = go(special)
    assert isinstance(found, T.nn.Parameter) and found.is_leaf and found.requires_grad and found.note == "kept"


def test_deep_copies_of_what_hangs_on_a_tensor(monkeypatch):
    monkeypatch.setattr(Slotful, "clone", lambda self: self.detach().as_subclass(Slotful), raising=False)
    monkeypatch.setattr(Slotful, "new_empty", lambda self, shape: T.empty(shape).as_subclass(Slotful), raising=False)
    made = T.ones(2).as_subclass(Slotful)
    made.mine, made.more = [3], [4]
    found = copy.deepcopy(made)
    assert type(found) is Slotful and found.mine == [3] and found.more == [4]
    assert found.mine is not made.mine and found.more is not made.more


class Ancient:
    """How tensors were pickled long ago: an empty one, and then the storage; later, a call with all of it."""

    def __init__(self, tensor, call):
        self.tensor, self.call = tensor, call

    def __reduce__(self):
        x = self.tensor
        state = x.storage(), x.storage_offset(), tuple(x.shape), x.stride()
        return (T.Tensor, (), state) if self.call is None else (self.call, state)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("weights_only", [True, False])
def test_tensors_as_they_were_pickled_long_ago(weights_only):
    rebuild = importlib.import_module(T.__name__ + "._utils")._rebuild_tensor
    x = T.arange(30.0).as_strided([2, 3], [9, 3], 2)
    for call in (None, rebuild):
        found = loaded(saved(Ancient(x, call)), weights_only=weights_only)
        assert found.tolist() == x.tolist() and found.stride() == (9, 3) and found.storage_offset() == 2
        assert len(found.storage()) == 30


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}])
@pytest.mark.parametrize("weights_only", [True, False])
def test_storages_and_tensors_over_them(weights_only, options):
    a, b = T.arange(25.0).reshape(5, 5), T.arange(3.0)
    one, two = T.FloatTensor().set_(b.storage(), 0, (3,), (1,)), T.FloatTensor().set_(b.clone().storage(), 0, (3,), (1,))
    made = [a, a.storage(), a.reshape(-1)[1:4].storage(), one.storage(), one.storage(), two.storage()]
    x, whole, part, first, again, other = loaded(saved(made, **options), weights_only=weights_only)
    assert isinstance(x, T.FloatTensor) and isinstance(whole, T.storage.TypedStorage) and whole.dtype == T.float32
    x.fill_(10)
    assert whole.tolist() == part.tolist() == [10.0] * 25 and part.data_ptr() == x.data_ptr()
    assert first.data_ptr() == again.data_ptr() != other.data_ptr() and first.tolist() == other.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("weights_only", [True, False])
def test_tensors_without_elements(weights_only):
    state = T.nn.Conv2d(20_000, 320_000, 3, device="meta").state_dict()
    found = loaded(saved(state), weights_only=weights_only)
    assert {name: (x.shape, x.stride(), x.is_meta) for name, x in found.items()} == {
        name: (x.shape, x.stride(), True) for name, x in state.items()
    }
    wanted = T.ones(2, device="meta", requires_grad=True)
    assert loaded(saved(wanted), weights_only=weights_only).requires_grad and copy.deepcopy(wanted).requires_grad
    assert loaded(saved(wanted), map_location="cpu").is_meta


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages():
    x = T.arange(3.0)
    storage, y = loaded(saved([x.untyped_storage(), T.ones(1)]), weights_only=False)
    assert isinstance(storage, T.storage.TypedStorage) and storage.nbytes() == 12
    assert y.tolist() == [1.0]


def test_names_of_the_format():
    with zipfile.ZipFile(io.BytesIO(saved([T.ones(1), T.float32, T.nn.Parameter(T.ones(1)), T.Size([1])]))) as file:
        assert b"gradiron" not in b"".join(map(file.read, file.namelist()))
        assert {name.partition("/")[0] for name in file.namelist()} == {"archive"}


def test_names_by_path(tmp_path):
    for name, inside in (("model.pt", "model"), ("a.b.pt", "a.b"), ("plain", "plain"), ("ü.pt", "archive")):
        T.save(T.ones(1), tmp_path / name)
        assert zipfile.ZipFile(tmp_path / name).namelist()[0] == f"{inside}/data.pkl"
        assert T.load(tmp_path / name).tolist() == [1.0]


def test_many_in_one_file_of_the_old_format(tmp_path):
    with open(tmp_path / "many.pt", "wb") as file:
        for i in range(3):
            T.save(T.full((2,), float(i)), file, _use_new_zipfile_serialization=False)
    with open(tmp_path / "many.pt", "rb") as file, gzip.open(tmp_path / "many.gz", "wb") as packed:
        assert [T.load(file).tolist() for _ in range(3)] == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
        file.seek(0)
        packed.write(file.read())
    with gzip.open(tmp_path / "many.gz", "rb") as file:
        assert [T.load(file).tolist() for _ in range(3)] == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]


def test_after_other_things_in_a_file(tmp_path):
    with open(tmp_path / "x", "wb") as file:
        pickle.dump("before", file)
        T.save([T.ones(2)], file)
    with open(tmp_path / "x", "rb") as file:
        assert pickle.load(file) == "before"
        assert T.load(file)[0].tolist() == [1.0, 1.0]


class WithHoles:
    """A file in which many zeros take no room."""

    def __init__(self, path):
        self.file = open(path, "wb")

    def write(self, data):
        if len(data) < 1 << 20:
            self.file.write(data)
        else:
            self.file.seek(len(data), os.SEEK_CUR)


@pytest.mark.gradiron
def test_more_than_four_gib(tmp_path, monkeypatch):
    writer, count = T.serialization._archive.Writer, (1 << 32) + 10
    record = writer.record
    monkeypatch.setattr(writer, "record", lambda self, name, data, **_: record(self, name, data, skip=name == "data/0"))
    target = WithHoles(tmp_path / "large.pt")
    T.save([T.empty(count, dtype=T.uint8), T.arange(3.0), T.ones(2, dtype=T.int64)], target)
    target.file.close()
    # PyTorch reads it so, too.
    large, x, y = T.load(tmp_path / "large.pt", mmap=True)
    assert large.shape == (count,) and large[-1] == 0 and x.tolist() == [0.0, 1.0, 2.0] and y.tolist() == [1, 1]


def tar_file():
    """As PyTorch 0.1 wrote files; nobody does any more."""

    def pickles(*objects):
        return b"".join(pickle.dumps(obj, 2) for obj in objects)

    class Named(pickle._Pickler):
        def save(self, obj, save_persistent_id=True):
            return super().save(obj)

        def persistent_id(self, obj):
            return obj.key if isinstance(obj, Ref) else None

        def save_global(self, obj, name=None):
            self.write(b"ctorch\nFloatStorage\n")

        dispatch = {**pickle._Pickler.dispatch, type: save_global}

    class Ref:
        def __init__(self, key):
            self.key = key

    def named(obj):
        out = io.BytesIO()
        Named(out, 2).dump(obj)
        return out.getvalue()

    storages = pickles(1) + named((7, "cpu", Ref)) + struct.pack("<q4f", 4, 0, 1, 2, 3) + pickles([(8, 7, 2, 2)])
    tensors = pickles(2)
    for key, owner, shape, stride, offset in ((20, 7, (2, 2), (2, 1), 0), (21, 8, (2,), (1,), 0)):
        tensors += named((key, owner, Ref)) + struct.pack(f"<ii{2 * len(shape) + 1}q", len(shape), 0, *shape, *stride, offset)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:") as tar:
        for name, data in (("storages", storages), ("tensors", tensors), ("pickle", named({"x": Ref(20), "y": Ref(21)}))):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return made.getvalue()


def test_the_oldest_format(tmp_path):
    (tmp_path / "old.pt").write_bytes(tar_file())
    with pytest.raises(RuntimeError, match="Cannot use ``weights_only=True`` with files saved in the legacy .tar format"):
        T.load(tmp_path / "old.pt")
    if not IS_GRADIRON:
        return  # PyTorch's own reader of it does not work any more.
    found = T.load(tmp_path / "old.pt", weights_only=False)
    assert found["x"].tolist() == [[0.0, 1.0], [2.0, 3.0]] and found["y"].tolist() == [2.0, 3.0]
    found["x"][1, 0] = 9
    assert found["y"].tolist() == [9.0, 3.0]


@pytest.mark.gradiron
def test_pickles_of_tensors_stay_what_they_were():
    x = T.arange(4.0)
    a, b = pickle.loads(pickle.dumps([x, x[1:]]))
    a[1] = 7
    assert b[0] == 7
    assert pickle.loads(pickle.dumps(T.nn.Parameter(x))).requires_grad


def tagged(rebuild, args, tag):
    made = rebuild(*args)
    made.tag = tag
    return made


class Tagged(T.Tensor):
    """It hands on what a tensor makes of itself."""

    def __reduce_ex__(self, protocol):
        rebuild, args, *_ = super().__reduce_ex__(protocol)
        return tagged, (rebuild, args, "kept")


class Boxed:
    """It holds a tensor's reduction, and comes back as the tensor."""

    def __init__(self, inner):
        self.inner = inner

    def __reduce__(self):
        rebuild, args, *_ = self.inner.__reduce_ex__(2)
        return tagged, (rebuild, args, "boxed")


@pytest.mark.parametrize(
    "options", [{}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4}], ids=["file", "old file", "protocol 4"]
)
def test_what_wraps_a_tensors_reduction_is_saved_by_names_that_load(options):
    lazy = T.tensor([1 + 2j]).conj()
    for inner in (T.ones(2), T.ones(2, requires_grad=True), T.ones(2).as_subclass(Tagged), T.nn.Parameter(T.ones(2)), lazy):
        data = saved(Boxed(inner), **options)
        archive = zipfile.ZipFile(io.BytesIO(data)) if data[:2] == b"PK" else None
        pickled = archive.read("archive/data.pkl") if archive else data
        assert b"_rebuild" in pickled and b"\nrebuild" not in pickled and b"gradiron" not in pickled
        found = loaded(data, weights_only=False)
        assert (found.tag, found.tolist(), found.requires_grad) == ("boxed", inner.tolist(), inner.requires_grad)
        assert type(found) is type(inner)
    found = loaded(saved([T.ones(2).as_subclass(Tagged)], **options), weights_only=False)[0]
    assert (type(found), found.tag, found.tolist()) == (Tagged, "kept", [1.0, 1.0])


@pytest.mark.gradiron
def test_a_failed_save_leaves_pickles_as_they_were():
    plain = pickle.dumps(T.ones(2))
    with pytest.raises(Exception, match="pickle"):
        saved([T.ones(2), lambda: None])
    assert pickle.dumps(T.ones(2)) == plain
