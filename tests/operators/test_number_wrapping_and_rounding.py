"""Numbers that an element does not hold: integers wrap or are refused, half precision rounds them."""

import operator

import pytest

from library import T, dtype, tensor


def small(kind="uint8"):
    return T.tensor([0, 1, 200 if kind == "uint8" else -2], dtype=getattr(T, kind))


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda x: x + 300, [44, 45, 244]),
        (lambda x: 300 - x, [44, 43, 100]),
        (lambda x: x * 1000, [0, 232, 64]),
        (lambda x: x < 300, [True, True, False]),
        (lambda x: x < -1, [True, True, True]),
        (lambda x: x % 300, [0, 1, 24]),
        (lambda x: x // 300, [0, 0, 4]),
        (lambda x: x / 256, [0, 1 / 256, 200 / 256]),
        (lambda x: x / T.tensor(-2), [0, -0.5, -100]),
        (lambda x: T.div(x, 2**33, out=T.empty(3)), [0, 2.0**-33, 200 * 2.0**-33]),
        (lambda x: T.copysign(x, -1), [-0.0, -1, -200]),
        (lambda x: x << 256, [0, 1, 200]),
        (lambda x: x & 1000, [0, 0, 200]),
        (lambda x: x % T.tensor(300), [0, 1, 24]),
        (lambda x: T.maximum(x, T.tensor(300)), [44, 44, 200]),
        (lambda x: T.maximum(x, T.tensor(-2, dtype=T.int8)), [254, 254, 254]),
        (lambda x: x < T.tensor(-2, dtype=T.int8), [True, True, True]),
        (lambda x: x.clone().remainder_(300), [0, 1, 24]),
        (lambda x: T.remainder(x, 300, out=T.empty(3, dtype=T.uint8)), [0, 1, 24]),
        (lambda x: T.clamp(x, -5, 300), [0, 1, 200]),
        (lambda x: T.where(x > 0, x, -3), [253, 1, 200]),
        (lambda x: x.masked_fill(x > 0, -3), [0, 253, 253]),
        (lambda x: x.clone().fill_(-3), [253, 253, 253]),
    ],
)
def test_operands_wrap(call, expected):
    assert call(small()).tolist() == expected


@pytest.mark.parametrize("number", [0, 1, True, False, 2, -1, 0.5])
@pytest.mark.parametrize("compare", [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge])
def test_truth_values_compare_as_numbers(compare, number):
    values = [i % 3 == 0 for i in range(40)]
    for n in (1, 5, 40):
        x = T.tensor(values[:n])
        assert compare(x, number).tolist() == [compare(v, number) for v in values[:n]]
        assert compare(x, x.flip(0)).tolist() == [compare(*pair) for pair in zip(values[:n], values[:n][::-1], strict=True)]


