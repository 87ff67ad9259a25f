"""Loads with `weights_only`, the default: what is allowed, what the user may allow, and that nothing else happens."""

import collections
import datetime
import io
import os
import pickle
import re

import pytest

from library import IS_GRADIRON, T


class Plain:
    def __init__(self, x):
        self.x = x


class WithSetstate(Plain):
    def __setstate__(self, state):
        self.x = ("restored", state["x"])


class Slotted:
    __slots__ = ("x",)


Pair = collections.namedtuple("Pair", "a b")  # noqa: PYI024


class Evil:
    """What a pickle can do to those who trust it."""

    def __init__(self, function, *args):
        self.what = function, args

    def __reduce__(self):
        return self.what


@pytest.fixture(autouse=True)
def nothing_stays_allowed():
    yield
    T.serialization.clear_safe_globals()


def file_of(obj):
    file = io.BytesIO()
    T.save(obj, file)
    file.seek(0)
    return file


def refused(obj, pattern, **options):
    with pytest.raises(pickle.UnpicklingError, match=pattern) as caught:
        T.load(file_of(obj) if not isinstance(obj, io.BytesIO) else obj, **options)
    assert str(caught.value).startswith("Weights only load failed")


@pytest.mark.parametrize("options", [{}, {"weights_only": True}])
def test_functions_are_not_called(options, tmp_path):
    target = tmp_path / "was here"
    refused(Evil(os.mkdir, str(target)), "module (posix|nt|os) is blocked", **options)
    refused([T.ones(1), Evil(eval, f"open({str(target)!r}, 'w')")], "GLOBAL eval was not an allowed global", **options)
    refused(Evil(getattr, Plain, "mro"), "GLOBAL getattr was not an allowed global", **options)
    refused(Plain(1), "GLOBAL test_weights_only.Plain was not an allowed global by default", **options)
    assert not target.exists()
    if IS_GRADIRON:
        T.load(file_of(Evil(os.mkdir, str(target))), weights_only=False)
        assert target.exists()


def test_blocked_modules_stay_blocked():
    T.serialization.add_safe_globals([os.system, os.getcwd])
    refused(Evil(os.getcwd), "whose module (posix|nt) is blocked")


def test_what_the_user_allows():
    made = [Plain(T.ones(2)), WithSetstate(3), Pair(1, 2)]
    refused(made, "Unsupported global")
    with T.serialization.safe_globals([Plain, WithSetstate, Pair]):
        assert set(T.serialization.get_safe_globals()) == {Plain, WithSetstate, Pair}
        plain, restored, pair = T.load(file_of(made))
    assert plain.x.tolist() == [1.0, 1.0] and restored.x == ("restored", 3) and pair == Pair(1, 2)
    assert T.serialization.get_safe_globals() == []
    refused(made, "Unsupported global")
    T.serialization.add_safe_globals([Plain])
    assert T.load(file_of(Plain(1))).x == 1
    T.serialization.clear_safe_globals()
    refused(Plain(1), "Unsupported global")


class Outer:
    class Inner:
        pass


class Half(Slotted):
    pass


def test_slots():
    made, half = Slotted(), Half()
    made.x = half.x = T.zeros(1)
    half.y = 2
    with T.serialization.safe_globals([Slotted, Half]):
        assert T.load(file_of(made)).x.tolist() == [0.0]
        found = T.load(file_of(half))
    assert found.x.tolist() == [0.0] and found.y == 2


def test_classes_in_classes():
    refused(Outer.Inner(), "Unsupported global: GLOBAL getattr was not an allowed global by default")
    with T.serialization.safe_globals([Outer, getattr, Outer.Inner]):
        assert isinstance(T.load(file_of(Outer.Inner())), Outer.Inner)


def test_methods_of_classes_that_are_written_in_c():
    zoneinfo = pytest.importorskip("zoneinfo")
    try:
        noon = datetime.datetime(2025, 1, 1, 12, tzinfo=zoneinfo.ZoneInfo("UTC"))
    except zoneinfo.ZoneInfoNotFoundError:
        pytest.skip("no time zones here")
    allowed = [datetime.datetime, getattr, zoneinfo.ZoneInfo]
    with T.serialization.safe_globals(allowed):
        refused(noon, r"_unpickle.*zoneinfo.ZoneInfo")
    with T.serialization.safe_globals([*allowed, zoneinfo.ZoneInfo._unpickle]):
        assert T.load(file_of(noon)) == noon


