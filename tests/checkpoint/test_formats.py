"""Files of PyTorch's and ours: each is read by the other, and ours are PyTorch's byte for byte."""

import base64
import io
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


def test_one_memory_has_one_dtype():
    x = T.ones(2)
    with pytest.raises(
        RuntimeError, match="Cannot save multiple tensors or storages that view the same data as different types"
    ):
        saved([x, x.view(T.int32)])
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
    with open(tmp_path / "many.pt", "rb") as file:
        assert [T.load(file).tolist() for _ in range(3)] == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]


def test_after_other_things_in_a_file(tmp_path):
    with open(tmp_path / "x", "wb") as file:
        pickle.dump("before", file)
        T.save([T.ones(2)], file)
    with open(tmp_path / "x", "rb") as file:
        assert pickle.load(file) == "before"
        assert T.load(file)[0].tolist() == [1.0, 1.0]


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
