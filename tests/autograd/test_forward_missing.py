"""Forward mode where only some of an operator's operands move: what the tangent knows of the others."""

import pytest

from library import T, assert_values

A = T.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=T.float64)
ONES = T.ones(2, 2, dtype=T.float64)
forward_ad = T.autograd.forward_ad

# Each with what its tangent leads to where only the first moves, and where only the second does: to nothing, to the
# first, the second, or both.
OPERATORS = {
    "mul": (lambda x, y: x * y, "xy", "xy"),
    "mul_": (lambda x, y: x.clone().mul_(y), "xy", "xy"),
    "div": (lambda x, y: x / y, "xy", "xy"),
    "atan2": (T.atan2, "xy", "xy"),
    "pow": (T.pow, "xy", "xy"),
    "maximum": (T.maximum, "", ""),
    "add": (T.add, "", ""),
    "where": (lambda x, y: T.where(A > 1, x, y), "", ""),
    "lerp": (lambda x, y: T.lerp(x, A, y), "xy", "xy"),
    "addcmul": (lambda x, y: T.addcmul(A, x, y), "xy", "xy"),
    "matmul": (T.matmul, "xy", "xy"),
    "addmm": (lambda x, y: T.addmm(A, x, y), "xy", "xy"),
    "einsum": (lambda x, y: T.einsum("ij,jk->ik", x, y), "xy", "xy"),
    "by a number": (lambda x, y: x * 2 + y, "x", ""),
    "over a number": (lambda x, y: x / 2 + y, "x", ""),
}


def tangent(function, x, y, moved):
    with forward_ad.dual_level():
        dual = [forward_ad.make_dual(t, ONES) if name in moved else t for name, t in (("x", x), ("y", y))]
        return forward_ad.unpack_dual(function(*dual)).tangent


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("moved", ("x", "y"))
@pytest.mark.parametrize("recorded", ("", "x", "y", "xy"))
def test_tangents_know_what_missing_ones_were_multiplied_with(name, moved, recorded):
    function, *known = OPERATORS[name]
    x, y = A.clone().requires_grad_("x" in recorded), (A + 0.5).requires_grad_("y" in recorded)
    found = tangent(function, x, y, moved)
    leads_to = [t for n, t in (("x", x), ("y", y)) if n in recorded and n in known[moved == "y"]]
    assert found.requires_grad == bool(leads_to)
    if leads_to:
        assert all(g is not None for g in T.autograd.grad(found.sum(), leads_to, allow_unused=True))


def test_what_a_missing_tangent_adds_is_zero():
    x, y = T.tensor([float("inf"), 2.0], dtype=T.float64, requires_grad=True), T.tensor([3.0, 4.0], dtype=T.float64)
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(forward_ad.make_dual(x, T.ones_like(x)) * y).tangent
    assert_values(found, [3.0, 4.0])
    assert_values(T.autograd.grad((found * x).sum(), x)[0], [3.0, 4.0])


@pytest.mark.parametrize(
    "write", (lambda x, y: x.div_(y), lambda x, y: x.pow_(y), lambda x, y: x.mul_(y), lambda x, y: x.atan2_(y))
)
def test_gradients_through_tangents_that_were_written_over(write):
    x, y = A.clone(), (A + 0.5).requires_grad_()
    found = T.autograd.grad(tangent(lambda x, y: write(x.clone(), y), x, y, "x").sum(), y)[0]
    eps = 1e-6

    def total(y):
        return tangent(lambda x, y: write(x.clone(), y), x, y, "x").sum()

    for i in range(2):
        for j in range(2):
            step = T.zeros(2, 2, dtype=T.float64)
            step[i, j] = eps
            slope = (total(y.detach() + step) - total(y.detach() - step)) / (2 * eps)
            assert_values(found[i, j], slope.item(), rtol=1e-6, atol=1e-6)


def test_zeros_for_what_is_missing_know_of_it_as_gradients_do():
    x = A.clone().requires_grad_()
    found = tangent(lambda x, y: (x * y).sin(), x, A, "x")
    found.sum().backward(create_graph=True)
    assert x.grad.requires_grad
    still = tangent(lambda x, y: x * y, x, A, "x")
    (rows,) = T.autograd.grad(still, x, T.stack([ONES, ONES * 2]), is_grads_batched=True)
    assert_values(rows + 0, T.zeros(2, 2, 2))
    assert rows.stride() == (4, 2, 1)


def test_second_derivatives_that_are_constant_know_of_their_point():
    x = T.tensor([1.0, 2.0], dtype=T.float64, requires_grad=True)
    found = T.func.hessian(lambda x: (x * x.flip(0)).sum())(x)
    assert_values(found, T.tensor([[0.0, 2.0], [2.0, 0.0]]))
    found.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_a_complex_tangent_of_a_real_tensor():
    x, t = T.tensor([0.25, -0.5], dtype=T.float64), T.tensor([1 + 2j, 3 - 1j], dtype=T.complex128)

    def tangent(f):
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(f(forward_ad.make_dual(x, t))).tangent

    # Of an operator on one tensor its real part is left.
    for f in (T.neg, T.square, lambda x: x.clamp(-1, 1) * 1, lambda x: x**2, T.deg2rad):
        assert tangent(f).dtype == T.float64
    for f in (lambda x: x * 2, lambda x: x + 1, lambda x: x * x.detach()):
        assert tangent(f).dtype == T.complex128
    assert_values(tangent(T.square), [0.5, -3.0])