def test_allowed_by_the_name_in_the_file():
    refused(pickled(Plain(5), b"test_weights_only", b"gone_module"), "GLOBAL gone_module.Plain was not an allowed")
    with T.serialization.safe_globals([(Plain, "gone_module.Plain")]):
        assert T.load(pickled(Plain(5), b"test_weights_only", b"gone_module")).x == 5
    with T.serialization.safe_globals([(Plain, "a", "b")]), pytest.raises(ValueError, match="Expected tuple of length 2"):
        T.load(file_of(Plain(1)))
    with T.serialization.safe_globals([(Plain, 3)]), pytest.raises(TypeError, match="Expected second item in tuple to be str"):
        T.load(file_of(Plain(1)))


def pickled(obj, old=b"", new=b""):
    """A file of the old format, in which one word was changed."""
    file = io.BytesIO()
    T.save(obj, file, _use_new_zipfile_serialization=False)
    return io.BytesIO(file.getvalue().replace(old, new) if old else file.getvalue())


def by_hand(body):
    """A file of the old format around a pickle that nobody's pickler wrote."""
    head = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2) + pickle.dumps({}, 2)
    return io.BytesIO(head + b"\x80\x02" + body + b"." + pickle.dumps([], 2))


GLOBAL = "c{}\n{}\n".format
ORDERED = GLOBAL("collections", "OrderedDict").encode()
PRINT = b"cbuiltins\nprint\n"


@pytest.mark.parametrize(
    ("body", "pattern"),
    [
        (b"]K\x01a0", "Unsupported operand 48"),
        (b"K\x01K\x01a", "Can only append to lists, but got <class 'int'>"),
        (b"K\x01(K\x01e", "Can only extend lists, but got <class 'int'>"),
        (b"]K\x01K\x01s", "Can only SETITEM for dict, collections.OrderedDict, collections.Counter, but got <class 'list'>"),
        (b"](K\x01K\x01u", "Can only SETITEMS for dict, collections.OrderedDict, collections.Counter, but got <class 'list'>"),
        (
            b"]}b",
            "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got <class 'list'>",
        ),
        (ORDERED + b"}b", "Can only build Tensor, Parameter, OrderedDict or types allowlisted .* but got <class 'type'>"),
        (b"K\x01)R", "Trying to call reduce for unrecognized function 1"),
        (b"K\x01)\x81", "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got 1"),
        (b"X\x01\x00\x00\x00aQ", "persistent_load id must be tuple or int, but got <class 'str'>"),
        (b"X\x01\x00\x00\x00a\x85Q", "Only persistent_load of storage is allowed, but got <class 'str'>"),
        (PRINT + b")R", "GLOBAL print was not an allowed global"),
        (b"cbuiltins\neval\n" + b")R", "GLOBAL eval was not an allowed global"),
        (b"\x8c\x01a", "Unsupported operand 140"),
        (b"i__main__\nx\n", "Unsupported operand 105"),
        (b"ctorch\nload\n)R", r"GLOBAL torch.load was not an allowed global"),
        (b"ctorch._utils\n_rebuild_tensor_v3.__globals__.get\n)R", "was not an allowed global"),
    ],
)
def test_instructions_that_are_refused(body, pattern):
    refused(by_hand(body), pattern)


@pytest.mark.gradiron
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"h\x05",
        b"j\xff\xff\xff\xff",
        b"\x85",
        b"t",
        b"R",
        b"X\xff\xff\xff\x7fabc",
        b"X\x02\x00\x00\x00\xff\xfe",
        b"(K\x01t" * 3 + b"b",
        ORDERED + b"K\x05\x85R",
        ORDERED + b")R}X\x01\x00\x00\x00ah\x09s",
        b"cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R",
        b"ctorch\nTensor\nJ\xff\xff\xff\x7f\x85R",
        b"ctorch\nFloatStorage\nJ\xff\xff\xff\x7f\x85R",
        b"ctorch\nTensor\nJ\xff\xff\xff\x7f\x85\x81",
        b"c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch\nTensor\nctorch\nTensor\nJ\xff\xff\xff\x7f\x85}tR",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(K\x01ctorch\nTensor\n)}tR",
        b"ctorch._utils\n_rebuild_tensor_v2\n(K\x01K\x00)))NtR",
        b"ctorch._utils\n_rebuild_parameter\nK\x01\x88N\x87R",
        b"ctorch\ndevice\nX\x05\x00\x00\x00nowhe\x85R",
        b"ctorch.serialization\n_get_layout\nX\x01\x00\x00\x00x\x85R",
        b"}" + b")" * 60 + b"\x85" * 100_000 + b"K\x01s",
        b"cbuiltins\nset\n]" + b")" + b"\x85" * 100_000 + b"a\x85R",
        b"}" + b")" + b"q\x00h\x00\x86" * 60 + b"K\x01s",
        b"ctorch\nuint4\n",
        b"ctorch._utils\n_rebuild_qtensor\n",
    ],
)
def test_nonsense_is_one_error(body):
    with pytest.raises((pickle.UnpicklingError, RuntimeError)) as caught:
        T.load(by_hand(body))
    assert len(str(caught.value)) < 2000


