"""The versions of copies, and what DLPack's methods take and refuse."""

import copy
import pickle

import numpy as np
import pytest

from library import T


def test_a_copy_has_been_given_its_memory():
    x = T.ones(3)
    x.add_(1).add_(1)
    for made in (copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x))):
        assert made._version == 1 and made.tolist() == [3, 3, 3]
    first, part = copy.deepcopy([x, x[1:]])
    first.add_(1)
    assert part.tolist() == [4, 4] and (first._version, part._version, x._version) == (2, 1, 2)


@pytest.mark.parametrize("stream", [object(), "a", 1.0, True])
def test_no_stream(stream):
    with pytest.raises(TypeError, match="stream must be ``int`` or ``none``"):
        T.ones(2).__dlpack__(stream=stream)


def test_options_of_an_export():
    x = T.ones(2)
    for options in ({}, {"stream": None}, {"stream": -1}, {"dl_device": (1, 0)}, {"copy": False}, {"max_version": (0, 8)}):
        assert T.from_dlpack(x.__dlpack__(**options)).data_ptr() == x.data_ptr()
    assert T.from_dlpack(x.__dlpack__(copy=True)).data_ptr() != x.data_ptr()
    for wrong, kind in (
        ({"stream": 1}, AssertionError),
        ({"dl_device": 1}, TypeError),
        ({"copy": 1}, TypeError),
        ({"max_version": 1}, TypeError),
        ({"foo": 1}, TypeError),
        ({"read_only": True}, BufferError),
    ):
        with pytest.raises(kind):
            x.__dlpack__(**wrong)
    kind, number = x.__dlpack_device__()
    assert (int(kind), number, kind.name) == (1, 0, "kDLCPU")
    for wrong in (T.ones(2, requires_grad=True), T.ones(2, dtype=T.complex64).conj()):
        with pytest.raises(BufferError, match="Can't export tensors"):
            wrong.__dlpack__()


def test_options_of_an_import():
    x = T.ones(2)
    assert T.from_dlpack(x, device="cpu", copy=False).data_ptr() == x.data_ptr()
    assert T.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert T.from_dlpack(np.ones(2), copy=True).tolist() == [1, 1]
    with pytest.raises(
        AssertionError, match="device and copy kwargs not supported when ext_tensor is already a DLPack capsule"
    ):
        T.utils.dlpack.from_dlpack(x.__dlpack__(), device="cpu")
    for wrong in (3, [1], object()):
        with pytest.raises(RuntimeError, match="from_dlpack received an invalid capsule"):
            T.from_dlpack(wrong)


def test_producers_of_old():
    class Old:
        def __dlpack__(self, stream=None):
            return T.ones(2).__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

    for copied in (None, True):
        assert T.from_dlpack(Old(), copy=copied).tolist() == [1, 1]

    class Odd:
        def __dlpack__(self, **options):
            return T.ones(2).__dlpack__()

    with pytest.raises(AttributeError, match="__dlpack_device__"):
        T.from_dlpack(Odd())


def test_a_copied_parameter_begins_anew():
    p = T.nn.Parameter(T.ones(2))
    with T.no_grad():
        p.add_(1)
    p.note = "kept"
    made = copy.copy(p)
    assert type(made) is T.nn.Parameter and made._version == 0 and made.note == "kept"
    assert made.data_ptr() == p.data_ptr() and pickle.loads(pickle.dumps(p)).tolist() == [2, 2]
