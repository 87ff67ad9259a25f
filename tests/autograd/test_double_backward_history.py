"""Which second derivatives are zeros and which are missing; derivatives taken in spite of no_grad; what gradcheck warns of."""

import pytest

from library import T, leaf

nn = T.nn.functional


@pytest.mark.parametrize("how", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("plane", [(), (2, 2)])
def test_nll_loss(how, weighted, plane):
    x = T.randn(3, 4, *plane, dtype=T.float64, requires_grad=True)
    target = T.tensor([0, 1, 2]).reshape(3, *(1 for _ in plane)).expand(3, *plane)
    weight = T.tensor([1.0, 2.0, 3.0, 4.0], dtype=T.float64) if weighted else None

    def loss(x):
        return nn.nll_loss(x, target, weight, reduction=how)

    y = loss(x)
    v = T.ones_like(y, requires_grad=True)
    (g,) = T.autograd.grad(y, x, v, create_graph=True)
    assert type(g.grad_fn).__name__ == f"NllLoss{'2D' if plane else ''}BackwardBackward0"
    of_x, of_v = T.autograd.grad(g.sum(), [x, v])
    assert not of_x.any() and T.allclose(of_v, loss(T.ones_like(x)))
    assert T.autograd.gradcheck(loss, x) and T.autograd.gradgradcheck(loss, x)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_nll_loss_forward_and_in_batches():
    x, target = T.randn(3, 4, dtype=T.float64), T.tensor([0, 1, 2])

    def grad(x):
        return T.func.grad(lambda x: (nn.nll_loss(x, target, reduction="none") ** 2).sum())(x)

    wanted = T.zeros(12, 12, dtype=T.float64)
    for row, column in enumerate(target.tolist()):
        wanted[row * 4 + column, row * 4 + column] = 2
    for differentiate in (T.func.jacfwd, T.func.jacrev):
        assert T.allclose(differentiate(grad)(x).reshape(12, 12), wanted)
    many = T.stack([x, x * 2])
    assert T.allclose(T.func.vmap(grad)(many), T.stack([grad(m) for m in many]))


def test_logcumsumexp_of_a_number():
    x = leaf(2.0)
    y = T.logcumsumexp(x, 0)
    v = T.ones_like(y, requires_grad=True)
    (g,) = T.autograd.grad(y, x, v, create_graph=True)
    of_x, of_v = T.autograd.grad(g, [x, v], allow_unused=True)
    assert of_x is None and of_v.item() == 1
    (g,) = T.autograd.grad(T.logcumsumexp(x, 0), x, create_graph=True)
    assert not g.requires_grad


@pytest.mark.parametrize("vectorize", [False, True])
def test_derivatives_with_a_history_under_no_grad(vectorize):
    x = leaf([1.0, 2.0], kind="float64")
    functional = T.autograd.functional
    with T.no_grad():
        j = functional.jacobian(lambda x: x**3, x, create_graph=True, vectorize=vectorize)
        h = functional.hessian(lambda x: (x**3).sum(), x, create_graph=True, vectorize=vectorize)
        without = functional.jacobian(lambda x: x**3, x, vectorize=vectorize)
        assert not T.is_grad_enabled()
    assert T.autograd.grad(j.sum(), x)[0].tolist() == [6, 12]
    assert T.autograd.grad(h.sum(), x)[0].tolist() == [6, 6]
    assert not without.requires_grad


def test_gradcheck_warns_of_undefined_gradients():
    class Strange(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return T.ones(2, dtype=T.float64) if g is None else g

    x = leaf([1.0, 2.0], kind="float64")
    with (
        pytest.warns(UserWarning, match="New undefined gradient support checking feature is enabled by default"),
        pytest.raises(RuntimeError, match="Expected all input grads to be undefined or zero"),
    ):
        T.autograd.gradcheck(Strange.apply, x)
    assert T.autograd.gradcheck(Strange.apply, x, check_undefined_grad=False)
