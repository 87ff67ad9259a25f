"""`rsub`, the difference with its operands in the other order."""

import pytest

from library import T


def test_values_and_nodes(device):
    x = T.tensor([1.0, 2.0], device=device, requires_grad=True)
    y = T.tensor([5.0, 7.0], device=device, requires_grad=True)
    for alpha in (1, 3):
        made = T.rsub(x, y, alpha=alpha)
        assert made.tolist() == [5.0 - alpha, 7.0 - 2 * alpha] and made.grad_fn.name() == "RsubBackward0"
        assert made.grad_fn._saved_alpha == alpha
        assert [g.tolist() for g in T.autograd.grad(made.sum(), (x, y))] == [[-alpha, -alpha], [1.0, 1.0]]
        made = T.rsub(x, 2, alpha=alpha)
        assert made.tolist() == [2.0 - alpha, 2.0 - 2 * alpha] and made.grad_fn.name() == "RsubBackward1"
        assert T.autograd.grad(made.sum(), x)[0].tolist() == [-alpha, -alpha]
    assert (2 - x).grad_fn.name() == "RsubBackward1"


def test_dtypes():
    x = T.tensor([1, 2])
    assert T.rsub(x, 1.5).tolist() == [0.5, -0.5] and T.rsub(x, 1, alpha=2).dtype is T.int64
    assert T.rsub(T.tensor([1 + 1j]), 1, alpha=2j).tolist() == [3 - 2j]


def test_refusals():
    x = T.ones(2)
    for call in (lambda: T.rsub(2, x), lambda: T.rsub(x, 2, out=T.ones(2))):
        with pytest.raises(TypeError):
            call()
    assert not hasattr(x, "rsub")
    with pytest.raises(RuntimeError, match="For integral input tensors, argument alpha must not be a floating point number."):
        T.rsub(x.long(), 2, alpha=1.5)
    with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean results."):
        T.rsub(x, 2, alpha=True)
    for other in (1, x > 0):
        with pytest.raises(NotImplementedError, match="Subtraction, the `-` operator, with .* bool tensor"):
            T.rsub(x > 0, other)
