"""Random functions under random nestings of transforms, against loops over gradients that know no transform."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from library import T, assert_values

F = T.func
N = 3


def t(*values):
    return T.tensor(values, dtype=T.float64)


POINT, V, W = t(0.3, -0.7, 1.1), t(0.5, -1.0, 2.0), t(1.5, 0.25, -0.5)
MATRIX = t(*(0.3 * i - 1 for i in range(9))).reshape(N, N)
SCALES = t(1.0, 0.5)


class Cube(T.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 3 * x * x * tangent


def written(x):
    y = x.clone()
    y[1:] *= x[:-1]
    y.mul_(0.5).add_(x)
    return y


# Vectors to vectors, smooth at and around the points that are met.
FUNCTIONS = {
    "sin": lambda x: x.sin() * x.flip(0),
    "exp": lambda x: x.exp() * x.sum() * 0.2,
    "tanh": lambda x: (MATRIX @ x).tanh() + x,
    "cumprod": lambda x: (x * 0.5 + 2).cumprod(0) * 0.1,
    "softmax": lambda x: x.softmax(0) * x,
    "where": lambda x: T.where(x > 0, x * x, x.exp()),
    "ratio": lambda x: x / (1 + (x * x).sum()),
    "cat": lambda x: T.cat([x[1:], x[:1] * x[2]]),
    "outer": lambda x: T.einsum("i,j->ij", x, x.cos()).sum(0),
    "part": lambda x: x.detach() * x,
    "written": written,
    "cube": Cube.apply,
    "norm": lambda x: x * (x * x).sum().sqrt(),
    "stack": lambda x: T.stack([x, x * x]).prod(0),
    "fixed": lambda x: V * 2 + 0 * x,
}


# --- what transforms mean, by loops ---


def jacobian(f, x):
    x = x.view_as(x) if x.requires_grad else x.detach().requires_grad_()
    rows = []
    for y in f(x):
        g = T.autograd.grad(y, x, create_graph=True, allow_unused=True)[0] if y.requires_grad else None
        rows.append(T.zeros_like(x) if g is None else g)
    return T.stack(rows)


def mapped(f, x):
    return T.stack([f(x * scale) for scale in SCALES]).sum(0)


# For each transform of a function of vectors: how it is called, and the same by loops.
TRANSFORMS = {
    "jvp": (lambda f, x: F.jvp(f, (x,), (V,))[1], lambda f, x: jacobian(f, x) @ V),
    "jvp along itself": (lambda f, x: F.jvp(f, (x,), (x,))[1], lambda f, x: jacobian(f, x) @ x),
    "vjp": (lambda f, x: F.vjp(f, x)[1](W)[0], lambda f, x: W @ jacobian(f, x)),
    "vjp value": (lambda f, x: F.vjp(f, x)[0], lambda f, x: f(x)),
    "grad": (lambda f, x: F.grad(lambda y: f(y) @ W)(x), lambda f, x: W @ jacobian(f, x)),
    "grad and value": (
        lambda f, x: sum(F.grad_and_value(lambda y: f(y).sum())(x)),
        lambda f, x: jacobian(f, x).sum(0) + f(x).sum(),
    ),
    "jacrev": (lambda f, x: F.jacrev(f)(x) @ V, lambda f, x: jacobian(f, x) @ V),
    "jacfwd": (lambda f, x: W @ F.jacfwd(f)(x), lambda f, x: W @ jacobian(f, x)),
    "vmap": (lambda f, x: F.vmap(lambda s: f(x * s))(SCALES).sum(0), mapped),
    "vmap in": (lambda f, x: F.vmap(f, in_dims=1)(x[:, None] * SCALES).sum(0), mapped),
    "vmap out": (lambda f, x: F.vmap(f, out_dims=1)(x * SCALES[:, None]).sum(1), mapped),
    "vmap of directions": (
        lambda f, x: F.vmap(lambda v: F.jvp(f, (x,), (v,))[1])(SCALES[:, None] * V).sum(0),
        lambda f, x: jacobian(f, x) @ V * SCALES.sum(),
    ),
    "vmap of gradients": (
        lambda f, x: F.vmap(lambda s: F.grad(lambda y: (f(y) * s).sum())(x))(SCALES).sum(0),
        lambda f, x: jacobian(f, x).sum(0) * SCALES.sum(),
    ),
    # The inner function reads the outer point, too.
    "jvp, captured": (lambda f, x: F.jvp(lambda y: f(y) * x, (x,), (V,))[1], lambda f, x: jacobian(lambda y: f(y) * x, x) @ V),
    "grad, captured": (lambda f, x: F.grad(lambda y: f(y * x).sum())(V), lambda f, x: jacobian(lambda y: f(y * x), V).sum(0)),
    "hessian": (
        lambda f, x: F.hessian(lambda y: f(y).sum())(x) @ V,
        lambda f, x: jacobian(lambda y: jacobian(f, y).sum(0), x) @ V,
    ),
}


def nested(names, function, which):
    for name in names:
        transform = TRANSFORMS[name][which]
        function = (lambda transform, f: lambda x: transform(f, x))(transform, function)
    return function


def check(names, function):
    value = nested(names, FUNCTIONS[function], 0)(POINT)
    assert not value.requires_grad, "a transform left a history behind"
    expected = nested(names, FUNCTIONS[function], 1)(POINT)
    # What PyTorch knows to be zero it cannot list.
    assert_values(value + T.zeros_like(expected), expected.detach(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_each_transform(name, function):
    check([name], function)


@given(st.lists(st.sampled_from(sorted(TRANSFORMS)), min_size=2, max_size=3), st.sampled_from(sorted(FUNCTIONS)))
@settings(max_examples=120, deadline=None)
def test_nestings(names, function):
    check(names, function)


@given(st.lists(st.sampled_from(sorted(TRANSFORMS)), min_size=1, max_size=2), st.sampled_from(sorted(FUNCTIONS)))
@settings(max_examples=60, deadline=None)
def test_the_tape_goes_through_nestings(names, function):
    x = POINT.clone().requires_grad_()
    value = nested(names, FUNCTIONS[function], 0)(x)
    expected = nested(names, FUNCTIONS[function], 1)(x)
    assert_values(value, expected.detach(), rtol=1e-7, atol=1e-9)
    assert_values(gradient(value, x), gradient(expected, x), rtol=1e-7, atol=1e-9)


def gradient(value, x):
    g = T.autograd.grad(value @ W, x, allow_unused=True)[0] if value.requires_grad else None
    return T.zeros_like(x) if g is None else g
