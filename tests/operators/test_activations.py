"""Activations over their input, operators written in place, and functions that take their operands in several ways."""

import math

import pytest

from library import T, assert_values, leaf, tensor

F = T.nn.functional
VALUES = [-2.0, -0.5, 0.25, 3.0]

ACTIVATIONS = {
    "relu": lambda x, **o: F.relu(x, **o),
    "leaky_relu": lambda x, **o: F.leaky_relu(x, 0.2, **o),
    "elu": lambda x, **o: F.elu(x, 0.5, **o),
    "silu": lambda x, **o: F.silu(x, **o),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_in_place_they_write_what_they_would_make(name):
    f = ACTIVATIONS[name]
    x = tensor(VALUES)
    expected = f(x)
    assert x.tolist() == VALUES
    version = x._version
    assert f(x, inplace=True) is x
    assert_values(x, expected)
    assert x._version == version + 1


@pytest.mark.parametrize("name", ["relu", "silu"])
def test_gradients_flow_through_what_was_written(name):
    f, w = ACTIVATIONS[name], leaf(VALUES)
    (expected,) = T.autograd.grad(f(w * 2).sum(), w)
    x = w * 2
    f(x, inplace=True)
    (grad,) = T.autograd.grad(x.sum(), w)
    assert_values(grad, expected)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_leaf_is_not_written_over(name):
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        ACTIVATIONS[name](leaf(VALUES), inplace=True)


def test_positions():
    x = tensor(VALUES)
    assert F.relu(x.clone(), True).tolist() == F.relu(x).tolist()
    assert F.elu(x.clone(), 1.0, True).tolist() == F.elu(x).tolist()


def test_powers_and_shifts_are_written_in_place():
    x = tensor([1.0, 2.0, 3.0])
    same = x
    x **= 2
    assert same is x and x.tolist() == [1.0, 4.0, 9.0] and x._version == 1
    x **= tensor([1.0, 0.5, 0.0])
    assert x.tolist() == [1.0, 2.0, 1.0]
    n = tensor([1, 2, 3], "int64")
    same = n
    n <<= 2
    n >>= tensor([1, 0, 1], "int64")
    assert same is n and n.tolist() == [2, 8, 6]


def test_a_power_in_place_has_a_history():
    w = leaf([1.0, 2.0, 3.0])
    y = w * 1
    y **= 3
    (grad,) = T.autograd.grad(y.sum(), w)
    assert_values(grad, [3.0, 12.0, 27.0])


def test_rounding_to_places():
    x = leaf([1.2345, -2.5555, 1234.5])
    assert_values(x.round(decimals=2), [1.23, -2.56, 1234.5])
    assert_values(x.round(decimals=-2), [0.0, -0.0, 1200.0])
    (grad,) = T.autograd.grad(x.round(decimals=1).sum(), x)
    assert grad.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("accumulate", [False, True])
def test_gradients_of_put(accumulate):
    x, y = leaf([[1.0, 2.0], [3.0, 4.0]], kind="float64"), leaf([5.0, 6.0], kind="float64")
    i = tensor([3, 0], "int64")
    T.autograd.gradcheck(lambda a, b: a.put(i, b, accumulate), (x, y), check_forward_ad=True)
    T.autograd.gradgradcheck(lambda a, b: a.put(i, b * b, accumulate), (x, y))


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("mask", [[True, False, True], [False, False, False], [True, True, True]])
def test_gradients_of_masked_scatter(mask):
    x, y = leaf([[1.0, 2.0, 3.0]] * 2, kind="float64"), leaf([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], kind="float64")
    chosen = tensor(mask, "bool")
    T.autograd.gradcheck(lambda a, b: a.masked_scatter(chosen, b), (x, y), check_forward_ad=True)
    T.autograd.gradgradcheck(lambda a, b: a.masked_scatter(chosen, b * b), (x, y))


def test_masked_scatter_without_dimensions():
    assert tensor(1.0).masked_scatter(tensor(True, "bool"), tensor([5.0])).tolist() == 5.0


def test_at_least_so_many_dimensions_of_several():
    a, b = tensor(1.0), tensor([1.0, 2.0])
    for given in ((a, b), [a, b]):
        made = T.atleast_2d(given)
        assert isinstance(made, tuple) and [t.shape for t in made] == [(1, 1), (1, 2)]
    assert [t.shape for t in T.atleast_1d(a, b)] == [(1,), (2,)]
    assert T.atleast_3d(b).shape == (1, 2, 1) and T.atleast_1d() == ()


def test_einsum_of_lists_of_subscripts():
    a, b = T.arange(6.0).reshape(2, 3), T.arange(12.0).reshape(3, 4)
    assert T.equal(T.einsum(a, [0, 1], b, [1, 2], [0, 2]), a @ b)
    assert T.equal(T.einsum(a, [0, 30], b, [30, 51]), a @ b)
    assert T.equal(T.einsum(a, [..., 1], a, [..., 1], [...]), (a * a).sum(1))
    assert T.equal(T.einsum("ij,jk", [a, b]), a @ b)


def test_nonzero_lies_by_columns():
    x = tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    assert x.nonzero().tolist() == [[0, 0], [0, 2], [1, 1]] and x.nonzero().stride() == (1, 3)
    assert T.argwhere(x[0]).stride() == (1, 2)


def test_turning_keeps_the_order_of_memory():
    x = T.arange(6.0).reshape(2, 3)
    assert T.rot90(x).tolist() == [[2.0, 5.0], [1.0, 4.0], [0.0, 3.0]] and T.rot90(x).stride() == (1, 3)


def test_warn_always_is_remembered():
    assert not T.is_warn_always_enabled()
    T.set_warn_always(True)
    try:
        assert T.is_warn_always_enabled()
    finally:
        T.set_warn_always(False)


def test_what_runs_after_a_leaf_may_give_it_back():
    v = leaf([0.0, 0.0, 0.0])
    v.register_post_accumulate_grad_hook(lambda p: p.add_(p.grad, alpha=-0.5))
    v.backward(tensor([1.0, 2.0, 4.0]))
    assert v.tolist() == [-0.5, -1.0, -2.0]


def test_gelu_is_exact_far_from_zero() -> None:
    x = T.linspace(-10, 10, 20001)
    exact = [a * math.erfc(-a / math.sqrt(2)) / 2 for a in x.tolist()]
    assert max(abs(y - e) for y, e in zip(F.gelu(x).tolist(), exact, strict=True)) < 4e-7
    assert F.gelu(T.tensor([math.inf, 1e30, -1e30, 0.0])).tolist() == [math.inf, T.tensor(1e30).item(), 0.0, 0.0]
    assert F.gelu(T.tensor(math.nan)).isnan()


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_bounds_are_rounded_as_the_elements_are(kind):
    x = tensor([0.1, -0.1, 0.3, -0.3, 0.5], kind).requires_grad_()
    for f in (F.hardshrink, F.softshrink):
        for bound in (0.1, 0.3):
            y = f(x, bound)
            inside = [abs(v) <= bound + 1e-6 for v in (0.1, -0.1, 0.3, -0.3, 0.5)]
            assert [v == 0 for v in y.tolist()] == inside
            (grad,) = T.autograd.grad(y.sum(), x)
            assert [g == 0 for g in grad.tolist()] == inside
    assert math.copysign(1, F.softshrink(tensor([-0.25])).item()) == -1


def test_softshrink_keeps_nan(device):
    x = tensor([math.nan, 0.25, -2.0]).to(device)
    found = F.softshrink(x).tolist()
    assert math.isnan(found[0]) and found[1:] == [0.0, -1.5]
