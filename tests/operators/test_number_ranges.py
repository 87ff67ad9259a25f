"""Numbers beyond a dtype's range: what Python gets of them, where they are refused, and how integers wrap."""

import math
import operator

import pytest

from library import T

F64, I64, I8, U8 = T.float64, T.int64, T.int8, T.uint8
HUGE = 1e300


def refused(c_type):
    return pytest.raises(RuntimeError, match=f"value cannot be converted to type {c_type} without overflow")


def test_python_integers_have_no_end():
    for value in (HUGE, -HUGE, 2.0**63, -(2.0**63), 2.0**62, 3.9, -3.9):
        assert int(T.tensor(value, dtype=F64)) == int(T.tensor([[value]], dtype=F64)) == int(value)
    assert int(T.tensor(2.0**70, dtype=F64)) == 2**70
    assert int(T.tensor(3e38)) == int(T.tensor(3e38).item())
    assert int(T.tensor(3 + 0j)) == 3


@pytest.mark.parametrize("value, error", [("inf", OverflowError), ("-inf", OverflowError), ("nan", ValueError)])
def test_what_no_integer_is(value, error):
    with pytest.raises(error, match="cannot convert float"):
        int(T.tensor(float(value)))


def test_complex_numbers_as_real_ones():
    for value in (2.0**70 + 0j, complex("nan"), complex("inf"), 1 + 1j):
        with refused("int64_t"):
            int(T.tensor(value, dtype=T.complex128))
    with refused("double"):
        float(T.tensor(1 + 1j))
    assert float(T.tensor(complex(math.inf, 0))) == math.inf


def test_an_index_is_an_integer():
    assert operator.index(T.tensor([[3]])) == 3 and operator.index(T.tensor(True)) == 1
    for other in (T.tensor(3.0), T.tensor(HUGE, dtype=F64), T.tensor(3 + 0j), T.tensor([1, 2]), T.tensor([], dtype=I64)):
        with pytest.raises(TypeError, match="only integer tensors of a single element can be converted to an index"):
            operator.index(other)


FILLS = {
    "fill_": lambda t, v: t.fill_(v),
    "full_like": lambda t, v: T.full_like(t, v),
    "new_full": lambda t, v: t.new_full((2,), v),
    "full": lambda t, v: T.full((2,), v, dtype=t.dtype),
    "full, empty": lambda t, v: T.full((0,), v, dtype=t.dtype),
    "scalar_tensor": lambda t, v: T.scalar_tensor(v, dtype=t.dtype),
    "x[0]": lambda t, v: t.__setitem__(0, v),
    "x[:]": lambda t, v: t.__setitem__(slice(None), v),
    "x[list]": lambda t, v: t.__setitem__([0], v),
    "x[mask]": lambda t, v: t.__setitem__(T.tensor([True, False]), v),
    "masked_fill": lambda t, v: t.masked_fill(T.tensor([True, False]), v),
    "masked_fill_": lambda t, v: t.masked_fill_(T.tensor([True, False]), v),
    "index_fill": lambda t, v: t.index_fill(0, T.tensor([1]), v),
    "scatter": lambda t, v: t.scatter(0, T.tensor([1]), v),
    "where": lambda t, v: T.where(T.tensor([True, False]), t, v),
}


@pytest.mark.parametrize("name", FILLS)
def test_numbers_that_do_not_fit_are_refused(name):
    fill = FILLS[name]
    cases = [(I8, 300, "int8_t"), (U8, 256, "uint8_t"), (T.int32, 2**31, "int"), (T.float32, HUGE, "float")]
    if name != "where":  # which promotes
        cases += [(I64, HUGE, "int64_t"), (I64, math.inf, "int64_t"), (I64, math.nan, "int64_t")]
    for kind, value, c_type in cases:
        t = T.zeros(2, dtype=kind)
        with refused(c_type):
            fill(t, value)
        assert t.tolist() == [0, 0] and t._version == 0
    for kind, value in ((T.float32, math.inf), (U8, -255), (I64, -(2**63)), (T.float16, 65504.0)):
        fill(T.zeros(2, dtype=kind), value)


def test_new_tensors_of_numbers_that_do_not_fit():
    for kind, value in ((I8, 300), (I8, 300.0), (I64, HUGE), (I64, math.nan), (U8, -300.0)):
        name = str(kind).removeprefix("torch.")
        with refused(name):
            T.tensor(value, dtype=kind)
        with refused(name):
            T.tensor([0, value], dtype=kind)
    assert T.tensor(1e39).item() == math.inf
    with refused("float"):
        T.linspace(0, HUGE, 3)
    with refused("int8_t"):
        T.linspace(0, 300, 3, dtype=I8)


def test_whole_numbers_of_more_than_64_bits():
    for kind in (F64, T.float32, T.bool):
        assert T.tensor([1.5, 2**70], dtype=kind)[1].item() == (True if kind == T.bool else 2**70)
    assert T.tensor([1.5, 2**63]).tolist() == [1.5, 2.0**63]
    for wrong in (lambda: T.tensor(2**64), lambda: T.tensor([2**64]), lambda: T.tensor(2**64, dtype=I64)):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            wrong()
    x = T.ones(2)
    for wrong in (lambda: x + 2**64, lambda: 2**64 * x, lambda: x == 2**64, lambda: x.add_(2**64), lambda: x**2**64):
        with pytest.raises(OverflowError, match="int too big to convert"):
            wrong()
    for wrong in (lambda: x[2**64], lambda: x.sum(2**64), lambda: x.__setitem__(0, 2**64)):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            wrong()


def test_factors_that_do_not_fit():
    x, small = T.ones(2), T.ones(2, dtype=I8)
    with refused("float"):
        x.add(x, alpha=HUGE)
    with refused("int8_t"):
        small.add(1, alpha=300)
    with refused("int8_t"):
        T.addcmul(small, small, small, value=300)
    with refused("float"):
        T.lerp(x, x, HUGE)
    assert T.nan_to_num(T.tensor([math.nan]), HUGE).item() == math.inf


def test_numbers_wrap_to_the_integers_that_they_meet():
    x = T.full((2,), 100, dtype=I8)
    for result in (x // 300, x % 300, T.fmod(x, 300), T.maximum(x, T.tensor(300))):
        assert result.dtype == I8
    assert (x // 300).tolist() == [2, 2] and (x % 300).tolist() == [12, 12]  # 300 is 44.
    assert T.maximum(x, T.tensor(300)).tolist() == [100, 100]
    assert (x == 356).all() and not (x < 300).any()
    y = T.full((20,), 100, dtype=U8)
    assert (y < -1).all() and (y == -156).all()
    y //= 300
    assert y.tolist() == [2] * 20


def test_bounds_beyond_the_range():
    x = T.tensor([100, -100], dtype=I8)
    assert x.clamp(-300, 300).tolist() == [100, -100] and x.clamp_max(300).tolist() == [100, -100]
    for wrong in (lambda: x.clamp(min=300), lambda: x.clamp_min(300), lambda: x.clamp_(300, 400)):
        with pytest.raises(RuntimeError, match="Clamp min value 300 is outside the representable range of Char"):
            wrong()
    with pytest.raises(RuntimeError, match="Clamp max value -1 is outside the representable range of Byte"):
        T.tensor([1], dtype=U8).clamp(max=-1)
