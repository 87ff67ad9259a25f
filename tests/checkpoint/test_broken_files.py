"""Files that are cut off, changed, made to harm, or of another kind: one clear error, and nothing worse."""

import io
import pickle
import random
import struct
import zipfile

import pytest
from checkpoint_cases import describe

from library import GOLDEN, NAME, T, python_ok

pytestmark = pytest.mark.gradiron

# What may come of a file that is not as it should be.
CLEAR = (RuntimeError, pickle.UnpicklingError, EOFError)


def sample():
    x = T.arange(12.0).reshape(3, 4)
    return {"x": x, "part": x[1:, ::2], "z": T.tensor([1 + 2j]).conj(), "p": T.nn.Parameter(T.ones(2)), "n": [1, "a", {}]}


def saved(obj, **options):
    file = io.BytesIO()
    T.save(obj, file, **options)
    return file.getvalue()


def outcome(data, **options):
    """What a file loads as; None if there was a clear error."""
    try:
        return describe(T.load(io.BytesIO(data), **options), T)
    except CLEAR as error:
        assert str(error)
        return None


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}])
def test_every_truncation(options):
    data, whole = saved(sample(), **options), describe(sample(), T)
    for length in range(0, len(data) - 1, 3):
        assert outcome(data[:length]) is None, length
    assert outcome(data) == whole


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_every_byte_changed():
    data, whole, draw = saved(sample()), describe(sample(), T), random.Random(0)
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << draw.randrange(8)
        # Padding and the like may be anything.
        assert outcome(bytes(changed)) in (None, whole), at


@pytest.mark.parametrize("count", [5, 1 << 14, (3 << 18) + 1])
def test_long_records_have_the_checksums_of_zip_files(count):
    data = saved(T.arange(count, dtype=T.int32))
    assert zipfile.ZipFile(io.BytesIO(data)).testzip() is None
    changed = bytearray(data)
    changed[data.index(T.arange(count, dtype=T.int32).numpy().tobytes()) + 4 * count - 4] ^= 1
    with pytest.raises(RuntimeError):
        T.load(io.BytesIO(changed))


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_every_byte_of_the_old_format_changed():
    """It has no checksums, so that numbers may change; nothing else may happen."""
    data, draw = saved(sample(), _use_new_zipfile_serialization=False), random.Random(1)
    for at in range(len(data)):
        for _ in range(2):
            changed = bytearray(data)
            changed[at] = draw.randrange(256)
            outcome(bytes(changed))


def with_pickle(data, records=()):
    """An archive with this pickle, and checksums that fit."""
    source, target = zipfile.ZipFile(io.BytesIO(saved([T.arange(4.0)]))), io.BytesIO()
    records = dict(records)
    with zipfile.ZipFile(target, "w") as file:
        for name in source.namelist():
            short = name.partition("/")[2]
            content = data if short == "data.pkl" else records.pop(short, source.read(name))
            if content is not None:
                file.writestr(name, content)
    return io.BytesIO(target.getvalue())


def changed_pickle(old, new):
    source = zipfile.ZipFile(io.BytesIO(saved([T.arange(4.0)]))).read("archive/data.pkl")
    assert old in source
    return with_pickle(source.replace(old, new))


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("seed", range(8))
def test_random_pickles(seed):
    """Whatever the instructions: an error or an object, and neither a crash nor memory without end."""
    draw = random.Random(seed)
    source = zipfile.ZipFile(io.BytesIO(saved(sample()))).read("archive/data.pkl")
    letters = sorted(set(source))
    for _ in range(60):
        data = bytearray(source)
        for _ in range(draw.randrange(1, 6)):
            at = draw.randrange(len(data))
            kind = draw.randrange(3)
            if kind == 0:
                data[at] = draw.choice(letters)
            elif kind == 1:
                del data[at : at + draw.randrange(1, 9)]
            else:
                data[at:at] = data[draw.randrange(len(data)) :][: draw.randrange(1, 30)]
        try:
            T.load(with_pickle(bytes(data)))
        except (*CLEAR, UnicodeError):
            pass


