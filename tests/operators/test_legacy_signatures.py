"""Calls as they were written for older PyTorches: numbers before tensors."""

import pytest

from library import T, python_ok

pytestmark = [pytest.mark.filterwarnings("ignore:This overload of"), pytest.mark.filterwarnings("ignore:torch.lu")]


def xy():
    return T.ones(2, 2), T.full((2, 2), 3.0)


CALLS = {
    "x.clone().add_(2, y)": 7.0,
    "x.add(2, y)": 7.0,
    "T.add(x, 2, y)": 7.0,
    "x.clone().sub_(2, y)": -5.0,
    "T.sub(x, 2, y)": -5.0,
    "x.clone().addcmul_(2, y, y)": 19.0,
    "x.addcmul(2, y, y)": 19.0,
    "T.addcmul(x, 2, y, y)": 19.0,
    "x.clone().addcdiv_(2, y, y)": 3.0,
    "x.addcdiv(2.0, y, y)": 3.0,
    "x.addmm(2, y, y)": 20.0,
    "x.addmm(2, 3, y, y)": 56.0,
    "T.addmm(2, x, y, y)": 20.0,
    "T.addmm(2, x, 3, y, y)": 56.0,
    "x.clone().addmm_(2, 3, y, y)": 56.0,
    "x[0].addmv(2, 3, x, y[0])": 20.0,
    "x.addr(2, 3, x[0], y[0])": 11.0,
    "x[None].baddbmm(2, x[None], x[None])": 4.0,
    "x.addbmm(2, 3, x[None], x[None])": 8.0,
}


@pytest.mark.parametrize("call", CALLS)
def test_numbers_before_tensors(call):
    x, y = xy()
    found = eval(call)
    assert set(found.flatten().tolist()) == {CALLS[call]}


def test_gradients():
    x, y = (t.requires_grad_() for t in xy())
    x.add(2, y).sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0]] * 2 and y.grad.tolist() == [[2.0, 2.0]] * 2


def test_results_elsewhere():
    x, y = xy()
    out = T.empty(2, 2)
    assert T.add(x, 2, y, out=out) is out and out[0, 0].item() == 7.0


@pytest.mark.parametrize("call", ["x.add(y, 2)", "T.add(2, y, 3)", "x.addcmul(2, 3, y)", "x.mul(2, y)"])
def test_other_orders_are_refused(call):
    x, y = xy()
    with pytest.raises(TypeError):
        eval(call)


def test_it_is_told_once():
    code = """
import warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    x = T.ones(2)
    x.add_(2, x), x.add_(2, x), x.addcmul_(2, x, x)
print(len(told), told[0].category.__name__, str(told[0].message).splitlines()[0])
"""
    assert python_ok(code).strip() == "1 UserWarning This overload of add_ is deprecated:"


def test_lu():
    a = T.tensor([[1.0, 2.0], [3.0, 4.0]])
    lu, pivots = a.lu()
    assert pivots.tolist() == [2, 2] and lu[0].tolist() == [3.0, 4.0]
    assert T.lu_solve(T.ones(2, 1), lu, pivots).flatten().tolist() == pytest.approx([-1.0, 1.0])
    # A singular matrix is told of by a number alone.
    assert T.ones(2, 2).lu(get_infos=True)[2].item() == 2 and len(T.ones(2, 2).lu()) == 2
    assert T.lu(a, get_infos=True)[2].item() == 0