@pytest.mark.parametrize(
    "call, what",
    [
        (lambda: small() ** 300, "value cannot be converted to type uint8_t without overflow"),
        (lambda: small() // 256, "ZeroDivisionError"),
        (lambda: small("int8") ** 300, "value cannot be converted to type int8_t without overflow"),
        (lambda: small("int16").pow_(70000), "value cannot be converted to type int16_t without overflow"),
        (lambda: small("int32") ** 3000000000, "value cannot be converted to type int without overflow"),
        (lambda: T.where(small() > 0, small(), 300), "value cannot be converted to type uint8_t without overflow"),
        (lambda: small().masked_fill(small() > 0, 300), "value cannot be converted to type uint8_t without overflow"),
        (lambda: small().index_fill(0, T.tensor([0]), 300), "value cannot be converted to type uint8_t without overflow"),
        (lambda: small().scatter(0, T.tensor([0]), 300), "value cannot be converted to type uint8_t without overflow"),
        (lambda: small().fill_(300), "value cannot be converted to type uint8_t without overflow"),
        (lambda: T.full((2,), 3000000000, dtype=T.int32), "value cannot be converted to type int without overflow"),
        (lambda: T.full_like(small(), -256), "value cannot be converted to type uint8_t without overflow"),
        (lambda: T.full((1,), 1e300), "value cannot be converted to type float without overflow"),
        (lambda: T.full((1,), float("nan"), dtype=T.int64), "value cannot be converted to type int64_t without overflow"),
        (lambda: T.clamp(small(), 300), "Clamp min value 300 is outside the representable range of Byte"),
        (lambda: T.clamp(small("int8"), -1000, -500), "Clamp max value -500 is outside the representable range of Char"),
        (
            lambda: T.clamp_min(small("int16"), 12345678),
            "Clamp min value 1.23457e.07 is outside the representable range of Short",
        ),
        (lambda: T.clamp_max(small("int32"), -3000000000), "Clamp max value -3e.09 is outside the representable range of Int"),
    ],
)
def test_values_are_refused(call, what):
    with pytest.raises(RuntimeError, match=what):
        call()


@pytest.mark.parametrize("name, total", [("sum", 272), ("nansum", 272), ("prod", 34**8)])
@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "int32", "int64"])
def test_results_of_the_dtype_that_was_asked_for(name, total, kind):
    dtype, x = getattr(T, kind), T.full((2, 8), 34, dtype=T.int8)
    bits = dtype.itemsize * 8
    wanted = total % 2**bits
    if kind != "uint8" and wanted >= 2 ** (bits - 1):
        wanted -= 2**bits
    call = getattr(T, name)
    for got in (call(x, 1, dtype=dtype), call(x.double(), 1, dtype=dtype), call(x, 1, True, dtype=dtype).squeeze(1)):
        assert got.dtype is dtype and got.tolist() == [wanted, wanted]
    whole = call(x[0], dtype=dtype)
    assert whole.dtype is dtype and whole.item() == wanted
    if name != "nansum":
        out = T.empty(2, dtype=dtype)
        assert call(x, 1, out=out) is out and out.tolist() == [wanted, wanted]
    assert call(x, 1).dtype is T.int64


def test_bounds_may_lie_beyond():
    assert T.clamp(small("int8"), -500, 500).tolist() == [0, 1, -2]
    assert T.clamp_max(small("int32"), 2**40 + 3).tolist() == [0, 1, -2]
    assert T.full((1,), 1e39, dtype=T.float16).item() == float("inf") and (T.ones(1) * 1e300).item() == float("inf")


HALVES = ["float16", "bfloat16"]
ORDERS = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}


@pytest.mark.parametrize("kind", HALVES)
def test_what_was_stored_in_half_precision_is_found(kind, device):
    for number in (0.1, 0.3, -1e4, 1 / 3, 2049):
        x = T.full((3,), number, dtype=dtype(kind), device=device)
        for name, order in ORDERS.items():
            expected = [order(1, 1)] * 3
            for other in (number, T.tensor(number, dtype=T.float64, device="cpu")):
                assert getattr(T, name)(x, other).tolist() == expected
                assert getattr(x.clone(), f"{name}_")(other).bool().tolist() == expected
        assert not (x % number).any() and not T.fmod(x, number).any()
    x = T.full((3,), 2049, dtype=dtype(kind), device=device)
    assert (x == T.full((3,), 2049, device=device)).all()
    assert T.vmap(lambda v: v == 2049)(x).all()


@pytest.mark.parametrize("kind", HALVES)
def test_bounds_in_half_precision_meet_their_elements(kind):
    x = tensor([0.1, 0.3], kind).requires_grad_()
    for number, at in ((0.1, 0), (0.3, 1)):
        wide = T.tensor(number, dtype=T.float64)
        for f, grad in (
            (lambda: x.clamp(min=number), 0.0),
            (lambda: x.clamp(max=number), 0.0),
            (lambda: T.maximum(x, wide), 0.5),
            (lambda: T.fmin(x, wide), None),
        ):
            found = [T.autograd.grad(f().sum(), x, create_graph=again)[0][at].item() for again in (False, True)]
            assert found[0] == found[1] and grad in (None, found[0])
            assert f()[at] == number
    other = T.tensor(0.3, dtype=T.float64, requires_grad=True)
    (T.maximum(x, other) * 2).sum().backward()
    assert other.grad.item() == 3.0


