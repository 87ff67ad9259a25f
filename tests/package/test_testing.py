"""`testing.assert_close` and `testing.make_tensor`."""

import math
from dataclasses import dataclass

import pytest

from library import DTYPES, T, dtype

assert_close, make_tensor = T.testing.assert_close, T.testing.make_tensor


def message(actual, expected, kind=AssertionError, **options):
    with pytest.raises(kind) as info:
        assert_close(actual, expected, **options)
    return str(info.value)


@pytest.mark.parametrize(
    "value",
    [1, 2.5, True, None, T.ones(2), T.zeros(0, 3), [T.ones(2), (1, {"a": T.ones(1)})], T.tensor([1, 2]), T.tensor([True])],
)
def test_equal_things_are_close(value):
    assert_close(value, value)
    assert_close(value, value, rtol=0, atol=0)


def test_tolerances():
    assert_close(T.tensor([1.0]), T.tensor([1.0 + 1e-6]))
    assert_close(T.tensor([1.0, math.inf]), T.tensor([1.05, math.inf]), rtol=0.1, atol=0)
    assert_close(T.tensor([math.nan]), T.tensor([math.nan]), equal_nan=True)
    assert_close(T.tensor([10]), T.tensor([11]), rtol=0.1, atol=0)
    assert_close(1, 1.0, check_dtype=False)
    assert_close(T.ones(2), T.ones(2, dtype=T.float64), check_dtype=False)
    for kind, gap in (("float16", 1e-3), ("bfloat16", 1.6e-2), ("float64", 1e-7)):
        x = T.full((2,), 4.0, dtype=dtype(kind))
        assert_close(x * (1 + gap / 2), x)
        message(x * (1 + gap * 4), x)


def test_the_message_says_where_and_by_how_much():
    assert message(T.tensor([[1.0, 2.0], [3.0, 4.0]]), T.tensor([[1.0, 2.5], [0.0, 4.0]])) == (
        "Tensor-likes are not close!\n\n"
        "Mismatched elements: 2 / 4 (50.0%)\n"
        "Greatest absolute difference: 3.0 at index (1, 0) (up to 1e-05 allowed)\n"
        "Greatest relative difference: inf at index (1, 0) (up to 1.3e-06 allowed)"
    )
    assert message(T.tensor([1, 2, 3]), T.tensor([1, 2, 5])) == (
        "Tensor-likes are not equal!\n\n"
        "Mismatched elements: 1 / 3 (33.3%)\n"
        "Greatest absolute difference: 2 at index (2,)\n"
        "Greatest relative difference: 0.4000000059604645 at index (2,)"
    )
    assert message(1.0, 2.0) == (
        "Scalars are not close!\n\n"
        "Expected 2.0 but got 1.0.\n"
        "Absolute difference: 1.0 (up to 1e-07 allowed)\n"
        "Relative difference: 0.5 (up to 1e-07 allowed)"
    )
    assert message(T.tensor(math.nan), T.tensor(math.nan)).startswith("Scalars are not close!\n\nExpected nan but got nan.")


def test_attributes_are_compared():
    shape = "The values for attribute 'shape' do not match: torch.Size([2]) != torch.Size([3])."
    assert message(T.ones(2), T.ones(3)) == shape
    kinds = "The values for attribute 'dtype' do not match: torch.float32 != torch.float64."
    assert message(T.ones(2), T.ones(2, dtype=T.float64)) == kinds
    strides = "The values for attribute 'stride()' do not match: (1, 2) != (3, 1)."
    assert message(T.ones(3, 2).t(), T.ones(2, 3), check_stride=True) == strides
    assert message(1, 1.0) == "The (d)types do not match: <class 'int'> != <class 'float'>."


def test_structures():
    @dataclass
    class Pair:
        left: object
        right: object

    assert_close(Pair(1, T.ones(2)), Pair(1, T.ones(2)))
    tail = "\n\nThe failure occurred for item "
    assert message([1, {"a": 2}], [1, {"a": 3}]).endswith(tail + "[1]['a']")
    assert message(Pair(1, T.ones(2)), Pair(1, T.zeros(2))).endswith(tail + "['right']")
    assert message([1, 2], [1]) == "The length of the sequences mismatch: 2 != 1"
    assert message({"a": 1}, {"b": 1}) == (
        "The keys of the mappings do not match:\n"
        "Missing keys in the actual mapping: ['b']\nAdditional keys in the actual mapping: ['a']"
    )
    assert message(None, 1) == "None mismatch: None is not 1"
    assert message(True, False) == "Booleans mismatch: True is not False"


def test_what_cannot_be_compared_and_own_messages():
    assert message(T.ones(1), 1.0, TypeError).startswith("No comparison pair was able to handle inputs of type")
    assert (
        message(1.0, 1.0, ValueError, rtol=1.0)
        == "Both 'rtol' and 'atol' must be either specified or omitted, but got no atol."
    )
    assert message(1, 2, msg="no") == "no"
    assert message(1, 2, msg=lambda text: "so: " + text).startswith("so: Scalars are not equal!")


@pytest.mark.parametrize("kind", DTYPES)
def test_make_tensor_keeps_to_its_bounds(kind):
    x = make_tensor(50, 4, dtype=dtype(kind), device="cpu")
    assert x.dtype == dtype(kind) and tuple(x.shape) == (50, 4)
    low, high = (0, 1) if kind == "bool" else (0 if kind == "uint8" else -9, 9)
    assert low <= min(x.flatten().tolist()) and max(x.flatten().tolist()) <= high
    y = make_tensor((50,), dtype=dtype(kind), device="cpu", low=0, high=2, exclude_zero=True)
    assert all(y.tolist())


@pytest.mark.parametrize("name", ["float32", "torch.float32", float])
def test_make_tensor_takes_dtypes_only(name):
    with pytest.raises(TypeError, match=f"The requested dtype '{name}' is not supported by torch.testing.make_tensor()"):
        make_tensor(2, dtype=name, device="cpu")


def test_make_tensor_options():
    x = make_tensor(3, 4, dtype=T.float64, device="cpu", noncontiguous=True, requires_grad=True)
    assert not x.is_contiguous() and x.requires_grad and x.is_leaf
    assert make_tensor((), dtype=T.float32, device="cpu", noncontiguous=True).dim() == 0
    T.manual_seed(1)
    a = make_tensor(4, dtype=T.float32, device="cpu")
    T.manual_seed(1)
    assert a.tolist() == T.empty(4).uniform_(-9, 9).tolist()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"low": 3, "high": 2}, "`low` must be less than `high`, but got 3 >= 2"),
        ({"low": math.nan}, "`low` and `high` cannot be NaN, but got low=nan and high=9"),
        ({"low": 1e39, "high": 1e40}, "The value interval specified by `low` and `high` is"),
    ],
)
def test_make_tensor_refuses_impossible_bounds(options, sentence):
    with pytest.raises(ValueError) as info:
        make_tensor(2, dtype=T.float32, device="cpu", **options)
    assert str(info.value).startswith(sentence)


def test_a_class_with_operators_of_its_own_is_compared_by_its_elements():
    class Rotation(T.Tensor):
        def __mul__(self, other):
            raise NotImplementedError("rotations compose")

    a, b = T.ones(2).as_subclass(Rotation), T.tensor([1.0, 1.0 + 1e-6]).as_subclass(Rotation)
    T.testing.assert_close(a, b)
    with pytest.raises(AssertionError, match="Tensor-likes are not close"):
        T.testing.assert_close(a, T.zeros(2).as_subclass(Rotation))