FOUR = b"K\x04tq"  # the number of elements of a storage
SIZE, STRIDE, OFFSET = b"K\x04\x85q", b"K\x01\x85q", b"QK\x00"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (FOUR, b"J\xff\xff\xff\x7ftq", "record size .* does not match expected size"),
        (FOUR, b"\x8a\x09" + b"\xff" * 8 + b"\x00tq", "record size .* does not match expected size"),
        (FOUR, b"J\xff\xff\xff\xfftq", "a storage cannot be"),
        (FOUR, b"Ntq", "a storage cannot be"),
        (SIZE, b"K\x05\x85q", "out of bounds for storage of size 16"),
        (SIZE, b"J\xff\xff\xff\xff\x85q", "invalid storage offset 0, sizes"),
        (SIZE, b"\x8a\x09" + b"\xff" * 8 + b"\x00\x85q", "out of bounds for storage of size 16"),
        (SIZE, b"\x8a\xff" + b"\xff" * 254 + b"\x00\x85q", "out of bounds for storage of size 16"),
        (SIZE, b"X\x01\x00\x00\x00a\x85q", "a tensor cannot have size"),
        (STRIDE, b"K\x02\x85q", "out of bounds for storage of size 16"),
        (STRIDE, b"J\xff\xff\xff\xff\x85q", "invalid storage offset 0, sizes"),
        (STRIDE, b"\x8a\x08" + b"\xff" * 7 + b"\x7f\x85q", "out of bounds for storage of size 16"),
        (STRIDE, b")q", "a tensor cannot have size"),
        (OFFSET, b"QK\x01", "out of bounds for storage of size 16"),
        (OFFSET, b"QJ\xff\xff\xff\xff", "invalid storage offset -1, sizes"),
        (OFFSET, b"QG" + bytes(8), "a tensor cannot have size"),
        (b"FloatStorage", b"DoubleStorage", "record size .* does not match expected size"),
        (b"FloatStorage", b"ByteStorage", "record size .* does not match expected size"),
        (b"FloatStorage", b"Tensor", "a storage cannot be"),
        (b"X\x03\x00\x00\x00cpu", b"X\x03\x00\x00\x00moo", "don't know how to restore data location"),
        (b"X\x03\x00\x00\x00cpu", b"K\x05", "a storage cannot be"),
        (b"X\x01\x00\x00\x000", b"X\x01\x00\x00\x009", "failed locating file data/9"),
        (b"X\x01\x00\x00\x000", b"X\x08\x00\x00\x00/../../x", "failed locating file"),
    ],
)
def test_lies_about_storages(old, new, message):
    for weights_only in (True, False):
        file = changed_pickle(old, new)
        with pytest.raises((*CLEAR, TypeError), match=message):
            T.load(file, weights_only=weights_only)


def test_strides_of_zero_and_one_element_of_much():
    x = T.load(changed_pickle(STRIDE, b"K\x00\x85q"))[0]
    assert x.tolist() == [0.0] * 4
    x = T.load(changed_pickle(SIZE, b"K\x00\x85q"))[0]
    assert x.shape == (0,)


def test_records_that_lie(tmp_path):
    source = zipfile.ZipFile(io.BytesIO(saved([T.arange(4.0)]))).read("archive/data.pkl")
    for records, message in (
        ({"data/0": bytes(12)}, r"record size \(12 bytes\) does not match expected size \(16 bytes = 4 elements \* 4"),
        ({"data/0": bytes(20)}, "record size"),
        ({"data/0": None}, "failed locating file data/0: file not found"),
        ({"version": None}, r'Expected hasRecord\("version"\) to be true, but got false'),
        ({"version": b"99"}, "version 99, but the maximum supported version for reading is 10"),
        ({"version": b"0"}, "version 0, but the minimum supported version for reading is 1"),
        ({"version": b"?"}, "Couldn't parse the version"),
    ):
        for options in ({}, {"mmap": True}):
            file = tmp_path / "x.pt"
            file.write_bytes(with_pickle(source, records).getvalue())
            with pytest.raises(RuntimeError, match=message):
                T.load(file, **options)
    with pytest.raises(ValueError, match="Unknown endianness type: middle"):
        T.load(with_pickle(source, {"byteorder": b"middle"}))
    with pytest.raises(RuntimeError, match="failed locating file data.pkl: file not found"):
        T.load(with_pickle(None))


def test_records_that_claim_to_be_large():
    """A directory that tells of more than there is, without a byte behind it."""
    data = bytearray(saved([T.arange(4.0)]))
    entry = data.rfind(b"archive/data/0") - 46
    for size in (1 << 31, 0xFFFFFFFE, len(data) + 1):
        struct.pack_into("<II", data, entry + 20, size, size)
        with pytest.raises(RuntimeError, match="claims|record size|header|ends before"):
            T.load(io.BytesIO(bytes(data)))
    # Deflated: a thousandth of its size is the least that it can have.
    struct.pack_into("<H", data, entry + 10, 8)
    struct.pack_into("<II", data, entry + 20, 16, 1 << 31)
    with pytest.raises(RuntimeError, match="claims 2147483648 bytes, which the file does not hold"):
        T.load(io.BytesIO(bytes(data)))


