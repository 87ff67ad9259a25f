"""`cond` and `while_loop`: what `if` and `while` would be."""

import pytest

from library import T

pytestmark = pytest.mark.gradiron  # PyTorch compiles them.


def test_a_branch_and_its_gradient():
    x = T.tensor([1.0, 2.0], requires_grad=True)
    y = T.cond(x.sum() > 0, lambda x: x * x, lambda x: -x, (x,))
    y.sum().backward()
    assert y.tolist() == [1.0, 4.0] and x.grad.tolist() == [2.0, 4.0]
    assert T.cond(False, lambda: 1, lambda: 2) == 2
    with pytest.raises(RuntimeError, match="^Expected pred to be bool or single-element tensor, but got"):
        T.cond(T.tensor([True, False]), lambda: 1, lambda: 2)


def test_a_loop_and_its_gradient():
    x = T.tensor(3.0, requires_grad=True)
    times, power = T.while_loop(lambda n, _: n < 3, lambda n, p: (n + 1, p * x), (T.tensor(0), T.tensor(1.0)))
    power.backward()
    assert times == 3 and power == 27 and x.grad == 27
    unchanged = (T.tensor(5),)
    assert T.while_loop(lambda n: n < 3, lambda n: (n + 1,), unchanged) is unchanged
    with pytest.raises(RuntimeError, match="^Expect cond_fn and body_fn to be callable."):
        T.while_loop(3, lambda n: (n,), unchanged)