def test_nesting_without_end_is_no_crash():
    deep = T.load(by_hand(b")" + b"\x85" * 200_000))
    assert len(deep) == 1
    del deep
    nested = T.load(by_hand(b"]q\x00h\x00a"))
    assert nested[0] is nested


def test_only_one_of_two_ways_to_be_safe():
    with pytest.raises(RuntimeError, match="Can not safely load weights when explicit pickle_module is specified"):
        T.load(file_of(1), weights_only=True, pickle_module=pickle)
    assert T.load(file_of([Plain(2)]), pickle_module=pickle)[0].x == 2


def test_the_environment_decides(monkeypatch):
    data = file_of([Plain(1)])
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected"):
        assert T.load(data)[0].x == 1
    data.seek(0)
    refused(data, "Unsupported global", weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "yes")
    with pytest.raises(RuntimeError, match="Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD`"):
        T.load(data)
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    data.seek(0)
    refused(data, "Unsupported global", weights_only=False)


def test_protocols_that_it_does_not_know():
    file = io.BytesIO()
    T.save([T.ones(1)], file, pickle_protocol=4)
    file.seek(0)
    with pytest.warns(UserWarning, match="Detected pickle protocol 4"):
        refused(file, "Unsupported operand 149")


def test_options_for_the_other_way():
    with pytest.warns(UserWarning, match="pickle_load_args only works if `weights_only=False`"):
        assert T.load(file_of([1]), encoding="ascii") == [1]


def test_unsafe_names_are_told():
    find = T.serialization.get_unsafe_globals_in_checkpoint
    made = [Plain(T.ones(1)), Slotted, T.ones(2), collections.OrderedDict()]
    assert set(find(file_of(made))) == {"test_weights_only.Plain", "test_weights_only.Slotted"}
    with T.serialization.safe_globals([Plain]):
        assert find(file_of(made)) == ["test_weights_only.Slotted"]
    assert find(file_of([T.ones(1)])) == []
    with pytest.raises(ValueError, match=re.escape("Expected input to be a checkpoint returned by torch.save")):
        find(pickled([T.ones(1)]))


def test_classes_of_the_library_by_their_public_names():
    kind = T.nn.Sequential
    with pytest.raises(pickle.UnpicklingError, match=r"GLOBAL torch.nn.modules.container.Sequential was not"):
        T.load(file_of(kind()))
    assert isinstance(T.load(file_of(kind()), weights_only=False), kind)
    with T.serialization.safe_globals([kind, set]):
        assert isinstance(T.load(file_of(kind())), kind)


def test_numpy_must_be_allowed():
    import numpy as np

    made = {"array": np.arange(3), "number": np.float64(2)}
    refused(made, r"GLOBAL numpy.*multiarray.* was not an allowed global")
    found = T.load(file_of(made), weights_only=False)
    assert found["array"].tolist() == [0, 1, 2] and found["number"] == 2
    names = T.serialization.get_unsafe_globals_in_checkpoint(file_of(made))
    parts = {name.rpartition(".")[2]: name for name in names}
    assert {"dtype", "ndarray", "scalar", "_reconstruct"} <= set(parts)
    with T.serialization.safe_globals(
        [
            np.dtype,
            np.ndarray,
            np.dtypes.Float64DType,
            np.dtypes.Int64DType,
            (np._core.multiarray.scalar, parts["scalar"]),
            (np._core.multiarray._reconstruct, parts["_reconstruct"]),
        ]
    ):
        found = T.load(file_of(made))
    assert found["array"].tolist() == [0, 1, 2] and found["number"] == 2


def test_what_is_no_class_breaks_only_what_needs_it():
    file = io.BytesIO()
    T.save({"x": T.ones(2)}, file)
    with T.serialization.safe_globals("a"):  # Forgotten brackets: a text is a list of letters.
        file.seek(0)
        assert T.load(file)["x"].tolist() == [1.0, 1.0]
    for wrong in (3, None, int):
        with pytest.raises(TypeError, match="is not iterable"):
            T.serialization.add_safe_globals(wrong)
