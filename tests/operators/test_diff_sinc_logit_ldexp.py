"""`diff`, `sinc`, `logit`, `ldexp`, `float_power`, and questions about signs and sizes."""

import math

import pytest

from library import T, assert_values, leaf

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit")
gradcheck, gradgradcheck = T.autograd.gradcheck, T.autograd.gradgradcheck


def double(*values):
    return T.tensor(values, dtype=T.float64, requires_grad=True)


def test_diff():
    x = leaf([1.0, 4.0, 9.0, 16.0])
    assert x.diff().tolist() == [3.0, 5.0, 7.0] and T.diff(x, 2).tolist() == [2.0, 2.0]
    assert T.diff(x, n=9).tolist() == [] and T.diff(T.ones(0)).tolist() == []
    y = x.diff()
    assert y.grad_fn.name() == "SubBackward0" and not y._is_view()
    assert [n.name() for n, _ in y.grad_fn.next_functions] == ["SliceBackward0"] * 2
    m = T.arange(6.0).reshape(2, 3)
    assert T.diff(m, dim=0).tolist() == [[3.0] * 3] and m.diff(n=1, dim=-1).tolist() == [[1.0, 1.0]] * 2
    made = T.diff(m, 2, 1, prepend=m[:, :1], append=m)
    assert made.tolist() == [[1.0, 0.0, -3.0, 3.0, 0.0]] * 2
    assert T.diff(T.tensor([True, False, False])).tolist() == [True, False]
    assert T.diff(T.tensor([3, 1])).dtype == T.int64
    assert T.diff(T.ones(2), prepend=T.ones(2, dtype=T.float64)).dtype == T.float64


def test_diff_of_no_order_is_a_copy():
    x = leaf([1.0, 2.0])
    y = T.diff(x, n=0, append=x)
    assert y is not x and y.tolist() == [1.0, 2.0]
    assert y.grad_fn.name().endswith("CopyBackwards")


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: T.diff(T.ones(2), -1), RuntimeError, "order must be non-negative but got -1"),
        (lambda: T.diff(T.tensor(1.0)), RuntimeError, "diff expects input to be at least one-dimensional"),
        (lambda: T.diff(T.ones(2, 2), prepend=T.ones(2)), RuntimeError, "diff expects prepend or append to be the same"),
        (lambda: T.diff(T.ones(2, 2), append=T.ones(3, 1)), RuntimeError, r"input.size\(0\) = 2, but got tensor.size\(0\) = 3"),
        (
            lambda: T.diff(T.ones(2), dim=3),
            IndexError,
            r"Dimension out of range \(expected to be in range of \[-1, 0\], but got 3\)",
        ),
        (lambda: T.is_nonzero(T.ones(2)), RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
        (lambda: T.is_nonzero(T.ones(0)), RuntimeError, "Boolean value of Tensor with no values is ambiguous"),
        (lambda: T.isposinf(T.ones(1) * 1j), TypeError, "isposinf does not support complex inputs."),
        (lambda: T.signbit(T.ones(1) * 1j), NotImplementedError, "signbit is not implemented for complex tensors."),
        (
            lambda: T.split_with_sizes(T.ones(3), [1, 1]),
            RuntimeError,
            "split_with_sizes expects split_sizes to sum exactly to 3",
        ),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    "function, values",
    [
        (lambda x: T.diff(x, 2, append=x), (0.5, -1.0, 2.0)),
        (T.sinc, (0.4, -1.3, 2.6)),
        (T.logit, (0.2, 0.5, 0.9)),
        (lambda x: T.logit(x, 0.3), (0.1, 0.4, 0.6)),
        (lambda x: T.ldexp(x, T.tensor([1, 2, 3])), (0.4, -1.3, 2.6)),
        (lambda x: T.ldexp(T.ones(3, dtype=T.float64), x), (0.4, -1.3, 2.6)),
        (lambda x: T.float_power(x, 3), (0.4, -1.3, 2.6)),
        (lambda x: T.float_power(2, x), (0.4, -1.3, 2.6)),
        (lambda x: T.split_with_sizes(x * x, [1, 2])[1], (0.4, -1.3, 2.6)),
    ],
)
def test_gradients(function, values):
    assert gradcheck(function, double(*values)) and gradgradcheck(function, double(*values))
    assert gradcheck(function, double(*values), check_forward_ad=True, check_backward_ad=False)


