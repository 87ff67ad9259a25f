"""Areas by trapezoids, powers as columns, covariances."""

import warnings

import pytest

from library import T, assert_values, leaf, tensor

Y = [[1.0, 2.0, 4.0], [0.0, -1.0, 3.0]]


def test_areas():
    y = tensor(Y)
    assert_values(T.trapezoid(y), [4.5, 0.5])
    assert_values(T.trapz(y, dx=2.0), [9.0, 1.0])
    assert_values(T.trapezoid(y, dim=0), [0.5, 0.5, 3.5])
    assert_values(T.trapezoid(y, tensor([0.0, 1.0, 3.0])), [7.5, 1.5])
    assert_values(T.trapezoid(y, tensor([[0.0, 1.0, 3.0], [0.0, 2.0, 3.0]])), [7.5, 0.0])
    assert_values(T.cumulative_trapezoid(y), [[1.5, 4.5], [-0.5, 0.5]])
    assert_values(T.cumulative_trapezoid(y, tensor([0.0, 1.0, 3.0])), [[1.5, 7.5], [-0.5, 1.5]])
    assert_values(T.cumulative_trapezoid(y, dx=2.0, dim=0), [[1.0, 1.0, 7.0]])
    assert T.trapezoid(T.ones(2, 0)).tolist() == [0.0, 0.0]
    assert T.cumulative_trapezoid(T.ones(2, 0)).shape == (2, 0) and T.cumulative_trapezoid(T.ones(0)).shape == (0,)
    assert_values(T.trapezoid(T.tensor([1, 2, 4]), T.tensor([0, 1, 2])), 4.5)


def test_gradients_of_areas():
    y, x = leaf([1.0, 2.0, 4.0]), leaf([0.0, 1.0, 3.0])
    T.trapezoid(y, x).backward()
    assert_values(y.grad, [0.5, 1.5, 1.0])
    assert_values(x.grad, [-1.5, -1.5, 3.0])


def test_what_areas_refuse():
    with pytest.raises(RuntimeError, match="^trapezoid: There must be one `x` value for each sample point"):
        T.trapezoid(tensor(Y), tensor([0.0, 1.0]))
    with pytest.raises(RuntimeError, match="^trapezoid: received a bool input for `y`, but bool is not supported"):
        T.trapezoid(T.tensor([True, False]))


@pytest.mark.parametrize("x", [(), (tensor(1.0),), (T.ones(0),), (T.ones(1),), (T.ones(4, 4),)], ids=str)
def test_a_number_has_no_area(x):
    with pytest.raises(IndexError, match="^Dimension specified as (-1|0) but tensor has no dimensions"):
        T.trapezoid(tensor(3.0), *x)
    with pytest.raises(
        IndexError, match=r"^(slice\(\) cannot be applied to a 0-dim tensor|Dimension specified as 0 but tensor)"
    ):
        T.cumulative_trapezoid(tensor(3.0), *x)


def test_powers_as_columns():
    x = tensor([1.0, 2.0, 3.0])
    assert_values(T.vander(x), [[1.0, 1.0, 1.0], [4.0, 2.0, 1.0], [9.0, 3.0, 1.0]])
    assert_values(T.vander(x, N=2, increasing=True), [[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    assert T.vander(x, N=0).shape == (3, 0) and T.vander(x, N=1).tolist() == [[1.0]] * 3
    whole = T.vander(T.tensor([2, 3], dtype=T.int32), N=3)
    assert whole.dtype == T.int64 and whole.tolist() == [[4, 2, 1], [9, 3, 1]]
    with pytest.raises(RuntimeError, match="^x must be a one-dimensional tensor."):
        T.vander(tensor(Y))
    with pytest.raises(RuntimeError, match="^N must be non-negative."):
        T.vander(x, N=-1)


def test_covariances():
    x = tensor([[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]]).t()
    assert_values(T.cov(x), [[1.0, -1.0], [-1.0, 1.0]])
    assert_values(x.cov(correction=0), [[2 / 3, -2 / 3], [-2 / 3, 2 / 3]])
    assert_values(T.cov(tensor([1.0, 2.0, 4.0])), 7 / 3)
    f, w = T.tensor([1, 2, 1]), tensor([0.25, 0.5, 0.25])
    assert_values(T.cov(x, fweights=f), [[2 / 3, -2 / 3], [-2 / 3, 2 / 3]])
    assert_values(T.cov(x, aweights=w), [[0.8, -0.8], [-0.8, 0.8]])
    assert_values(T.cov(x, fweights=f, aweights=w), [[6 / 13, -6 / 13], [-6 / 13, 6 / 13]])
    with pytest.warns(UserWarning, match="^cov\\(\\): degrees of freedom is <= 0"):
        T.cov(tensor([1.0]))


def test_correlations():
    x = tensor([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]])
    assert_values(T.corrcoef(x), [[1.0, 0.5], [0.5, 1.0]])
    assert_values(x[0].corrcoef(), 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert T.corrcoef(T.ones(2, 1)).isnan().all()


def test_what_covariances_refuse():
    for call, message in [
        (lambda: T.cov(T.ones(1, 1, 1)), "expected input to have two or fewer dimensions but got an input with 3 dimensions"),
        (lambda: T.cov(T.ones(2, 2, dtype=T.bool)), "bool dtype is not supported for input"),
        (
            lambda: T.cov(T.ones(2, 2), fweights=T.ones(2)),
            "expected fweights to have integral dtype but got fweights with Float",
        ),
        (lambda: T.cov(T.ones(2, 2), aweights=T.ones(2, 1)), "expected aweights to have one or fewer dimensions"),
        (lambda: T.cov(T.ones(2, 2), aweights=T.ones(3)), "expected aweights to have the same numel as there are observations"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            call()


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0)])
def test_dropout_draws_in_the_order_of_memory(order):
    x = T.ones(3, 4, 5)
    T.manual_seed(1)
    expected = T.nn.functional.dropout(x, 0.4).permute(order)
    T.manual_seed(1)
    made = T.nn.functional.dropout(x.permute(order), 0.4)
    assert made.tolist() == expected.tolist() and made.stride() == expected.stride()
