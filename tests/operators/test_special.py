"""Special functions at known points, counts, quantiles, neighbours: against sums, the standard library, or by hand."""

import math

import pytest

from library import IS_GRADIRON, T, assert_values, python_ok

S = T.special


def double(*values):
    return T.tensor(values, dtype=T.float64)


def test_bessel():
    x = double(-3.0, 0.0, 0.5, 20.0, 40.0)
    terms = [sum(((v / 2) ** k / math.factorial(k)) ** 2 for k in range(120)) for v in x.tolist()]
    assert_values(T.i0(x), terms, rtol=1e-13)
    assert_values(S.i0e(x), T.i0(x) * (-x.abs()).exp(), rtol=1e-13)
    terms = [
        sum((v / 2) ** k / math.factorial(k) * (v / 2) ** (k + 1) / math.factorial(k + 1) for k in range(120))
        for v in x.tolist()
    ]
    assert_values(S.i1(x), terms, rtol=1e-13)
    assert_values(S.i1e(x), S.i1(x) * (-x.abs()).exp(), rtol=1e-13)
    assert_values(S.bessel_j0(double(1.0, 50.0)), [0.7651976865579666, 0.055812327669251746], rtol=1e-12)
    assert_values(S.bessel_j1(double(-1.0, 50.0)), [-0.4400505857449335, -0.09751182812517514], rtol=1e-12)
    assert T.i0(T.tensor([1, 2])).dtype is T.float32 and T.i0(T.tensor(800.0, dtype=T.float64)).item() == math.inf


def test_the_normal_distribution():
    x = double(-20.0, -1.5, 0.0, 2.0)
    assert_values(S.ndtr(double(-1.5, 0.0, 2.0)), [0.5 * math.erfc(-v / math.sqrt(2)) for v in (-1.5, 0.0, 2.0)], rtol=1e-12)
    assert_values(S.log_ndtr(x), [math.log(0.5 * math.erfc(-v / math.sqrt(2))) for v in x.tolist()], rtol=1e-12)
    assert_values(S.ndtri(S.ndtr(double(-3.0, -0.1, 0.7))), [-3.0, -0.1, 0.7], rtol=1e-10)
    assert S.ndtri(double(0.0, 1.0)).tolist() == [-math.inf, math.inf] and S.ndtri(double(1.5)).isnan().all()
    assert_values(S.erfcx(double(0.5, 2.0)), [math.exp(v * v) * math.erfc(v) for v in (0.5, 2.0)], rtol=1e-12)
    assert_values(S.erfcx(double(100.0)), [0.005641613782989433], rtol=1e-13)
    assert S.erfcx(double(-math.inf, -1e200, -30.0, math.inf)).tolist() == [math.inf, math.inf, math.inf, 0.0]
    assert S.entr(double(-math.inf, -1.0, 0.0)).tolist() == [-math.inf, -math.inf, 0.0]
    assert_values(S.entr(double(-1.0, 0.0, 2.0)), [-math.inf, 0.0, -2 * math.log(2)])


def test_the_gamma_function():
    assert_values(S.gammainc(double(1.0), double(2.0)), [1 - math.exp(-2)], rtol=1e-13)
    assert_values(S.gammaincc(double(2.0), double(9.0)), [10 * math.exp(-9)], rtol=1e-12)
    assert_values(S.zeta(double(2.0), double(1.0)), [math.pi**2 / 6], rtol=1e-8)
    assert_values(T.polygamma(1, double(1.0)), [math.pi**2 / 6], rtol=1e-12)
    assert_values(T.polygamma(0, double(2.5)), T.digamma(double(2.5)))
    expected = math.lgamma(2.5) + math.lgamma(2.0) + 0.5 * math.log(math.pi)
    assert_values(S.multigammaln(double(2.5), 2), [expected], rtol=1e-12)
    with pytest.raises(NotImplementedError, match="^the derivative for 'zeta' is not implemented"):
        S.zeta(double(2.0).requires_grad_(), double(1.0)).sum().backward()