def test_sinc(device):
    x = T.tensor([0.0, -0.0, 1.0, 0.5, math.inf], device=device)
    assert_values(T.sinc(x)[:4], [1.0, 1.0, 0.0, 2 / math.pi], atol=1e-6)
    assert math.isnan(T.sinc(x)[4].item())
    w = leaf([0.0, 0.5])
    w.sinc().sum().backward()
    assert_values(w.grad, [0.0, -4 / math.pi], rtol=1e-5)
    assert T.sinc(T.tensor([0, 1])).dtype == T.float32
    c = T.tensor([0.3 + 0.4j, -1.0 + 0.2j], dtype=T.complex128, requires_grad=True)
    assert gradcheck(T.sinc, c)


def test_logit():
    x = leaf([-0.5, 0.0, 0.5, 1.0, 1.5])
    y = x.logit()
    assert y[1:4].tolist() == [-math.inf, 0.0, math.inf] and y[0].isnan() and y[4].isnan()
    (g,) = T.autograd.grad(y.sum(), x)
    assert g[1:4].tolist() == [math.inf, 4.0, math.inf] and g[0].isnan() and g[4].isnan()
    y = T.logit(x, 0.25)
    assert_values(y, [-1.0986123, -1.0986123, 0.0, 1.0986123, 1.0986123], rtol=1e-5)
    assert T.autograd.grad(y.sum(), x)[0].tolist() == [0.0, 0.0, 4.0, 0.0, 0.0]
    assert y.grad_fn.name() == "LogitBackward0" and y.grad_fn._saved_eps == 0.25
    assert x.logit().grad_fn._saved_eps is None


def test_float_power_is_double():
    assert T.float_power(T.tensor([2, 3]), 2).dtype == T.float64
    assert T.float_power(2, T.tensor([3.0])).tolist() == [8.0]
    assert T.float_power(T.tensor([1j]), 2).dtype == T.complex128
    assert T.ldexp(T.tensor([3.0]), T.tensor([2])).tolist() == [12.0]


def test_signs():
    x = T.tensor([0.0, -0.0, -1.0, math.inf, -math.inf])
    assert T.signbit(x).tolist() == [False, True, True, False, True]
    assert T.isposinf(x).tolist() == [False, False, False, True, False]
    assert T.isneginf(x).tolist() == [False, False, False, False, True]
    assert T.signbit(T.tensor([-1, 2])).tolist() == [True, False] and not T.isposinf(T.tensor([1])).any()
    assert T.isreal(T.tensor([1.0 + 0j, 1j])).tolist() == [True, False] and T.isreal(x).all()


def test_questions():
    x = T.ones(2, 3)
    assert x.is_same_size(T.zeros(2, 3)) and not T.is_same_size(x, x[0])
    assert x.is_signed() and not T.is_signed(x.bool()) and not x.to(T.uint8).is_signed()
    assert x.is_set_to(x.view(2, 3)) and not x.is_set_to(x.clone()) and not x.is_set_to(x[1:])
    assert T.is_nonzero(T.tensor(2.0)) and not T.tensor([0]).is_nonzero()


def test_split_with_sizes():
    x = leaf([1.0, 2.0, 3.0])
    first, second = x.split_with_sizes([1, 2])
    assert second.tolist() == [2.0, 3.0] and second.grad_fn.name() == "SplitWithSizesBackward0" and first._is_view()