@pytest.mark.parametrize(
    "call, halves, brains",
    [
        (lambda x, third: x - 0.3, [0.0, -3.0, 5.0], [0.0, -3.0, 5.0]),
        (lambda x, third: 0.3 - x, [0.0, 3.0, -5.0], [0.0, 3.0, -5.0]),
        (lambda x, third: x.clone().sub_(0.3), [0.0, -3.0, 5.0], [0.0, -3.0, 5.0]),
        (lambda x, third: x + third, [0.6333, -2.365, 5.633], [0.633, -2.38, 5.66]),
        (lambda x, third: T.add(third, x, alpha=0.7), [0.5435, -1.557, 4.043], [0.543, -1.555, 4.06]),
        (lambda x, third: T._foreach_add([x], 1 / 3)[0], [0.6333, -2.365, 5.633], [0.633, -2.38, 5.66]),
        (lambda x, third: x * (1 / 3), [0.10004, -0.9, 1.767], [0.1, -0.902, 1.77]),
        (lambda x, third: x * third, [0.10004, -0.9, 1.767], [0.1, -0.902, 1.77]),
        (lambda x, third: third * x, [0.1, -0.8994, 1.767], [0.1006, -0.902, 1.77]),
        (lambda x, third: x / 0.3, [1.0, -9.0, 17.67], [1.0, -9.0, 17.8]),
        (lambda x, third: T.div(third, x), [1.11, -0.1235, 0.06287], [1.11, -0.1235, 0.063]),
        (lambda x, third: x // 0.1, [3.0, -27.0, 53.0], [3.0, -28.0, 53.0]),
        (lambda x, third: x.abs() ** (1 / 3), [0.6694, 1.393, 1.743], [0.668, 1.39, 1.75]),
        (lambda x, third: 0.3**x, [0.697, 25.78, 0.001693], [0.695, 25.8, 0.00169]),
        (lambda x, third: T.atan2(x, third), [0.733, -1.448, 1.508], [0.734, -1.445, 1.51]),
        (lambda x, third: T.hypot(third, x), [0.4485, 2.719, 5.312], [0.45, 2.72, 5.3]),
        (lambda x, third: T.lerp(x, x * 3, 1 / 3), [0.5, -4.496, 8.836], [0.5, -4.5, 8.9]),
        (lambda x, third: T.lerp(x, x * 3, third), [0.5, -4.496, 8.836], [0.5, -4.5, 8.9]),
        (lambda x, third: T.addcmul(x, third, x, value=1 / 3), [0.3335, -3.0, 5.89], [0.334, -3.0, 5.9]),
        (lambda x, third: T.addcdiv(x, x * 3, third), [3.002, -26.98, 53.03], [3.0, -27.0, 53.0]),
    ],
)
def test_operands_are_rounded_to_half_precision(call, halves, brains, device):
    third = T.tensor(1 / 3, dtype=T.float64, device=device)
    for kind, expected in zip(HALVES, (halves, brains), strict=True):
        x = T.tensor([0.3, -2.7, 5.3], dtype=dtype(kind), device=device)
        assert call(x, third).tolist() == T.tensor(expected, dtype=dtype(kind)).tolist()


@pytest.mark.parametrize("kind", HALVES)
def test_what_is_rounded_keeps_its_history(kind):
    x = tensor([0.3, -2.7], kind).requires_grad_()
    third = T.tensor(1 / 3, dtype=T.float64, requires_grad=True)
    for f in (T.add, T.sub, T.mul, T.div, T.atan2, T.maximum):
        for y in (f(x, third), f(third, x)):
            assert [type(node).__name__ for node, _ in y.grad_fn.next_functions] == ["AccumulateGrad"] * 2
            by_x, by_third = T.autograd.grad(y.sum(), (x, third))
            assert by_x.dtype is dtype(kind) and by_third.dtype is T.float64 and by_third.shape == ()


def test_numbers_too_large_for_halves():
    x = tensor([1.0, 0.0], "float16")
    assert T.where(x > 0, x, -1e9).tolist() == [1.0, float("-inf")]
    assert T.addcmul(x, x, x, value=1e5).tolist() == T.lerp(x, x + x, 1e5).tolist() == [float("inf"), 0.0]
    for call in (lambda: T.add(x, x, alpha=1e5), lambda: T.addcmul(x, x, x, value=1e39)):
        with pytest.raises(RuntimeError, match="value cannot be converted to type .* without overflow"):
            call()