# a, x, and how much of the gamma function of a lies below and above x: near the middle, at its edges, far off.
GAMMA_PARTS = [
    (25.0, 25.0, 0.52660153144365064, 0.47339846855634936),
    (30.0, 20.0, 0.021818217525557392, 0.97818178247444261),
    (200.0, 150.0, 5.7096885742082443e-5, 0.99994290311425792),
    (200.0, 260.0, 0.99995249987555699, 4.7500124443008756e-5),
    (1e4, 10100.0, 0.84134875044717962, 0.15865124955282038),
    (1e6, 999000.0, 0.15865521357430365, 0.84134478642569635),
    (1e8, 1e8, 0.50001329807601412, 0.49998670192398588),
    (1e8, 100010000.0, 0.84134474647179881, 0.15865525352820119),
    (1e10, 1e10 + 3e5, 0.99864998378330809, 0.0013500162166919065),
    (1e300, 1e300, 0.5, 0.5),
    (1e300, 1e10, 0.0, 1.0),
]


@pytest.mark.parametrize("a, x, below, above", GAMMA_PARTS)
def test_parts_of_large_gamma_functions(a, x, below, above):
    # PyTorch's have 9 digits for the largest.
    rtol = 1e-12 if IS_GRADIRON else 1e-8
    assert_values(T.igamma(double(a), double(x)), [below], rtol=rtol)
    assert_values(T.igammac(double(a), double(x)), [above], rtol=rtol)
    if a < 1e8:
        assert_values(T.igamma(double(a).float(), double(x).float()), [below], rtol=1e-4)


def test_products_with_logarithms():
    assert_values(S.xlog1py(double(0.0, 2.0), double(-1.0, 1.0)), [0.0, 2 * math.log(2)])
    assert_values(S.xlog1py(2, double(1.0)), [2 * math.log(2)])
    assert_values(T.logaddexp2(double(3.0, 1000.0), double(3.0, 1000.0)), [4.0, 1001.0])


@pytest.mark.parametrize("rule, expected", [("linear", 1.9), ("lower", 1), ("higher", 2), ("midpoint", 1.5), ("nearest", 2)])
def test_quantiles(rule, expected):
    x = double(3.0, 1.0, 2.0, 0.0)
    assert_values(T.quantile(x, 1.9 / 3, interpolation=rule), float(expected))


def test_quantiles_along_dimensions():
    x = double(*range(12)).reshape(3, 4)
    q = double(0.0, 0.5, 1.0)
    assert_values(T.quantile(x, q, dim=1), [[0.0, 4.0, 8.0], [1.5, 5.5, 9.5], [3.0, 7.0, 11.0]])
    assert T.quantile(x, q, dim=0, keepdim=True).shape == (3, 1, 4) and T.quantile(x, 0.5, keepdim=True).shape == (1, 1)
    assert T.quantile(x, q).tolist() == [0, 5.5, 11]
    assert T.quantile(x, q, keepdim=True).shape == (3, 1, 1) and T.quantile(x[0, 0], q, 0, True).shape == (3,)
    y = double(1.0, math.nan, 3.0)
    assert T.quantile(y, 0.5).isnan() and T.nanquantile(y, 0.5).item() == 2
    for call, text in [
        (lambda: T.quantile(x, 1.5), "quantile\\(\\) q must be in the range \\[0, 1\\] but got 1.5"),
        (lambda: T.quantile(x.long(), 0.5), "quantile\\(\\) input tensor must be either float or double dtype"),
        (lambda: T.quantile(x, 0.5, interpolation="z"), "quantile\\(\\) interpolation must be one of linear"),
    ]:
        with pytest.raises(RuntimeError, match=f"^{text}"):
            call()


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", range(3))
def test_quantiles_lie_in_the_order_of_their_dimensions(dim, keepdim):
    x = double(*range(24)).reshape(2, 3, 4)
    medians = T.quantile(x, 0.5, dim, keepdim)
    assert medians.is_contiguous() and T.equal(medians, x.mean(dim, keepdim))
    both = T.quantile(x, double(0.0, 0.5), dim, keepdim)
    assert both.movedim(0, -1).is_contiguous() and T.equal(both[1], medians)
    assert T.equal(both[0], x.amin(dim, keepdim))


