"""Where `load` reads from and puts what it reads: files of every kind, `map_location`, maps, byte orders, packages."""

import importlib
import io
import mmap
import os
import pathlib
import pickle
import zipfile

import pytest

from library import IS_GRADIRON, NO_GPU, T, python_ok


def saved(obj, **options):
    file = io.BytesIO()
    T.save(obj, file, **options)
    file.seek(0)
    return file


class Bare:
    """A file that has only what is needed."""

    def __init__(self, file):
        for name in ("read", "readline", "seek", "tell", "write"):
            setattr(self, name, getattr(file, name))


def test_paths_and_files(tmp_path):
    x = T.arange(5.0)
    for where in (tmp_path / "a.pt", str(tmp_path / "b.pt")):
        T.save(x, where)
        assert T.load(where).tolist() == x.tolist()
        with open(where, "rb") as file:
            assert T.load(file).tolist() == x.tolist()
        assert T.load(io.BytesIO(pathlib.Path(where).read_bytes())).tolist() == x.tolist()
    with open(tmp_path / "c.pt", "wb") as file:
        T.save(x, file)
    assert T.load(tmp_path / "c.pt").tolist() == x.tolist()


@pytest.mark.gradiron
def test_files_that_have_little():
    x = T.arange(500.0)
    target = Bare(io.BytesIO())
    T.save(x, target)
    target.seek(0)
    assert T.load(target).tolist() == x.tolist()


class Told(Bare):
    """The same, and it says what was asked of it."""

    def __init__(self, data, *more):
        self.asked, file = set(), io.BytesIO(data)
        for name in ("read", "readline", "seek", "tell", "write", "flush", *more):
            setattr(self, name, self.noted(name, getattr(file, name)))

    def noted(self, name, function):
        return lambda *args: (self.asked.add(name), function(*args))[1]

    def fileno(self):
        raise io.UnsupportedOperation("no file")


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}])
def test_what_is_asked_of_files(options):
    target, x = Told(b""), T.arange(500.0)
    T.save(x, target, **options)
    assert target.asked <= {"write", "flush"}
    target.seek(0)
    data, target.asked = target.read(), set()
    target.seek(0)
    assert T.load(target).tolist() == x.tolist() and target.asked <= {"read", "readline", "seek", "tell"}
    source = Told(data, "readinto")
    assert T.load(source).tolist() == x.tolist() and (options or "readinto" in source.asked)


def test_what_only_looks_like_a_target():
    x = T.ones(3)
    for write, kind in ((None, AttributeError), ("text", TypeError), (str.__add__, TypeError)):
        if write is not None:
            x.write = write
        with pytest.raises(kind):
            T.save("text", x)
    for target in (T.ones(3).untyped_storage(), T.ones(3).numpy(), None):
        with pytest.raises(AttributeError):
            T.save("text", target)


def test_compressed_files(tmp_path):
    import gzip

    x = T.arange(500.0)
    with gzip.open(tmp_path / "x.gz", "wb") as file:
        T.save(x, file)
    with gzip.open(tmp_path / "x.gz", "rb") as file:
        assert T.load(file).tolist() == x.tolist()


def test_archives_that_were_packed_again():
    x = T.zeros(1000)
    source, packed = zipfile.ZipFile(saved([x, T.ones(3)])), io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    assert len(packed.getvalue()) < 2000
    packed.seek(0)
    a, b = T.load(packed)
    assert a.tolist() == x.tolist() and b.tolist() == [1.0, 1.0, 1.0]


def test_what_is_no_file():
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object with a 'write' attribute"):
        T.save(T.ones(1), 5)
    with pytest.raises(FileNotFoundError):
        T.load("nowhere/x.pt")

    class Stream(io.RawIOBase):
        def readable(self):
            return True

    with pytest.raises((io.UnsupportedOperation, AttributeError), match="You can only torch.load from a file that is seekable"):
        T.load(Stream())


def test_the_position_of_the_file_counts():
    file = io.BytesIO(b"before" + saved(T.ones(2)).getvalue())
    file.seek(6)
    assert T.load(file).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "where",
    ["cpu", T.device("cpu"), {"cuda:0": "cpu"}, {"cpu": "cpu"}, lambda storage, location: storage, lambda s, place: None],
)
def test_map_location(where):
    assert T.load(saved(T.arange(3.0)), map_location=where).tolist() == [0.0, 1.0, 2.0]


