"""Comparisons written into what they compare: no gradient goes through them."""

import pytest

from library import T

NAMES = ("eq", "ne", "lt", "le", "gt", "ge")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", ["tensor", "number"])
def test_no_gradient_goes_through(name, other):
    x = T.tensor([1.0, 2.0, float("nan")], requires_grad=True)
    z = T.tensor([2.0], requires_grad=True)
    y = x * 1
    getattr(y, name + "_")(z if other == "tensor" else 2.0)
    assert y.requires_grad and y.dtype is T.float32
    assert y.grad_fn.name() == f"{name.title()}Backward{int(other == 'tensor')}"
    (y * 3).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
    assert z.grad is None or z.grad.tolist() == [0.0]


@pytest.mark.parametrize("name", NAMES)
def test_results_of_their_own_are_no_part_of_a_graph(name):
    x = T.tensor([1.0, 2.0], requires_grad=True)
    y = getattr(x, name)(1.0)
    assert not y.requires_grad and y.grad_fn is None and y.dtype is T.bool
    assert T.func.jvp(lambda v: getattr(v, name)(1.5) * v, (x.detach(),), (T.ones(2),))[1].dtype is T.float32
    assert T.func.grad(lambda v: (getattr(v, name)(1.5) * v).sum())(x.detach()).shape == (2,)
    assert T.func.vmap(getattr(T, name))(x.detach(), x.detach()).dtype is T.bool
