"""Random functions under random nestings of transforms, against loops over gradients that know no transform."""

import itertools
import math

import pytest
from hypothesis import assume, given, settings
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


@pytest.mark.parametrize("function", ["sin", "softmax", "outer"])
def test_all_triples(function):
    for names in itertools.product(("jvp", "grad", "vmap"), repeat=3):
        check(names, function)


# --- structures of arguments, of which vmap maps some ---

SHAPES = {"line": [3], "square": [2, 2]}


def some(inner):
    return st.lists(inner, min_size=1, max_size=2)


TREES = st.recursive(
    st.sampled_from(sorted(SHAPES)),
    lambda inner: some(inner) | some(inner).map(tuple) | st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=2),
    max_leaves=4,
)


def walk(tree, leaf, *others):
    """`leaf(...)` of the leaves of trees of one structure."""
    if isinstance(tree, dict):
        return {key: walk(tree[key], leaf, *(o[key] for o in others)) for key in tree}
    if isinstance(tree, (list, tuple)):
        return type(tree)(walk(item, leaf, *(o[i] for o in others)) for i, item in enumerate(tree))
    return leaf(tree, *others)


def leaves(tree):
    found = []
    walk(tree, found.append)
    return found


def energy(tree):
    parts = [(x.sin() * (i + 1)).sum() * (1 + (x * x).mean()) for i, x in enumerate(leaves(tree))]
    return sum(parts[1:], parts[0])


def moved(tree):
    return walk(tree, lambda x: x * 0.5 + 1)


OF_TREES = {
    "value": energy,
    "tree": lambda tree: walk(tree, lambda x: x * energy(tree)),
    "grad": F.grad(energy),
    "vjp": lambda tree: F.vjp(energy, tree)[1](T.tensor(2.0, dtype=T.float64))[0],
    "jvp": lambda tree: F.jvp(energy, (tree,), (moved(tree),))[1],
    "jvp of grad": lambda tree: F.jvp(F.grad(energy), (tree,), (moved(tree),))[1],
    "grad of grad": lambda tree: F.grad(lambda t: sum(x.sum() for x in leaves(F.grad(energy)(t))))(tree),
    "grad of vmap": lambda tree: F.grad(lambda t: F.vmap(lambda s: energy(t) * s)(SCALES).sum())(tree),
    "vmap of grad": lambda tree: F.vmap(lambda s: F.grad(lambda t: energy(t) * s)(tree))(SCALES),
    "jacfwd": lambda tree: F.jacfwd(lambda t: walk(t, lambda x: x * energy(t)))(tree),
    "hessian": F.hessian(energy),
}


@given(st.data(), TREES, st.sampled_from(sorted(OF_TREES)))
@settings(max_examples=120, deadline=None)
def test_vmap_over_parts_of_structures(data, shapes, name):
    """Each sample comes out as it does alone, whatever of its structure the others share."""
    dims = walk(shapes, lambda name: data.draw(st.sampled_from([None, 0, 1, -1])))
    assume(any(dim is not None for dim in leaves(dims)))

    def make(name, dim):
        shape = list(SHAPES[name])
        if dim is not None:
            shape.insert(dim % (len(shape) + 1), 2)
        return T.arange(float(math.prod(shape)), dtype=T.float64).reshape(shape) * 0.1 + 0.3

    tree = walk(shapes, make, dims)
    found = F.vmap(OF_TREES[name], in_dims=(dims,))(tree)
    for i in range(2):
        alone = OF_TREES[name](walk(tree, lambda x, dim, i=i: x if dim is None else x.select(dim, i), dims))
        walk(alone, lambda one, all, i=i: assert_values(all[i], one, rtol=1e-9, atol=1e-11), found)
