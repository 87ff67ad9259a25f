"""dtypes: names, promotion (every pair of operands), casts, the default dtype, and what carries which."""

import math
import warnings

import golden_file
import promotion
import pytest
from hypothesis import given
from hypothesis import strategies as st

from library import DTYPES, INTS, T, assert_values, dtype

TABLE = golden_file.read("dtypes.json")


@pytest.mark.parametrize("op", TABLE["binary"])
def test_promotion_of_pairs(op):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = [promotion.result(op, a, b, T) for a, b in promotion.pairs()]
    wrong = [
        f"{op}({a}, {b}): {g}, expected {e}"
        for (a, b), g, e in zip(promotion.pairs(), got, TABLE["binary"][op])
        if not agrees(g, e)
    ]
    assert not wrong, f"{len(wrong)} of {len(got)}\n" + "\n".join(wrong[:40])


def agrees(got, expected):
    return got == expected or ("Error" in got and "Error" in expected)


@pytest.mark.parametrize("op", TABLE["unary"])
def test_result_dtypes_of_one_operand(op):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = [promotion.unary(op, kind, T) for kind in promotion.KINDS]
    wrong = [f"{op}({k}): {g}, expected {e}" for k, g, e in zip(promotion.KINDS, got, TABLE["unary"][op]) if not agrees(g, e)]
    assert not wrong, "\n".join(wrong)


def test_result_type():
    x = T.ones(2)
    assert T.result_type(x, 1j) == T.complex64 and T.result_type(T.tensor(1), 2.0) == T.float32
    assert T.result_type(1, True) == T.int64 and T.result_type(x, T.ones((), dtype=T.float64)) == T.float32
    with pytest.raises(TypeError, match=r"^result_type\(\) received an invalid combination of arguments - got \(str, int\)"):
        T.result_type("a", 1)


def test_promote_types_and_can_cast():
    pairs = [(dtype(a), dtype(b)) for a in promotion.DTYPES for b in promotion.DTYPES]
    assert [str(T.promote_types(a, b)).split(".")[1] for a, b in pairs] == TABLE["promote_types"]
    assert [T.can_cast(a, b) for a, b in pairs] == TABLE["can_cast"]


@pytest.mark.parametrize("pair", TABLE["casts"])
def test_casts(pair):
    source, target = pair.split()
    assert repr(promotion.cast(source, target, T)) == TABLE["casts"][pair]


@given(st.lists(st.floats(-(2.0**53), 2.0**53), max_size=20), st.sampled_from(INTS[:2] + ("float32", "float64")))
def test_casts_from_python_and_back(values, kind):
    if kind.startswith("int"):
        values = [int(v) % 2**31 for v in values]
        assert T.tensor(values, dtype=dtype(kind)).tolist() == values
    else:
        wide = T.tensor(values, dtype=T.float64)
        assert wide.tolist() == values
        assert wide.to(dtype(kind)).double().to(dtype(kind)).tolist() == wide.to(dtype(kind)).tolist()


NAMES = {
    "float32": "float",
    "float64": "double",
    "float16": "half",
    "int64": "long",
    "int32": "int",
    "int16": "short",
}


def test_names_and_aliases():
    for name in DTYPES:
        assert str(dtype(name)) == repr(dtype(name)) == f"torch.{name}"
        assert isinstance(dtype(name), T.dtype)
    for name, alias in NAMES.items():
        assert dtype(name) is getattr(T, alias)
    assert len({dtype(name) for name in DTYPES}) == len(DTYPES)
    with pytest.raises((TypeError, RuntimeError)):
        T.dtype()


def test_properties():
    sizes = dict(float32=4, float64=8, float16=2, bfloat16=2, int64=8, int32=4, int16=2, int8=1, uint8=1, bool=1)
    for name, size in sizes.items():
        kind = dtype(name)
        assert kind.itemsize == size == T.ones(1, dtype=kind).element_size() == T.ones(1, dtype=kind).itemsize
        assert kind.is_floating_point == ("float" in name) == T.ones(1, dtype=kind).is_floating_point()
        assert kind.is_signed == (name not in ("uint8", "bool"))
        assert not kind.is_complex
        assert T.is_floating_point(T.ones(1, dtype=kind)) == ("float" in name)
        assert T.ones(3, dtype=kind).nbytes == 3 * size