def test_counts():
    assert T.bincount(T.tensor([1, 3, 1])).tolist() == [0, 2, 0, 1] and T.bincount(T.tensor([0]), minlength=3).tolist() == [
        1,
        0,
        0,
    ]
    assert T.bincount(T.tensor([1, 1]), T.tensor([0.5, 2.0])).tolist() == [0.0, 2.5]
    assert T.histc(T.tensor([0.0, 1.0, 1.5, 4.0]), 4).tolist() == [1, 2, 0, 1]
    assert T.histc(T.tensor([0.0, 1.0, 9.0]), 2, 0, 2).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="^bincount only supports 1-d non-negative integral inputs."):
        T.bincount(T.tensor([-1]))


def test_the_commonest_value():
    values, indices = T.mode(T.tensor([[1, 2, 2, 1, 3], [5, 4, 4, 4, 5]]))
    assert values.tolist() == [1, 4] and indices.tolist() == [3, 3]
    assert T.mode(T.tensor([[1, 1], [3, 1]]), 0, keepdim=True).values.tolist() == [[1, 1]]
    x = double(2.0, 1.0, 1.0).requires_grad_()
    x.mode().values.backward()
    assert x.grad.tolist() == [0, 0, 1]


def test_whole_numbers():
    a, b = T.tensor([12, -4, 0, 7]), T.tensor([18, 6, 0, 0])
    assert T.gcd(a, b).tolist() == [6, 2, 0, 7] and T.lcm(a, b).tolist() == [36, 12, 0, 0]
    assert T.gcd(a.int(), b.int()).dtype is T.int32 and a.clone().gcd_(b).tolist() == [6, 2, 0, 7]


@pytest.mark.parametrize(
    "kind, step", [("float64", 2.0**-52), ("float32", 2.0**-23), ("float16", 2.0**-10), ("bfloat16", 2.0**-7)]
)
def test_neighbours(kind, step):
    kind = getattr(T, kind)
    one, up, down = (T.tensor(v, dtype=kind) for v in (1.0, 2.0, 0.0))
    assert T.nextafter(one, up).item() == 1 + step and T.nextafter(one, down).item() == 1 - step / 2
    assert T.nextafter(down, up).item() > 0 and T.nextafter(down, down).item() == 0


def test_mantissas():
    mantissa, exponent = T.frexp(T.tensor([6.0, 0.0, -0.3]))
    assert_values(mantissa, [0.75, 0.0, -0.6])
    assert exponent.tolist() == [3, 0, -1] and exponent.dtype is T.int32


def test_blocks_and_slices():
    assert T.block_diag(T.ones(2), T.tensor(3)).tolist() == [[1, 1, 0], [0, 0, 3]]
    x = double(3.0, 4.0, 0.0, 1.0).reshape(2, 2)
    assert_values(T.renorm(x, 2, 0, 1.0), [[0.6, 0.8], [0.0, 1.0]], rtol=1e-6)
    assert_values(T.dist(double(1.0, 2.0), double(4.0, 6.0)), 5.0)
    rows, columns = T.unravel_index(T.tensor([5, 7]), (3, 4))
    assert rows.tolist() == [1, 1] and columns.tolist() == [1, 3]
    for shape, message in (((2, 2.0), "'shape' sequence to only contain ints"), (2.0, "'shape' to be int or sequence of ints")):
        with pytest.raises(TypeError, match=f"^expected {message}, but got <class 'float'>"):
            T.unravel_index(T.tensor(3), shape)


@pytest.mark.gradiron
def test_ctrl_c_ends_a_long_mvlgamma():
    """Its terms come one after another, as many as the caller says, and none is kept."""
    python_ok("""
import threading, _thread
threading.Timer(0.5, _thread.interrupt_main).start()
try:
    T.mvlgamma(T.full((100_000,), 4e4), 1 << 16)
except KeyboardInterrupt:
    pass
else:
    raise AssertionError("went on to its end")
""")


