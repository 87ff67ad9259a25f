"""Sums of a product and a number in float32, and what is made of them: rounded once."""

from __future__ import annotations

from typing import Any

from library import T


def drawn(count: int) -> list[Any]:
    T.manual_seed(0)
    return [T.rand(4000) * 4 - 2 for _ in range(count)]


def test_the_gradient_of_tanh() -> None:
    x, g = drawn(2)
    x.requires_grad_()
    y = x.tanh()
    slope = (1 - y.detach().double().square()).float()
    (plain,) = T.autograd.grad(y, x, g, retain_graph=True)
    (recorded,) = T.autograd.grad(y, x, g, create_graph=True)
    assert T.equal(plain, g * slope)
    assert T.equal(recorded.detach(), g * slope)


def test_addcmul() -> None:
    a, b, c = drawn(3)
    exact = a.double() + (0.7 * b).double() * c.double()
    assert T.equal(T.addcmul(a, b, c, value=0.7), exact.float())


def test_lerp() -> None:
    a, b, w = drawn(3)
    step, near = (b - a).double(), w.abs() < 0.5
    exact = T.where(near, a.double() + w.double() * step, b.double() - (1 - w).double() * step)
    assert T.equal(T.lerp(a, b, w), exact.float())


def test_whole_numbers() -> None:
    a, b = T.tensor([2**62, -5]), T.tensor([3, 7])
    assert T.addcmul(a, b, b, value=2).tolist() == [2**62 + 18, 93]