def test_finfo_and_iinfo():
    f = T.finfo(T.float32)
    assert (f.bits, f.eps, f.max, f.min) == (32, 2.0**-23, 3.4028234663852886e38, -3.4028234663852886e38)
    assert f.tiny == f.smallest_normal == 2.0**-126 and f.resolution == 1e-6 and f.dtype == "float32"
    assert T.finfo(T.float64).eps == 2.0**-52 and T.finfo(T.float16).max == 65504 and T.finfo(T.bfloat16).eps == 2.0**-7
    assert T.finfo().dtype == "float32"
    i = T.iinfo(T.int8)
    assert (i.bits, i.min, i.max, i.dtype) == (8, -128, 127, "int8")
    assert T.iinfo(T.int64).max == 2**63 - 1 and T.iinfo(T.uint8).min == 0


def test_the_default_dtype():
    assert T.get_default_dtype() is T.float32
    T.set_default_dtype(T.float64)
    for x in (
        T.zeros(1),
        T.rand(1),
        T.tensor(1.5),
        T.tensor([1.0]),
        T.arange(3.0),
        T.linspace(0, 1, 2),
        T.eye(2),
        T.ones(1) * 2,
        T.tensor([1, 2]) / 2,
        T.tensor([1, 2]).exp(),
        T.tensor([1]) * 1.5,
        T.full((2,), 1.0),
        T.Tensor([1]),
    ):
        assert x.dtype is T.float64
    for x in (T.tensor(1), T.arange(3), T.full((2,), 1), T.randint(3, (2,)), T.zeros(1, dtype=T.int32)):
        assert not x.is_floating_point()
    T.set_default_dtype(T.float16)
    assert T.tensor(1.0).dtype is T.float16


def test_inference_from_python():
    for data, kind in [
        (1, T.int64),
        (1.0, T.float32),
        (True, T.bool),
        ([1, 2.0], T.float32),
        ([True, 2], T.int64),
        ([], T.float32),
        ([[]], T.float32),
        ([[True], [2.5]], T.float32),
        ((1, 2), T.int64),
        (range(3), T.int64),
        ([T.tensor(1), T.tensor(2)], T.int64),
        ([T.tensor(1.0), 2], T.float32),
    ]:
        assert T.tensor(data).dtype is kind, data


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_stores_and_gives_back(name):
    x = T.tensor([[0, 1], [1, 0]], dtype=dtype(name))
    assert x.dtype is dtype(name)
    kind = bool if name == "bool" else float if "float" in name else int
    assert x.tolist() == [[kind(0), kind(1)], [kind(1), kind(0)]]
    assert all(type(v) is kind for row in x.tolist() for v in row)
    assert type(x[0, 1].item()) is kind


@pytest.mark.parametrize(
    "method, name",
    [
        ("float", "float32"),
        ("double", "float64"),
        ("half", "float16"),
        ("bfloat16", "bfloat16"),
        ("int", "int32"),
        ("long", "int64"),
        ("short", "int16"),
        ("char", "int8"),
        ("byte", "uint8"),
        ("bool", "bool"),
    ],
)
def test_conversion_methods(method, name):
    x = T.tensor([0.0, 1.0, 3.7])
    y = getattr(x, method)()
    assert y.dtype is dtype(name) and y is getattr(y, method)()
    assert y.tolist() == x.to(dtype(name)).tolist()


def test_to():
    x = T.ones(2)
    assert x.to(T.float32) is x and x.to("cpu") is x and x.to(x) is x
    assert x.to(T.float32, copy=True) is not x
    assert x.to(T.int32).dtype is T.int32 and x.to(T.zeros(1, dtype=T.int8)).dtype is T.int8
    assert x.to(device="cpu", dtype=T.float64).dtype is T.float64
    assert x.to("cpu", T.float64, True).dtype is T.float64


def test_type():
    x = T.ones(2)
    assert x.type() == "torch.FloatTensor" and T.ones(1, dtype=T.int64).type() == "torch.LongTensor"
    assert x.type(T.float64).dtype is T.float64 and x.type("torch.LongTensor").dtype is T.int64
    assert T.tensor(True).type() == "torch.BoolTensor"


