"""What a tensor's history looks like from inside of transforms, and what of it the results keep."""

import pytest

from library import T, assert_values

func = T.func
X = T.tensor([3.0, 4.0], dtype=T.float64)


def wanted(*values):
    return [v.requires_grad for v in values]


def test_a_transform_shows_what_leads_to_its_inputs():
    leaf = X.clone().requires_grad_()

    def f(x):
        made = leaf * 2
        assert wanted(x, leaf, made, x * leaf, x.detach()) == [True, True, False, True, False]
        assert made.grad_fn is None and made.is_leaf and (x * leaf).grad_fn.name() == "MulBackward0"
        assert x.is_leaf and x.grad_fn is None
        return (x * made).sum()

    for given in (X, leaf):
        assert_values(func.grad(f)(given), [6.0, 8.0])
        assert func.grad(f)(given).requires_grad
        assert func.vjp(f, given)[0].grad_fn.name() == "SumBackward0"


def test_forward_mode_shows_no_history():
    leaf = X.clone().requires_grad_()

    def f(x):
        assert wanted(x, leaf, leaf * 2, x * leaf) == [False, True, False, False]
        return x * leaf

    for given in (X, leaf):
        value, tangent = func.jvp(f, (given,), (T.ones_like(X),))
        assert wanted(value, tangent) == [True, True]


def test_an_inner_transform_shows_its_own():
    def outer(x):
        def inner(z):
            assert wanted(x, z, x * 2, z * x) == [True, True, False, True]
            return (z * z * x).sum()

        gradient = func.grad(inner)(x)
        assert gradient.requires_grad
        return gradient.sum()

    assert_values(func.grad(outer)(X), 4 * X)
    assert not func.grad(outer)(X).requires_grad


def test_what_a_function_makes_for_itself():
    def f(x):
        own = T.ones(2, dtype=T.float64, requires_grad=True)
        assert wanted(own, own * 2) == [True, True]
        assert_values(T.autograd.grad((own * 2).sum(), own)[0], [2.0, 2.0])
        return (x * x).sum()

    assert_values(func.grad(f)(X), 2 * X)


def test_no_hooks_on_what_a_transform_does_not_follow():
    leaf, seen = X.clone().requires_grad_(), []

    def f(x):
        with pytest.raises(RuntimeError, match="^cannot register a hook on a tensor that doesn't require gradient"):
            (leaf * 2).register_hook(seen.append)
        (x * leaf).register_hook(lambda g: seen.append(g.requires_grad))
        return (x * leaf).sum()

    func.grad(f)(X)


class Watched(T.autograd.Function):
    seen = []

    @staticmethod
    def forward(x, y):
        Watched.seen.append(wanted(x, y))
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


def test_forward_of_a_function_is_outside_of_all_transforms():
    leaf = X.clone().requires_grad_()
    Watched.seen.clear()
    assert_values(func.grad(lambda x: Watched.apply(x, leaf).sum())(X), X)
    func.grad(lambda x: (func.grad(lambda z: Watched.apply(x, z).sum())(leaf) * x).sum())(X)
    assert Watched.seen == [[False, True], [False, True]]


def test_views_made_unrecorded_want_gradients_still():
    """Nothing leads on from them, but PyTorch records what is made of them."""
    base = X.clone().requires_grad_() * 2
    with T.no_grad():
        view = base[:]
    assert view.requires_grad
    for given in (view, func.vmap(lambda x: x.exp())(view)):
        assert func.grad(lambda x: (x**3).sum())(given).requires_grad
        assert func.grad(lambda x: func.grad(lambda y: (y**3).sum())(x).sum())(given).requires_grad
        assert not func.grad(lambda x: (x * 2).sum())(given).requires_grad


def test_a_jacobian_of_nothing_wants_what_its_derivative_wants():
    nothing = T.zeros(0, dtype=T.float64, requires_grad=True)
    assert not func.jacrev(lambda x: x * 3)(nothing).requires_grad
    assert func.jacrev(lambda x: x * x)(nothing).requires_grad


def test_asking_each_step_is_no_walk_over_all_of_them():
    steps = 4000

    def f(t):
        other = T.ones(())
        for _ in range(steps):
            t, other = t + 1, other * 1
            assert t.requires_grad and not other.requires_grad
        return t

    assert T.func.grad(f)(T.tensor(2.0)).item() == 1.0
