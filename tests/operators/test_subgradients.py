"""Gradients where a function has none, or several: at zero, at ties, at infinity, with NaN about. PyTorch's choices, ours."""

import math

import golden_file
import make_kinks
import pytest

from library import T, same_number

ROWS = golden_file.read("kinks.json")


@pytest.mark.parametrize("code, x, y, expected", ROWS, ids=lambda v: str(v)[:60])
def test_gradient_at_a_kink(code, x, y, expected):
    got = make_kinks.gradients(code, [float(v) for v in x], y and [float(v) for v in y], T)
    for g, e in zip(got, expected):
        assert (g is None) == (e is None)
        if e is not None:
            wanted = [float(v) for v in e]
            assert all(same_number(a, b, 1e-9, 1e-12) for a, b in zip(g, wanted)), f"{g}, expected {wanted}"


def test_slope_of_sinc_where_the_square_vanishes():
    for dtype in (T.float32, T.float64):
        x = T.tensor([0.0, T.finfo(dtype).tiny, -T.finfo(dtype).tiny, 1.0], dtype=dtype, requires_grad=True)
        (slope,) = T.autograd.grad(T.sinc(x).sum(), x)
        assert slope[:3].tolist() == [0.0, 0.0, 0.0] and abs(slope[3].item() + 1) < 1e-6


def test_zeros_keep_their_sign_through_a_clone():
    x = T.tensor([-0.0, 0.0], requires_grad=True)
    assert [math.copysign(1, v) for v in x.clone().tolist()] == [-1.0, 1.0]


def test_a_nan_that_was_masked_away_before_does_not_come_back():
    x = T.tensor([1.0, 0.0], requires_grad=True)
    safe = T.where(x > 0, x, T.ones(2))
    T.where(x > 0, safe.log(), T.zeros(2)).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]