def test_integers_wrap():
    x = T.tensor([127, -128], dtype=T.int8)
    assert (x + 1).tolist() == [-128, -127] and (-x).tolist() == [-127, -128] and (x * 2).tolist() == [-2, 0]
    assert (T.tensor([2**63 - 1]) + 1).tolist() == [-(2**63)]
    assert T.tensor([-(2**63)]).abs().tolist() == [-(2**63)]
    assert (T.tensor([-(2**63)]) // -1).tolist() == [-(2**63)]
    assert T.tensor([200], dtype=T.uint8).add(100).tolist() == [44]


def test_large_integers_are_exact():
    big = 2**62 + 1
    x = T.tensor([big, -big])
    assert (x + 1).tolist() == [big + 1, 1 - big]
    assert (x * 1).tolist() == [big, -big] and x.sum().item() == 0 and x.max().item() == big
    assert (x == big).tolist() == [True, False] and (x // 2).tolist() == [big // 2, -big // 2]


def test_half_rounds_to_even():
    assert T.tensor([2049.0, 2051.0]).half().tolist() == [2048.0, 2052.0]
    assert T.tensor([1 + 2.0**-8, 1 + 3 * 2.0**-8]).bfloat16().tolist() == [1.0, 1.015625]
    assert T.tensor([65520.0]).half().tolist() == [float("inf")]
    assert_values(T.tensor([6e-8]).half(), [5.9604644775390625e-08], rtol=0)


def test_bools():
    x = T.tensor([True, False])
    assert (x + x).tolist() == [True, False] and (x * x).dtype is T.bool
    assert x.sum().item() == 1 and x.sum().dtype is T.int64
    assert (~x).tolist() == [False, True] and (x & True).tolist() == [True, False] and (x ^ x).tolist() == [False, False]
    assert T.tensor([0.5, 0.0, float("nan")]).bool().tolist() == [True, False, True]


def test_limits():
    shown = "finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, smallest_normal=6.10352e-05, tiny=6.10352e-05, "
    assert repr(T.finfo(T.float16)) == shown + "dtype=float16)" and T.finfo().bits == 32
    assert T.finfo(T.float64).eps == 2.0**-52 and T.finfo(T.bfloat16).max == 3.3895313892515355e38
    assert T.finfo(T.float32).max == T.tensor(3.4028234663852886e38).item() and T.finfo(T.float32) == T.finfo(T.float32)
    assert repr(T.iinfo(T.int8)) == "iinfo(min=-128, max=127, dtype=int8)" and T.iinfo(T.uint8).max == 255
    with pytest.raises(TypeError, match="finfo.. requires a floating point input type"):
        T.finfo(T.int64)
    with pytest.raises(TypeError, match="bool is not supported by torch.iinfo"):
        T.iinfo(T.bool)


def test_sums_and_products_in_truth_values():
    x = T.tensor([[1.0, 0.0], [2.0, 3.0]])
    for found, expected in [
        (x.sum(dtype=T.bool), True),
        (x.sum(0, dtype=T.bool), [True, True]),
        (x.prod(dtype=T.bool), False),
        (x.prod(1, dtype=T.bool), [False, True]),
    ]:
        assert found.dtype == T.bool and found.tolist() == expected
    for call in (lambda: x.cumsum(0, dtype=T.bool), lambda: x.cumprod(0, dtype=T.bool)):
        with pytest.raises(NotImplementedError, match="_out_cpu\" not implemented for 'Bool'"):
            call()


@pytest.mark.parametrize(
    "call, kernel",
    [
        (lambda t: t.clamp(t, t), "clamp_cpu"),
        (lambda t: t.clamp(False, True), "clamp_scalar_cpu"),
        (lambda t: t.clamp(min=False), "clamp_min_scalar_cpu"),
        (lambda t: t.clamp_max(True), "clamp_max_scalar_cpu"),
    ],
)
def test_truth_values_are_not_clamped(call, kernel):
    t = T.tensor([True, False])
    with pytest.raises(NotImplementedError, match=f"\"{kernel}\" not implemented for 'Bool'"):
        call(t)
    assert t.clamp(t).tolist() == t.clamp_min(~t & t).tolist() == [True, False]


@pytest.mark.parametrize(
    "call, sentence",
    [
        (lambda f, x: f.l1_loss(x, x), "could not infer output dtype"),
        (lambda f, x: f.smooth_l1_loss(x, x, beta=0), "could not infer output dtype"),
        (lambda f, x: f.nll_loss(x, x[0, :2]), "\"nll_loss_out_frame\" not implemented for 'Long'"),
        (lambda f, x: f.nll_loss(x[:, :, None, None], x[:, :1, None]), '"nll_loss2d_forward_out_frame" not implemented'),
        (lambda f, x: f.cross_entropy(x, x[0, :2]), "not implemented for 'Long'"),
        (lambda f, x: f.binary_cross_entropy_with_logits(x, x), "\"log_sigmoid_cpu\" not implemented for 'Long'"),
    ],
)
def test_losses_of_whole_numbers(call, sentence):
    with pytest.raises(NotImplementedError, match=sentence):
        call(T.nn.functional, T.ones(2, 3, dtype=T.int64))


def test_losses_of_other_probabilities():
    loss, x = T.nn.functional.binary_cross_entropy, T.tensor([0.0, 1.0])
    for target in (x.double(), x.half(), x.long(), x.bool()):
        with pytest.raises(RuntimeError, match=f"Found dtype {target.type().split('.')[-1][:-6]} but expected Float"):
            loss(x, target)
    with pytest.raises(NotImplementedError, match="\"binary_cross_entropy\" not implemented for 'Long'"):
        loss(x.long(), x.long())


def test_a_loss_of_logits_is_of_its_targets_type():
    loss, x = T.nn.functional.binary_cross_entropy_with_logits, T.tensor([0.0, 1.0])
    for target in (x.double(), x.half(), x.bfloat16()):
        assert loss(x, target).dtype is target.dtype
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        loss(x, x.long())
    with pytest.raises(NotImplementedError, match="with two bool tensors is not supported"):
        loss(x, x.bool())
    assert loss(x, x.to(T.complex64)).dtype is T.complex64
    with pytest.raises(NotImplementedError, match="does not support automatic differentiation for outputs with complex dtype"):
        loss(x.requires_grad_(), x.detach().to(T.complex64))


def test_probabilities_are_no_whole_numbers():
    x = T.ones(2, 3, dtype=T.int64)
    with pytest.raises(RuntimeError, match="Expected floating point type for target with class probabilities, got Long"):
        T.nn.functional.cross_entropy(x, x)


def test_an_index_without_elements_is_of_any_dtype():
    assert T.ones(3).gather(0, T.ones(0)).shape == (0,) and T.ones(3).gather(0, T.ones(2, 0)).shape == (2, 0)
    with pytest.raises(RuntimeError, match="Expected dtype int32/int64 for index"):
        T.ones(3).gather(0, T.ones(1))


def test_factors_of_whole_numbers_are_whole():
    x, s = T.zeros(2, dtype=T.int64), T.tensor([2], dtype=T.int64)
    assert x.index_add(0, T.tensor([0]), s, alpha=0.5).tolist() == [0, 0]
    assert x.index_add(0, T.tensor([0]), s, alpha=2.5).tolist() == [4, 0]


def test_the_gradient_of_a_rounded_quotient_is_nothing():
    x, y = (T.tensor(v, requires_grad=True) for v in ([7.0, -7.0], [2.0, 3.0]))
    for mode in ("floor", "trunc"):
        grads = T.autograd.grad(x.div(y, rounding_mode=mode), (x, y), T.tensor([float("inf"), float("nan")]))
        assert [g.tolist() for g in grads] == [[0.0, 0.0]] * 2
    weight = T.tensor([1.0, 2.0], requires_grad=True)
    (deep,) = T.autograd.grad(T.remainder(x, y), y, weight, create_graph=True)
    (again,) = T.autograd.grad(deep.sin().sum(), y, create_graph=True)
    assert again.tolist() == [0.0, 0.0] and not again.requires_grad


def test_the_slope_of_a_loss_of_logits_along_its_target_may_be_infinite():
    x, target = T.tensor([math.inf, -math.inf, 1e30]), T.full((3,), 0.25).requires_grad_()
    T.nn.functional.binary_cross_entropy_with_logits(x, target, reduction="sum").backward()
    assert T.equal(target.grad, -x)


def test_dtypes_are_named_as_in_c():
    for a, b, names in (
        (T.int16, T.float32, "short int != float"),
        (T.uint8, T.complex64, r"unsigned char != c10::complex<float>"),
    ):
        with pytest.raises(RuntimeError, match=f"expected m1 and m2 to have the same dtype, but got: {names}"):
            T.mm(T.ones(2, 2, dtype=a), T.ones(2, 2, dtype=b))
    with pytest.raises(RuntimeError, match="but got input float and hist short int"):
        T.histogram(T.ones(3), 2, out=(T.ones(2, dtype=T.int16), T.ones(3)))
