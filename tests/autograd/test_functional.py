"""`autograd.functional`: Jacobians, Hessians and their products, against values recorded from PyTorch."""

import functional_cases as cases
import golden_file
import pytest

from library import T, compare

TABLE = golden_file.read("functional.json")
F = T.autograd.functional


def check(found, expected, where=""):
    if isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected), where
        for i, (f, e) in enumerate(zip(found, expected)):
            check(f, e, f"{where}[{i}]")
    else:
        assert (found["dtype"], found["grad"]) == (expected["dtype"], expected["grad"]), where
        compare(found["values"], expected["values"], 1e-5, 1e-6, where)


@pytest.mark.parametrize(("code", "expected"), TABLE["values"])
def test_values_are_pytorchs(code, expected):
    check(cases.plain(cases.evaluate(code, T)), expected)


@pytest.mark.parametrize(("code", "kind", "sentence"), TABLE["errors"])
def test_errors_are_pytorchs(code, kind, sentence):
    assert cases.error(code, T) == [kind, sentence]


def test_the_graph_of_a_jacobian_leads_back_to_the_inputs():
    x = T.tensor([0.5, 2.0], requires_grad=True)
    F.jacobian(lambda a: a**3, x, create_graph=True).sum().backward()
    compare(x.grad.tolist(), [3.0, 12.0], 1e-6, 0.0, "")


def test_inputs_are_left_as_they_were():
    x = T.tensor([0.5, 2.0])
    F.hessian(lambda a: (a**3).sum(), x)
    F.jvp(T.exp, x, T.ones(2))
    assert not x.requires_grad and x.grad is None


def test_products_agree_with_the_matrices():
    def f(a):
        return T.stack([(a[0] * a[1]).sin(), a[1] ** 2 * a[2], a.sum()])

    x, v = T.randn(3, dtype=T.float64), T.randn(3, dtype=T.float64)
    jacobian = F.jacobian(f, x)
    T.testing.assert_close(F.jvp(f, x, v)[1], jacobian @ v)
    T.testing.assert_close(F.vjp(f, x, v)[1], v @ jacobian)
    hessian = F.hessian(lambda a: f(a).prod(), x)
    T.testing.assert_close(F.hvp(lambda a: f(a).prod(), x, v)[1], hessian @ v)
    T.testing.assert_close(F.vhp(lambda a: f(a).prod(), x, v)[1], v @ hessian)
