"""`associative_scan`: running totals by any associative function."""

import pytest

from library import T

scan = __import__(f"{T.__name__}._higher_order_ops.associative_scan", fromlist=["associative_scan"]).associative_scan


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 8, 9])
@pytest.mark.parametrize("reverse", [False, True])
def test_sums(length, reverse):
    x = T.randn(2, length, 3, dtype=T.float64)
    wanted = x.flip(1).cumsum(1).flip(1) if reverse else x.cumsum(1)
    assert T.allclose(scan(T.add, x, 1, reverse=reverse, combine_mode="generic"), wanted)


def test_a_recurrence_and_its_gradient():
    a, b = (T.rand(2, 5, dtype=T.float64, requires_grad=True) for _ in range(2))

    def join(left, right):
        return left[0] * right[0], left[1] * right[0] + right[1]

    _, made = scan(join, (a, b), 1, combine_mode="generic")
    state, states = T.zeros(2, dtype=T.float64), []
    for at in range(5):
        state = state * a[:, at] + b[:, at]
        states.append(state)
    wanted = T.stack(states, 1)
    assert T.allclose(made, wanted)
    for one, other in zip(T.autograd.grad(made.sum(), (a, b)), T.autograd.grad(wanted.sum(), (a, b)), strict=True):
        assert T.allclose(one, other)


def test_elements_are_seen_without_the_dimension():
    x = T.randn(2, 4, 2, dtype=T.float64)
    made = scan(T.matmul, x, 1, combine_mode="generic")
    assert T.allclose(made[:, 3], x[:, 0] @ x[:, 1] @ x[:, 2] @ x[:, 3])


def test_what_is_refused():
    x = T.arange(4.0)
    assert scan(T.add, T.ones(0, 3), 0, combine_mode="generic").shape == (0, 3)
    with pytest.raises(ValueError, match="Combine_fn must be a callable, but got 3"):
        scan(3, x, 0)
    with pytest.raises(ValueError, match="Combine_mode must either 'pointwise' or 'generic', but got x"):
        scan(T.add, x, 0, combine_mode="x")
    with pytest.raises(IndexError, match="Dimension out of range"):
        scan(T.add, x, 4, combine_mode="generic")