BESSEL = {
    "bessel_y0": ([0.08825696421567691, 0.06264059680938384], [0.7812128213002887, 0.16551161436252115]),
    "bessel_y1": ([-0.7812128213002887, -0.16551161436252115], [0.8694697855159659, 0.07091617752750988]),
    "modified_bessel_k0": ([0.42102443824070834, 5.741237815336524e-10], [-0.6019072301972347, -5.883057969557038e-10]),
    "modified_bessel_k1": ([0.6019072301972347, 5.883057969557038e-10], [-1.0229316684379428, -6.035390713814376e-10]),
}


@pytest.mark.parametrize("name", BESSEL)
def test_bessel_functions_of_the_second_kind(name):
    function = getattr(T.special, name)
    values, slopes = BESSEL[name]
    x = T.tensor([1.0, 20.0], dtype=T.float64, requires_grad=True)
    y = function(x)
    y.sum().backward()
    assert T.allclose(y, T.tensor(values, dtype=T.float64), rtol=1e-9, atol=1e-13)
    assert T.allclose(x.grad, T.tensor(slopes, dtype=T.float64), rtol=1e-9, atol=1e-13)
    at_zero = -math.inf if "y" in name else math.inf
    found = function(T.tensor([0.0, -1.0, math.nan])).tolist()
    assert found[0] == at_zero and math.isnan(found[1]) and math.isnan(found[2])
    assert function(T.tensor([1, 2])).dtype is T.float32
    small = T.tensor([1e-12, 1e-5, 0.5, 3.0], dtype=T.float64)
    assert function(small).dtype is T.float64


def test_scaled_bessel_functions():
    x = T.tensor([1e-3, 0.5, 3.0, 40.0], dtype=T.float64)
    for n in (0, 1):
        plain = getattr(T.special, f"modified_bessel_k{n}")(x)
        assert T.allclose(getattr(T.special, f"scaled_modified_bessel_k{n}")(x), plain * x.exp(), rtol=1e-12)
        assert getattr(T.special, f"scaled_modified_bessel_k{n}")(T.tensor([math.inf])).tolist() == [0.0]


def test_airys_function():
    x = T.tensor([-20.0, -2.4, -1.0, 0.0, 0.5, 1.0, 5.0], dtype=T.float64)
    expected = [-0.17640612707798468, -0.043334140440309504, 0.5355608832923521, 0.3550280538878172, 0.23169360648083348]
    expected += [0.13529241631288141, 0.00010834442813607442]
    assert T.allclose(T.special.airy_ai(x), T.tensor(expected, dtype=T.float64), rtol=1e-12, atol=1e-14)


@pytest.mark.gradiron
def test_gradients_that_pytorch_lacks():
    x = T.tensor([0.3, 1.7, 2.5], dtype=T.float64, requires_grad=True)
    for name in ("airy_ai", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", *BESSEL):
        assert T.autograd.gradcheck(getattr(T.special, name), x)
        assert T.autograd.gradgradcheck(getattr(T.special, name), x)


def test_histograms_of_halves():
    for kind in (T.float16, T.bfloat16):
        assert T.histc(T.tensor([1.0, 2.0, 2.5, 3.0]).to(kind), 4, 0, 4).tolist() == [0, 1, 2, 1]
        assert T.histc(T.zeros((), dtype=kind), 2).dtype is kind


def test_second_derivatives_of_bessel_functions_at_zero():
    # I1 is x/2 + x³/16 + …, and exp(-|x|) I1 is x/2 - x|x|/2 + …
    x = double(0.0, 0.5).requires_grad_()
    for function, at_zero in ((T.i0, 0.5), (S.i1, 0.0), (S.i1e, 0.0)):
        (first,) = T.autograd.grad(function(x).sum(), x, create_graph=True)
        (second,) = T.autograd.grad(first.sum(), x)
        assert second[0].item() == at_zero and second.isfinite().all()
