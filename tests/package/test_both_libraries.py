"""gradiron beside another library of tensors in one program. PyTorch itself is no dependency: classes of the same shape stand in."""

import array
import re

import numpy as np
import pytest

import library

T = library.T

pytestmark = pytest.mark.gradiron


class TensorBase:
    """Has what PyTorch's tensors have: a `__torch_function__` that asks the classes of all arguments, and DLPack."""

    def __init__(self, values):
        self._values = T.tensor(values)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))

    def __dlpack__(self, **options):
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()

    def data_ptr(self):
        return self._values.data_ptr()


TensorBase.__module__ = "torch._C"


def other_sin(x):
    """A function of the other library, which asks the classes of its arguments."""
    return type(x).__torch_function__(other_sin, (type(x),), (x,), {})


@pytest.mark.parametrize(
    "call",
    [
        lambda g, t: g + t,
        lambda g, t: g @ t,
        lambda g, t: T.sin(t),
        lambda g, t: T.cat([g, t]),
        lambda g, t: T.nn.Linear(2, 1)(t),
        lambda g, t: T.nn.functional.mse_loss(g, t),
        lambda g, t: g.add_(t),
        lambda g, t: g == t,
        lambda g, t: other_sin(g),
        lambda g, t: type(g).__torch_function__(other_sin, (type(t), type(g)), (t, g), {}),
    ],
)
def test_mixing_is_refused_with_the_way_out(call):
    with pytest.raises(TypeError, match="from_dlpack"):
        call(T.ones(2), TensorBase([1.0, 2.0]))


def test_arrays_of_others_are_taken_by_dlpack():
    other = TensorBase([1.0, 2.0])
    assert T.as_tensor(other).data_ptr() == T.asarray(other).data_ptr() == other.data_ptr()
    copied = T.tensor(other)
    assert copied.tolist() == [1, 2] and copied.data_ptr() != other.data_ptr()
    assert T.as_tensor(other, dtype=T.float64).dtype == T.float64


def test_dlpack_with_versions():
    x = T.arange(6.0).reshape(2, 3)
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(2, 1), copy=True))
    for old in ({}, {"max_version": (0, 8)}, {"max_version": None}):
        assert '"dltensor"' in repr(x.__dlpack__(**old))
    capsule = x.t().__dlpack__(max_version=(1, 0))
    shared = T.from_dlpack(capsule)
    assert shared.data_ptr() == x.data_ptr() and shared.stride() == (1, 3)
    with pytest.raises(RuntimeError, match="can be consumed only once"):
        T.from_dlpack(capsule)
    assert np.from_dlpack(x).base is not None
    copied = T.from_dlpack(np.arange(3.0), copy=True)
    assert copied.tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match=re.escape("max_version=(1, 0)")):
        x.__dlpack__(read_only=True)
    frozen = np.from_dlpack(
        type(
            "ReadOnly",
            (),
            {
                "__dlpack__": lambda self, **options: x.__dlpack__(**{**options, "read_only": True}),
                "__dlpack_device__": lambda self: x.__dlpack_device__(),
            },
        )()
    )
    assert not frozen.flags.writeable


def test_capsules_that_nobody_takes_are_freed():
    for version in (None, (1, 0)):
        x = T.ones(1000)
        before = T.cuda  # A capsule is made and dropped; the tensor must still be usable.
        x.__dlpack__(max_version=version)
        assert before is T.cuda and x.sum() == 1000


def test_buffers_are_shared():
    numbers = array.array("f", [1, 2, 3])
    for make in (T.as_tensor, T.asarray, lambda b: T.frombuffer(b, dtype=T.float32)):
        made = make(numbers)
        assert made.dtype == T.float32
        numbers[0] += 1
        assert made[0] == numbers[0]
    assert T.as_tensor(array.array("d", [1])).dtype == T.float32
    assert T.as_tensor(bytearray(b"ab")).tolist() == [97, 98] and T.as_tensor(bytearray(b"ab")).dtype == T.int64
    assert T.asarray(bytearray(4)).dtype == T.uint8
    assert T.asarray(memoryview(np.ones((2, 2))), dtype=T.float64).shape == (4,)


def test_storages_are_shared():
    x = T.ones(3)
    seen = T.asarray(x.untyped_storage(), dtype=T.uint8)
    assert seen.data_ptr() == x.data_ptr() and seen.shape == (12,)
    assert T.asarray(x.untyped_storage(), dtype=T.int16).shape == (6,)
    assert T.asarray(x.untyped_storage()).dtype == T.int64


def test_frombuffer_takes_bfloat16():
    x = T.frombuffer(bytearray(b"\x80\x3f\x00\x40"), dtype=T.bfloat16)
    assert x.dtype == T.bfloat16 and x.tolist() == [1, 2]