def test_map_location_is_told_of_each_storage():
    told = []

    def where(storage, location):
        told.append((type(storage).__name__, location, storage.nbytes()))
        return storage

    x = T.ones(3)
    T.load(saved([x, x[1:], T.ones(2, dtype=T.int64)]), map_location=where)
    assert told == [("UntypedStorage", "cpu", 12), ("UntypedStorage", "cpu", 16)]


def test_map_location_to_nowhere():
    with pytest.raises(
        RuntimeError, match=r"don't know how to restore data location of torch.storage.UntypedStorage \(tagged with"
    ):
        T.load(saved(T.ones(1)), map_location="nowhere")
    with pytest.raises(RuntimeError, match="tagged with moon"):
        T.load(saved(T.ones(1)), map_location={"cpu": "moon"})


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}])
@pytest.mark.parametrize("kind", [ZeroDivisionError, KeyError, TypeError, OSError])
def test_errors_of_map_location_stay_what_they_are(kind, options):
    def where(storage, location):
        raise kind("mine")

    data = saved(T.ones(1), **options)
    with pytest.raises(kind, match="mine"):
        T.load(data, map_location=where)
    data.seek(0)
    with pytest.raises(TypeError, match="'int' object is not callable"):
        T.load(data, map_location=3)


@pytest.mark.parametrize(("new", "mapped"), [(True, False), (True, True), (False, False)])
def test_the_default_device_is_not_where_files_are_read_to(tmp_path, new, mapped):
    T.save(T.arange(3.0), tmp_path / "x.pt", _use_new_zipfile_serialization=new)
    with T.device("meta"):
        found = T.load(tmp_path / "x.pt", mmap=mapped)
    assert found.tolist() == [0.0, 1.0, 2.0]


def test_mapped_weights_become_a_module_s(tmp_path):
    made = T.nn.Linear(4, 3)
    T.save(made.state_dict(), tmp_path / "x.pt")
    with T.device("meta"):
        empty = T.nn.Linear(4, 3)
    empty.load_state_dict(T.load(tmp_path / "x.pt", mmap=True), assign=True)
    assert empty(T.ones(4)).tolist() == made(T.ones(4)).tolist()


on_gpu = pytest.mark.skipif(not IS_GRADIRON or NO_GPU, reason="needs gradiron's GPU")


@on_gpu
@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}])
def test_gpu_tensors(options):
    x = T.arange(6.0).reshape(2, 3).to("cuda")
    made = {"x": x, "part": x[1], "turned": x.t(), "flags": x > 2, "integers": T.arange(3).to("cuda"), "p": T.nn.Parameter(x)}
    data = saved(made, **options)
    found = T.load(data)
    for name, tensor in made.items():
        assert found[name].device == tensor.device and found[name].stride() == tensor.stride(), name
        assert found[name].tolist() == tensor.tolist(), name
    assert found["x"].untyped_storage().data_ptr() == found["part"].untyped_storage().data_ptr()
    data.seek(0)
    here = T.load(data, map_location="cpu")
    assert {t.device.type for t in here.values()} == {"cpu"}
    assert {name: t.tolist() for name, t in here.items()} == {name: t.tolist() for name, t in made.items()}
    here["x"][1, 0] = 77
    assert here["part"][0] == 77


@on_gpu
def test_to_the_gpu():
    for where in ("cuda", "cuda:0", T.device("cuda"), {"cpu": "cuda:0"}, lambda storage, _: storage.cuda()):
        x, y = T.load(saved([T.ones(3), T.ones(2, dtype=T.bool)]), map_location=where)
        assert str(x.device) == str(y.device) == "cuda:0" and x.tolist() == [1.0, 1.0, 1.0] and y.tolist() == [True, True]


@on_gpu
def test_names_of_the_gpu_are_pytorchs_in_files():
    made = [T.ones(1, device="gpu"), T.device("wgpu:0")]
    data = saved(made)
    assert b"cuda" in data.getvalue() and b"gpu" not in data.getvalue()
    x, place = T.load(data)
    assert str(x.device) == "cuda:0" and place == T.device("cuda:0")


