"""The functions of gradcheck's module that programs once used: Jacobians, measured and from the graph."""

import importlib
import sys

import pytest

from library import NAME, T, leaf, same_number

importlib.import_module(f"{NAME}.autograd.gradcheck")
check = sys.modules[f"{NAME}.autograd.gradcheck"]
deprecated = pytest.mark.filterwarnings("ignore:.*was part of PyTorch's private API:FutureWarning")


def inputs():
    return leaf([1.0, 2.0], kind="float64"), leaf([[1.0], [2.0]], kind="float64")


def outputs(given):
    x, y = given
    return x * y, x.sum()


OVER_X, OVER_Y = [[1.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 2.0]], [[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 2.0]]


def assert_matrix(matrix, expected):
    assert matrix.shape == (len(expected), len(expected[0]))
    assert all(same_number(a, b, atol=1e-6) for a, b in zip(matrix.reshape(-1).tolist(), sum(expected, []), strict=True))


@deprecated
def test_measured_jacobians_of_the_first_output():
    x, y = inputs()
    over_x, over_y = check.get_numerical_jacobian(outputs, (x, y))
    assert_matrix(over_x, OVER_X)
    assert_matrix(over_y, OVER_Y)
    (only,) = check.get_numerical_jacobian(outputs, (x, y), target=y, eps=1e-2)
    assert_matrix(only, OVER_Y)


def test_measured_jacobians_over_one_input():
    x, y = inputs()
    product, total = check.get_numerical_jacobian_wrt_specific_input(
        lambda x, y: outputs((x, y)), 0, (x, y), outputs((x, y)), 1e-6
    )
    assert_matrix(product, OVER_X)
    assert_matrix(total, [[1.0], [1.0]])
    with pytest.raises(AssertionError, match="Expected input to have requires_grad=True"):
        check.get_numerical_jacobian_wrt_specific_input(lambda x: x, 0, (T.ones(1),), (T.ones(1),), 1e-6)


@deprecated
def test_jacobians_of_the_graph():
    x, y = inputs()
    jacobians, again, sizes, types = check.get_analytical_jacobian((x, y), (x * y).sum(0))
    assert [j.tolist() for j in jacobians] == [[[3.0, 0.0], [0.0, 3.0]], [[1.0, 2.0], [1.0, 2.0]]]
    assert (again, sizes, types) == (True, True, True)


@deprecated
def test_what_they_refuse():
    x, _ = inputs()
    for function, arguments in (
        (check.get_numerical_jacobian, (lambda t: t[0], (x,))),
        (check.get_analytical_jacobian, ((x,), x * x)),
    ):
        with pytest.raises(ValueError, match="Expected grad_out to be 1.0"):
            function(*arguments, grad_out=2.0)
    c = T.tensor([1 + 2j], dtype=T.complex128, requires_grad=True)
    with pytest.raises(ValueError, match="no longer supports functions that return complex outputs"):
        check.get_analytical_jacobian((c,), c * c)
    with pytest.raises(ValueError, match="no longer supports functions that return complex outputs"):
        check.get_numerical_jacobian(lambda t: t[0] * t[0], (c,))


def test_they_warn():
    x, _ = inputs()
    with pytest.warns(FutureWarning, match="`get_analytical_jacobian` was part of PyTorch's private API"):
        check.get_analytical_jacobian((x,), x * x)
