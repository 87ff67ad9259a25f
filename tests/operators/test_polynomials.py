"""Orthogonal polynomials of `special`, against their closed forms, and Bessel functions by other names."""

import math

import pytest

from library import T

S = T.special
ANGLES = T.tensor([0.3, 1.0, 2.0], dtype=T.float64)


@pytest.mark.parametrize("n", range(8))
def test_chebyshev_by_angles(n):
    """With x the cosine of an angle, each kind is a quotient of sines and cosines of its multiples."""
    x, a = ANGLES.cos(), ANGLES
    forms = {
        "t": (n * a).cos(),
        "u": ((n + 1) * a).sin() / a.sin(),
        "v": ((n + 0.5) * a).cos() / (a / 2).cos(),
        "w": ((n + 0.5) * a).sin() / (a / 2).sin(),
    }
    for kind, expected in forms.items():
        assert T.allclose(getattr(S, f"chebyshev_polynomial_{kind}")(x, n), expected)
        assert T.allclose(getattr(S, f"shifted_chebyshev_polynomial_{kind}")((x + 1) / 2, n), expected)


def test_low_orders():
    x = T.tensor([-0.5, 0.0, 1.5], dtype=T.float64)
    for name, forms in {
        "hermite_polynomial_h": [x**0, 2 * x, 4 * x**2 - 2, 8 * x**3 - 12 * x],
        "hermite_polynomial_he": [x**0, x, x**2 - 1, x**3 - 3 * x],
        "laguerre_polynomial_l": [x**0, 1 - x, (x**2 - 4 * x + 2) / 2, (-(x**3) + 9 * x**2 - 18 * x + 6) / 6],
        "legendre_polynomial_p": [x**0, x, (3 * x**2 - 1) / 2, (5 * x**3 - 3 * x) / 2],
    }.items():
        function = getattr(S, name)
        for n, expected in enumerate(forms):
            assert T.allclose(function(x, n), expected)
        # An order for each element; below 0 there is nothing, and fractions are cut off.
        found = function(x[:, None], T.tensor([-1.0, 2.9]))
        assert T.allclose(found, T.stack([x * 0, forms[2]], 1))


def test_dtypes_and_refusals():
    f = S.legendre_polynomial_p
    assert f(T.tensor([1, 2]), 2).dtype == T.float32
    assert f(0.5, T.tensor([2])).tolist() == [-0.125]
    out = T.empty(2)
    assert f(T.ones(2), 2, out=out) is out
    assert out.tolist() == [1.0, 1.0]
    assert f(T.ones(0), 3).shape == (0,)
    with pytest.raises(TypeError, match=r"special_legendre_polynomial_p\(\) received an invalid combination of arguments"):
        f(2, 3)
    with pytest.raises(NotImplementedError, match="\"legendre_polynomial_p_cpu\" not implemented for 'ComplexFloat'"):
        f(T.ones(2) * 1j, 2)
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        f(T.ones(2), T.ones(3))


@pytest.mark.parametrize("order", [2**21, 2**62, 1e300, math.inf])
def test_orders_that_would_never_end(order):
    with pytest.raises(NotImplementedError, match=r"special_legendre_polynomial_p\(\) of an order above 1,048,576"):
        S.legendre_polynomial_p(T.ones(2, dtype=T.float64), order)


def test_an_order_that_is_no_number():
    assert S.legendre_polynomial_p(T.ones(2), T.tensor([math.nan, 1.0])).tolist() == [0.0, 1.0]


def test_bessel_functions_by_other_names():
    x = T.tensor([0.0, 0.3, -5.0])
    assert T.equal(S.modified_bessel_i0(x), S.i0(x))
    assert T.equal(S.modified_bessel_i1(x), S.i1(x))
    expected = [1.0, math.sin(0.3) / 0.3, math.sin(5) / 5]
    assert T.allclose(S.spherical_bessel_j0(x), T.tensor(expected))


def test_the_spherical_bessel_function_beside_its_zeros_and_far_away():
    near = T.tensor([3.140625, 6.283203125, math.inf, -math.inf, math.nan])
    found = S.spherical_bessel_j0(near).tolist()
    expected = [math.sin(3.140625) / 3.140625, math.sin(6.283203125) / 6.283203125]
    assert found[:2] == pytest.approx(expected, rel=2e-7)
    assert found[2:4] == [0.0, 0.0] and math.isnan(found[4])


def test_a_high_order_is_quick():
    x = T.tensor([0.5, -1.0], dtype=T.float64)
    assert T.allclose(S.chebyshev_polynomial_t(x, 100_000), T.tensor([-0.5, 1.0], dtype=T.float64))


@pytest.mark.gradiron
def test_gradients_of_every_order():
    # (PyTorch has none.)
    x = T.tensor([-0.5, 0.25, 1.5], dtype=T.float64, requires_grad=True)
    for name in ("chebyshev_polynomial_v", "hermite_polynomial_h", "laguerre_polynomial_l", "legendre_polynomial_p"):
        for n in (0, 1, 2, 5, T.tensor([1.0, 4.0, 3.0])):
            assert T.autograd.gradcheck(lambda x: getattr(S, name)(x, n), x)
            assert T.autograd.gradgradcheck(lambda x: getattr(S, name)(x, n), x)
    (third,) = T.autograd.grad(T.func.jacrev(T.func.jacrev(lambda x: S.hermite_polynomial_he(x, 3).sum()))(x).sum(), x)
    assert third.tolist() == [6.0] * 3
    assert T.func.vmap(S.legendre_polynomial_p, (0, None))(x.detach(), 2).tolist() == S.legendre_polynomial_p(x, 2).tolist()