def test_bytes_that_changed_are_found(tmp_path):
    data = bytearray(saved([T.arange(4.0)]))
    at = data.find(struct.pack("<4f", 0, 1, 2, 3))
    data[at + 5] ^= 1
    with pytest.raises(RuntimeError, match="its bytes are not those that were saved"):
        T.load(io.BytesIO(bytes(data)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"P",
        b"PK\x03\x04",
        b"PK\x03\x04" + bytes(100),
        b"PK\x05\x06" + bytes(18),
        b"hello world",
        bytes(1000),
        b"\x89PNG\r\n\x1a\n" + bytes(50),
        b"\x80\x02.",
        b"\x80\x04N.",
        pickle.dumps({"a": 1}, 2),
        b"{}",
        b"GGUF" + bytes(200),
        b"\x1f\x8b\x08\x00" + bytes(20),
    ],
)
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_foreign_files(data, weights_only, tmp_path):
    path = tmp_path / "x"
    path.write_bytes(data)
    for source in (io.BytesIO(data), path):
        with pytest.raises((*CLEAR, LookupError)) as caught:
            T.load(source, weights_only=weights_only)
        assert weights_only is False or isinstance(caught.value, CLEAR)


def test_archives_that_are_something_else(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("readme.txt", "hello")
    with pytest.raises(RuntimeError, match="version"):
        T.load(path)
    with zipfile.ZipFile(path, "w") as file:
        for name in ("data.pkl", "constants.pkl", "version"):
            file.writestr(f"m/{name}", b"3")
    with pytest.raises(RuntimeError, match="Cannot use ``weights_only=True`` with TorchScript archives"):
        T.load(path)
    with pytest.raises(NotImplementedError, match="TorchScript"):
        T.load(path, weights_only=False)


def test_the_old_format_lies():
    head = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2) + pickle.dumps({}, 2)
    for body, message in (
        (pickle.dumps(5, 2), "Invalid magic number; corrupt file"),
        (pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(7, 2), "Invalid protocol version: 7"),
        (head + pickle.dumps([], 2) + pickle.dumps(["0"], 2), "not those that its pickle tells of"),
        (head + pickle.dumps([], 2), "Ran out of input"),
    ):
        with pytest.raises(CLEAR, match=message):
            T.load(io.BytesIO(body))
    data = saved([T.arange(4.0)], _use_new_zipfile_serialization=False)
    for old, new, message in (
        (b"K\x04N", b"J\xff\xff\xff\x7fN", "is more than there is in the file"),
        (b"K\x04N", b"K\x03N", "out of bounds|wrong byte size"),
        (struct.pack("<q", 4), struct.pack("<q", 3), "storage has wrong byte size: expected 16 got 12"),
        (struct.pack("<q", 4), struct.pack("<q", -4), "storage has wrong byte size"),
        (b"K\x04N", b"K\x04K\x05", "corrupt|cannot unpack"),
    ):
        assert old in data
        for weights_only in (True, False):
            with pytest.raises((*CLEAR, TypeError), match=message):
                T.load(io.BytesIO(data.replace(old, new)), weights_only=weights_only)


def test_memory_stays_within_bounds():
    """Small files that want much: no more is taken than they have."""
    out = python_ok(
        f"""
import io, pickle, resource
sys.path[:0] = [{str(GOLDEN.parent / "checkpoint")!r}, {str(GOLDEN.parent)!r}, {str(GOLDEN)!r}]
from test_broken_files import changed_pickle, FOUR, SIZE, saved
import test_weights_only as w
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
bodies = [b"cbuiltins\\nbytearray\\nJ\\xff\\xff\\xff\\x7f\\x85R", b"ctorch\\nTensor\\nJ\\xff\\xff\\xff\\x7f\\x85R", b"r\\xff\\xff\\xff\\xff", b"X\\xff\\xff\\xff\\xff"]
files = [w.by_hand(body) for body in bodies] + [changed_pickle(FOUR, b"J\\xff\\xff\\xff\\x7ftq")]
many = saved([T.ones(3) for _ in range(3)], _use_new_zipfile_serialization=False)
files += [io.BytesIO(many.replace(b"K\\x03N", b"M\\x00\\x02N"))]
for file in files:
    try: T.load(file)
    except (RuntimeError, pickle.UnpicklingError, EOFError) as error: print("error")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000)
""",
        env={"GRADIRON_TEST_LIB": NAME},
    )
    assert out.split() == ["error"] * 6 + ["True"]