@on_gpu
def test_a_gpu_that_is_not_there():
    data = saved(T.ones(1, device="cuda")).getvalue()
    with pytest.raises(
        RuntimeError, match=r"Attempting to deserialize object on CUDA device 7 but torch.cuda.device_count\(\) is 1"
    ):
        T.load(io.BytesIO(data), map_location="cuda:7")
    code = f"""
import io
try: T.load(io.BytesIO({data!r}))
except RuntimeError as error: print(error)
print(T.load(io.BytesIO({data!r}), map_location="cpu"))
"""
    out = python_ok(code, env={"GRADIRON_SOFTWARE_GPU": "0", "VK_ICD_FILENAMES": "/nowhere", "VK_DRIVER_FILES": "/nowhere"})
    assert "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False" in out
    assert "tensor([1.])" in out


def test_registered_packages():
    tagged = []

    def tag(storage):
        tagged.append(storage.nbytes())
        return "shelf" if storage.nbytes() == 28 else None

    def put(storage, location):
        return storage if location == "shelf" else None

    registry = T.serialization._package_registry if not IS_GRADIRON else T.serialization._map_location._registry
    T.serialization.register_package(5, tag, put)
    try:
        data = saved(T.ones(7))
        assert tagged and b"shelf" in data.getvalue()
        assert T.load(data).tolist() == [1.0] * 7
        assert T.serialization.location_tag(T.ones(7).untyped_storage()) == "shelf"
        assert T.serialization.location_tag(T.ones(6).untyped_storage()) == "cpu"
    finally:
        registry[:] = [entry for entry in registry if entry[0] != 5]
    data.seek(0)
    with pytest.raises(RuntimeError, match="tagged with shelf"):
        T.load(data)
    data.seek(0)
    assert T.load(data, map_location="cpu").tolist() == [1.0] * 7


