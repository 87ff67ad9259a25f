"""Mistakes in calls of `func`, and corners where the answer is nearly nothing."""

import pytest

from library import T, assert_values

func = T.func
X = T.tensor([1.0, 2.0, -3.0])
COMPLEX = T.tensor([1j, 2.0])


def total(f):
    return lambda x: f(x).sum()


CALLS = [
    (lambda: func.grad(lambda x, y: x.sum(), argnums=("a",))(X, X), RuntimeError, "argnum must be int, got: <class 'str'>"),
    (lambda: func.grad(lambda x, y: x.sum(), argnums="a")(X, X), RuntimeError, "argnums must be int or Tuple\\[int, ...\\]"),
    (lambda: func.grad(lambda x, y: x.sum(), argnums=(0, 0))(X, X), RuntimeError, "argnums elements must be unique"),
    (lambda: func.grad(lambda x: x.sum(), argnums=())(X), RuntimeError, "argnums must be non-empty"),
    (lambda: func.vjp(lambda x: None, X), RuntimeError, "non-empty output \\(got output = \\[None\\]\\)"),
    (lambda: func.jacrev(lambda x: None)(X), RuntimeError, "non-empty output \\(got output = \\[None\\]\\)"),
    (lambda: func.vjp(lambda x: (), X), RuntimeError, "non-empty output \\(got output = \\[\\]\\)"),
    (lambda: func.jacrev(T.sin)(COMPLEX), RuntimeError, "jacrev: Expected all inputs to be real but received complex tensor"),
    (lambda: func.jacfwd(T.sin)(COMPLEX), RuntimeError, "jacfwd: Expected all inputs to be real but received complex tensor"),
    (
        lambda: func.jacrev(lambda x: x * COMPLEX.sum())(X),
        RuntimeError,
        "jacrev: Expected all outputs to be real but received complex tensor at flattened input idx: 0",
    ),
    (
        lambda: func.jacfwd(lambda x: (x, x * COMPLEX.sum()))(X),
        RuntimeError,
        "jacfwd: Expected all outputs to be real but received complex tensor at flattened input idx: 1",
    ),
    (lambda: func.jacrev(lambda x, k=1: x * k)(X, k=2), TypeError, "unexpected keyword argument 'k'"),
    (lambda: func.jacfwd(lambda x, k=1: x * k)(X, k=2), TypeError, "unexpected keyword argument 'k'"),
    (lambda: func.linearize(T.sin, T.tensor([1, 2])), ValueError, "Expected primal to be floating point or complex"),
    (lambda: func.vmap(lambda x: x, in_dims=(None,))(X), ValueError, "vmap: Expected at least one Tensor to vmap over"),
    (
        lambda: T.autograd.grad(T.ones(3).sum(), T.ones(3)),
        RuntimeError,
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), CALLS)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("chunk_size", [None, 1, 2, 3, 7])
def test_all_rows_come_from_one_batch(chunk_size):
    """So that the zeros of one output's rows take part in the sums of the others', signs included."""

    def f(x, y):
        return x * y, {"total": y.sum()}, (x[:0], x.reshape(3, 1))

    products, totals, rest = func.jacrev(f, argnums=(0, 1), chunk_size=chunk_size)(X, X * 2)
    diagonal = T.diag(X)
    assert_values(products[0], diagonal * 2)
    assert_values(products[1], diagonal)
    assert_values(totals["total"][0], T.zeros(3))
    assert_values(totals["total"][1], T.ones(3))
    assert rest[0][0].shape == (0, 3)
    assert_values(rest[1][0], T.eye(3).reshape(3, 1, 3))


def test_rows_and_columns_of_the_functional_form():
    def f(x, y):
        return x * y, y.sum(), x.detach()

    for strategy in ("reverse-mode", "forward-mode"):
        found = T.autograd.functional.jacobian(f, (X, X * 2), vectorize=True, strategy=strategy)
        assert_values(found[0][0], T.diag(X) * 2)
        assert_values(found[1][0], T.zeros(3))
        assert_values(found[1][1], T.ones(3))
        assert_values(found[2][1], T.zeros(3, 3))


def test_many_outputs_some_without_history():
    constant, moving = func.jacrev(lambda x: (T.ones(2), x.sum()))(X)
    assert_values(constant, T.zeros(2, 3))
    assert_values(moving, T.ones(3))


def test_autograd_grad_inside_follows_what_the_transform_follows():
    w = T.tensor([1.0, 2.0, 3.0], requires_grad=True)
    made = (w * w).sum()

    def by(loss, wanted):
        return lambda t: (T.autograd.grad(loss(t), wanted(t), retain_graph=True)[0] * t).sum()

    outside = by(lambda t: made, lambda t: w)
    assert_values(func.grad(outside)(X), w.detach() * 2)
    assert_values(func.jvp(outside, (X,), (X,))[1], (w.detach() * 2 * X).sum())
    assert_values(func.grad(by(lambda t: (t * t).sum(), lambda t: t))(X), X * 2)
    inside = by(lambda t: (w * w).sum(), lambda t: w)
    message = "element 0 of tensors does not require grad and does not have a grad_fn"
    for transform in (
        func.grad(inside),
        func.jacfwd(inside),
        lambda t: func.vjp(inside, t),
        lambda t: func.jvp(inside, (t,), (t,)),
    ):
        with pytest.raises(RuntimeError, match=message):
            transform(X)