def test_maps(tmp_path):
    path = tmp_path / "x.pt"
    x = T.arange(1000.0)
    T.save({"x": x, "part": x[10:20], "e": T.empty(0), "i": T.arange(3, dtype=T.int8)}, path)
    before = path.read_bytes()
    found = T.load(path, mmap=True)
    assert (
        found["x"].tolist() == x.tolist() and found["part"].tolist() == x[10:20].tolist() and found["i"].tolist() == [0, 1, 2]
    )
    assert found["e"].shape == (0,)
    # What is written stays in this process.
    found["x"][10] = -1
    assert found["part"][0] == -1 and path.read_bytes() == before
    assert not found["x"].untyped_storage().resizable()
    os.unlink(path)
    assert found["x"][999] == 999
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        T.load(saved(x), mmap=True)
    T.save(x, path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
        T.load(path, mmap=True)


def test_shared_maps(tmp_path):
    path = tmp_path / "x.pt"
    T.save(T.zeros(4), path)
    assert T.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    with T.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        T.load(path, mmap=True)[1] = 5
    assert T.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    if not IS_GRADIRON:
        return
    # The file is changed, and so its checksum does not fit any more.
    with pytest.raises(RuntimeError, match="checksum"):
        T.load(path)
    assert T.load(path, mmap=True).tolist() == [0.0, 5.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got 77"):
        T.serialization.set_default_mmap_options(77)


@pytest.mark.gradiron
def test_maps_read_nothing_that_is_not_used(tmp_path):
    out = python_ok(f"""
T.save(T.zeros(64 << 20, dtype=T.uint8), {str(tmp_path / "big.pt")!r})
gc.collect()
def resident():
    return [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssFile")][0]
before = resident()
x = T.load({str(tmp_path / "big.pt")!r}, mmap=True)
print(resident() - before < 8000, x[1 << 20].item(), x.is_contiguous())
""")
    assert out.split() == ["True", "0", "True"]


def swapped(data):
    """The same file as a machine of the other byte order would have written it, for four-byte elements."""
    source, target = zipfile.ZipFile(data), io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        for name in source.namelist():
            content = source.read(name)
            if "/data/" in name:
                content = b"".join(content[i : i + 4][::-1] for i in range(0, len(content), 4))
            if not name.endswith("byteorder"):
                file.writestr(name, content)
            elif data.name == "told":
                file.writestr(name, b"big")
    return io.BytesIO(target.getvalue())


def test_byte_orders():
    kinds = T.serialization.LoadEndianness
    plain = saved(T.arange(3.0))
    plain.name = "told"
    told = swapped(plain)
    plain.name = "untold"
    untold = swapped(plain)
    assert T.load(told).tolist() == [0.0, 1.0, 2.0]
    assert T.serialization.get_default_load_endianness() is None
    try:
        T.serialization.set_default_load_endianness(kinds.BIG)
        assert T.load(untold).tolist() == [0.0, 1.0, 2.0]
        T.serialization.set_default_load_endianness(kinds.NATIVE)
        untold.seek(0)
        assert T.load(untold).tolist() != [0.0, 1.0, 2.0]
    finally:
        T.serialization.set_default_load_endianness(None)
    with pytest.raises(TypeError, match="Invalid argument type in function set_default_load_endianness"):
        T.serialization.set_default_load_endianness("big")
    x = T.tensor([1 + 2j, 3 - 4j])
    x.untyped_storage().byteswap(T.complex64)
    x.untyped_storage().byteswap(T.complex64)
    assert x.tolist() == [1 + 2j, 3 - 4j]


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16", "complex64", "int16", "int64", "uint8", "bool"])
def test_bytes_of_every_dtype_are_turned(name):
    x = T.arange(4).to(getattr(T, name))
    size = x.element_size() // (2 if x.is_complex() else 1)
    source, target = zipfile.ZipFile(saved(x)), io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        for part in source.namelist():
            content = source.read(part)
            if "/data/" in part:
                content = b"".join(content[i : i + size][::-1] for i in range(0, len(content), size))
            file.writestr(part, b"big" if part.endswith("byteorder") else content)
    target.seek(0)
    assert T.load(target).tolist() == x.tolist()


def test_the_mark_of_the_byte_order_comes_last():
    data = saved(T.ones(2), _disable_byteorder_record=True)
    names = [name.partition("/")[2] for name in zipfile.ZipFile(data).namelist()]
    assert names[-4:] == ["data/0", "version", "byteorder", ".data/serialization_id"]
    data.seek(0)
    assert T.load(data).tolist() == [1.0, 1.0]


def test_skipped_data():
    x = T.arange(1.0, 4.0)
    with T.serialization.skip_data():
        empty = saved(x)
    assert len(empty.getvalue()) == len(saved(x).getvalue())
    assert T.load(empty).tolist() == [0.0, 0.0, 0.0]
    with T.serialization.skip_data():
        assert T.load(saved(x)).shape == (3,)
        whole, part = T.load(saved([x, x[1:]]))
        assert whole.untyped_storage().data_ptr() == part.untyped_storage().data_ptr()
        with pytest.warns(UserWarning, match="meta device under skip_data context manager is a no-op"):
            assert T.load(saved(T.ones(2, device="meta"))).is_meta
        with pytest.raises(RuntimeError, match="Cannot use skip_data=True with _use_new_zipfile_serialization=False"):
            T.save(x, io.BytesIO(), _use_new_zipfile_serialization=False)


def test_checksums_can_be_left_out():
    assert T.serialization.get_crc32_options() is True
    T.serialization.set_crc32_options(False)
    try:
        data = saved(T.arange(3.0))
    finally:
        T.serialization.set_crc32_options(True)
    assert {entry.CRC for entry in zipfile.ZipFile(data).infolist()} == {0}
    data.seek(0)
    assert T.load(data).tolist() == [0.0, 1.0, 2.0]


def test_options_of_the_whole_program(tmp_path):
    config = importlib.import_module(T.__name__ + ".utils.serialization").config
    path = tmp_path / "x.pt"
    config.save.storage_alignment = 4096
    try:
        T.save([T.arange(3.0), T.ones(2)], path)
        data = path.read_bytes()
        for value in (T.arange(3.0), T.ones(2)):
            assert data.find(value.numpy().tobytes()) % 4096 == 0
        assert [x.tolist() for x in T.load(path)] == [[0.0, 1.0, 2.0], [1.0, 1.0]]
        config.load.mmap = True
        with T.serialization.set_default_mmap_options(mmap.MAP_SHARED):
            T.load(path)[0][0] = 7
        assert T.load(path)[0][0] == 7
        config.save.compute_crc32 = False
        assert T.serialization.get_crc32_options() is False
        config.load.endianness = T.serialization.LoadEndianness.BIG
        assert T.serialization.get_default_load_endianness() is T.serialization.LoadEndianness.BIG
    finally:
        config.save.storage_alignment, config.save.compute_crc32 = 64, True
        config.load.mmap, config.load.endianness = False, None


def test_other_pickle_modules():
    import types

    class Pickler(pickle.Pickler):
        pass

    class Unpickler(pickle.Unpickler):
        def find_class(self, module, name):
            seen.append(name)
            return super().find_class(module, name)

    seen = []
    mine = types.ModuleType("mine")
    mine.Pickler, mine.Unpickler, mine.load, mine.dump, mine.dumps = Pickler, Unpickler, pickle.load, pickle.dump, pickle.dumps
    data = saved([T.ones(2), pathlib.PurePosixPath("x")], pickle_module=mine)
    x, path = T.load(data, pickle_module=mine)
    assert x.tolist() == [1.0, 1.0] and path == pathlib.PurePosixPath("x") and "PurePosixPath" in seen


def test_old_and_odd_names():
    raw = b"\x80\x02ctorch.tensor\n_rebuild_from_type_v2\n."
    head = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2) + pickle.dumps({}, 2)
    if IS_GRADIRON:
        found = T.load(io.BytesIO(head + raw + pickle.dumps([], 2)), weights_only=False)
        assert found.__name__ == "_rebuild_from_type_v2"
    missing = b"\x80\x02ctorch.nn.modules.nowhere\nNothing\n."
    with pytest.raises((AttributeError, ModuleNotFoundError)):
        T.load(io.BytesIO(head + missing + pickle.dumps([], 2)), weights_only=False)


def test_files_as_memory(tmp_path):
    path = tmp_path / "numbers"
    x = T.from_file(str(path), shared=True, size=3, dtype=T.int32)
    x.fill_(5)
    assert path.read_bytes() == b"\x05\x00\x00\x00" * 3
    y = T.from_file(str(path), size=2, dtype=T.int32)
    y.fill_(1)
    assert y.tolist() == [1, 1] and x.tolist() == [5, 5, 5]
    with pytest.raises(RuntimeError, match="size <12> is smaller than the required mapping size <16>"):
        T.from_file(str(path), size=4, dtype=T.int32)
    with pytest.raises(RuntimeError, match="unable to open file <.*> in read-only mode: No such file or directory"):
        T.from_file(str(tmp_path / "no"), size=4)
    storage = T.UntypedStorage.from_file(str(path), True, 12)
    storage[0] = 7
    assert x[0] == 7 and storage.nbytes() == 12 and not storage.resizable()


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_typed_storages():
    x = T.arange(4.0)
    s = x.storage()
    assert (s.dtype, len(s), s.size(), s.nbytes(), s.element_size(), s.type()) == (T.float32, 4, 4, 16, 4, "torch.FloatStorage")
    assert isinstance(s, T.FloatStorage) and not isinstance(s, T.LongStorage) and T.is_storage(s) and T.is_storage(s.untyped())
    s[1] = 9
    assert x.tolist() == [0.0, 9.0, 2.0, 3.0] and s.tolist() == list(s) == x.tolist() and s[1] == 9
    assert T.FloatStorage([1, 2]).tolist() == [1.0, 2.0] and len(T.IntStorage(3)) == 3
    assert T.tensor([]).set_(T.FloatStorage([3, 4])).tolist() == [3.0, 4.0]
    assert s != T.ones(4).storage()
    with pytest.raises(IndexError, match="index 5 out of range for storage of size 4"):
        s[5]
    with pytest.raises(RuntimeError, match="slices are only supported"):
        s[0:1]
    assert repr(T.IntStorage([1, 2])) == " 1\n 2\n[torch.storage.TypedStorage(dtype=torch.int32, device=cpu) of size 2]"


def test_of_which_typed_storages_warn():
    code = """
import warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    T.ones(1).storage(); T.ones(1).storage()
print([str(w.message)[:26] for w in told])
"""
    assert python_ok(code).strip() == "['TypedStorage is deprecated']"
