"""`func.jvp`, `jacfwd` and `linearize`: against reverse mode, in every nesting, and what they refuse."""

import gc

import pytest

from library import T, assert_values

jvp, jacfwd, linearize = T.func.jvp, T.func.jacfwd, T.func.linearize
grad, vjp, jacrev, hessian, vmap = T.func.grad, T.func.vjp, T.func.jacrev, T.func.hessian, T.func.vmap


def t(*values):
    return T.tensor(values, dtype=T.float64)


X, V, W = t(1.0, 2.0, 3.0), t(0.1, 0.2, 0.3), t(1.0, -1.0, 0.5)


def vector(x):
    return x.sin() * x.flip(0)


def scalar(x):
    return (x.sin() * x.exp()).sum()


def written(x):
    """With writes in place, to the whole and to a part."""
    y = x.clone()
    y.mul_(x)
    y[0] = x[1] * 2
    return y


def layers(w, x):
    return T.nn.functional.softmax(T.nn.functional.linear(x, w).tanh(), -1).log()


def close(a, b):
    assert_values(a, b, rtol=1e-9, atol=1e-11)


# --- jvp ---


@pytest.mark.parametrize("function", [vector, scalar, written, lambda x: x.cumprod(0), lambda x: x[[2, 0]] @ x[:2]])
def test_jvp_is_the_jacobian_times_a_vector(function):
    value, tangent = jvp(function, (X,), (V,))
    close(value, function(X))
    close(tangent, jacrev(function)(X) @ V)
    assert not value.requires_grad and not tangent.requires_grad


def test_jvp_of_several_inputs_and_nested_outputs():
    def function(a, b):
        return {"product": a * b, "rest": [a.sum(), b]}

    value, tangent = jvp(function, (X, W), (V, V))
    assert list(tangent) == list(value) == ["product", "rest"]
    close(tangent["product"], V * W + X * V)
    close(tangent["rest"][0], V.sum())
    close(tangent["rest"][1], V)


def test_jvp_takes_nested_inputs():
    value, tangent = jvp(lambda pair: pair["a"] * pair["b"][0], ({"a": X, "b": (W,)},), ({"a": V, "b": (X,)},))
    close(tangent, V * W + X * X)


def test_jvp_with_aux():
    value, tangent, aux = jvp(lambda x: (x * 2, x + 1), (X,), (V,), has_aux=True)
    close(tangent, V * 2)
    close(aux, X + 1)
    with T.autograd.forward_ad.dual_level():
        assert T.autograd.forward_ad.unpack_dual(aux).tangent is None


def test_jvp_of_what_does_not_depend():
    value, tangent = jvp(lambda x: T.ones(2), (X,), (V,))
    assert tangent.tolist() == [0.0, 0.0]
    with pytest.raises(
        RuntimeError, match="^jvp.f, primals, tangents, strict=True.: The output of f is independent of the inp"
    ):
        jvp(lambda x: T.ones(2), (X,), (V,), strict=True)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: jvp(vector, X, (V,)), RuntimeError, r"^jvp\(f, primals, tangents\): Expected primals to be a tuple"),
        (lambda: jvp(vector, (X,), (V, V)), RuntimeError, "Expected primals and tangents to have the same python structure"),
        (lambda: jvp(lambda: X, (), ()), RuntimeError, "Expected primals to contain at least one Tensor"),
        (lambda: jvp(vector, (1.0,), (2.0,)), RuntimeError, "Expected primals to only contain Tensors, got <class 'float'>"),
        (lambda: jvp(vector, (X,), (2.0,)), RuntimeError, "Expected tangents to only contain Tensors, got <class 'float'>"),
        (lambda: jvp(lambda x: 3, (X,), (V,)), RuntimeError, "only tensors, got unsupported type <class 'int'>"),
        (lambda: jvp(lambda x: None, (X,), (V,)), RuntimeError, "Expected f to be a function that has non-empty output"),
        (lambda: jvp(vector, (X,), (V[:2],)), RuntimeError, "Trying to set a forward gradient that has a different size"),
        (lambda: jvp(vector, (X,), (V,), has_aux=True), RuntimeError, r"should be a tuple: \(output, aux\) if has_aux is True"),
        (
            lambda: jvp(vector, (T.tensor([1]),), (T.tensor([1]),)),
            ValueError,
            "Expected primal to be floating point or complex",
        ),
    ],
)
def test_what_jvp_refuses(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_a_level_is_left_when_the_function_raises():
    def fails(x):
        raise KeyError("mine")

    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            jvp(fails, (X,), (V,))
    close(jvp(vector, (X,), (V,))[1], jacrev(vector)(X) @ V)


# --- complex numbers ---

Z = T.tensor([1 + 2j, -0.5 + 0.3j, 2 - 1j], dtype=T.complex128)
U = T.tensor([0.3 - 0.1j, 0.2 + 0.5j, -1 + 1j], dtype=T.complex128)


def written_by_parts(z):
    y = z.clone()
    T.view_as_real(y)[0].mul_(2)
    return y.mul_(z)


@pytest.mark.parametrize(
    "function",
    [
        lambda z: z * z,
        lambda z: z * z.conj(),
        lambda z: z.abs(),
        lambda z: z.angle(),
        lambda z: z.imag * z.real,
        lambda z: (1 / z).exp(),
        lambda z: z**3,
        lambda z: z * X,
        lambda z: z.prod(),
        lambda z: z.reshape(1, 3) @ z.conj().reshape(3, 1),
        lambda z: T.cat([z, z.conj()]).cumsum(0),
        written_by_parts,
    ],
)
def test_jvp_of_complex_functions(function):
    """Along a direction a complex function has an ordinary derivative, holomorphic or not."""
    step = 1e-6
    slope = (function(Z + step * U) - function(Z - step * U)) / (2 * step)
    tangent = jvp(function, (Z,), (U,))[1]
    assert tangent.dtype == slope.dtype and tangent.shape == slope.shape
    assert (tangent - slope).abs().max().item() < 1e-8


# --- nestings ---


def second(function):
    """The second derivative along two directions, by two reverse passes."""
    return (jacrev(jacrev(function))(X) @ V) @ W


@pytest.mark.parametrize("function", [scalar, lambda x: written(x).sin().sum(), lambda x: x.cumprod(0).prod()])
@pytest.mark.parametrize(
    "derive",
    [
        lambda f: jvp(lambda x: jvp(f, (x,), (V,))[1], (X,), (W,))[1],
        lambda f: jvp(grad(f), (X,), (V,))[1] @ W,
        lambda f: grad(lambda x: jvp(f, (x,), (V,))[1])(X) @ W,
        lambda f: jacfwd(jacfwd(f))(X) @ V @ W,
        lambda f: jacfwd(jacrev(f))(X) @ V @ W,
        lambda f: jacrev(jacfwd(f))(X) @ V @ W,
        lambda f: hessian(f)(X) @ V @ W,
        lambda f: jvp(lambda x: vjp(f, x)[1](t(1.0)[0])[0], (X,), (V,))[1] @ W,
        lambda f: vjp(lambda x: jvp(f, (x,), (V,))[1], X)[1](t(1.0)[0])[0] @ W,
        lambda f: T.autograd.functional.hvp(f, X, V)[1] @ W,
    ],
)
def test_second_derivatives_in_every_nesting(function, derive):
    close(derive(function), second(function))


@pytest.mark.gradiron
@pytest.mark.parametrize("function", [scalar, lambda x: T.logcumsumexp(x, 0).sum()])
def test_what_does_not_nest_in_pytorch(function):
    close(jacfwd(jacrev(function))(X) @ V @ W, second(function))
    with pytest.raises(RuntimeError, match="Nested forward mode AD"):
        jvp(lambda x: linearize(function, x)[1](V), (X,), (W,))
    close(grad(lambda x: linearize(function, x)[1](V))(X) @ W, second(function))


def test_third_order():
    expected = jacrev(jacrev(jacrev(scalar)))(X)
    close(jacfwd(jacfwd(jacfwd(scalar)))(X), expected)
    close(jacfwd(jacrev(jacfwd(scalar)))(X), expected)


def test_jvp_with_respect_to_the_direction():
    close(grad(lambda v: jvp(scalar, (X,), (v,))[1])(V), grad(scalar)(X))
    v = V.clone().requires_grad_()
    tangent = jvp(grad(scalar), (X,), (v,))[1]
    close(T.autograd.grad(tangent, v, W)[0], hessian(scalar)(X) @ W)


def test_perturbations_are_not_confused():
    one, two, three = t(1.0)[0], t(2.0)[0], t(3.0)[0]
    assert grad(lambda a: a * jvp(lambda b: a + b, (one,), (one,))[1])(one).item() == 1.0
    assert jvp(lambda a: a * jvp(lambda b: a * b, (three,), (one,))[1], (two,), (one,))[1].item() == 4.0


def test_leaves_outside():
    x = X.clone().requires_grad_()
    (g,) = T.autograd.grad(jvp(scalar, (x,), (V,))[1], x)
    close(g, hessian(scalar)(X) @ V)
    (g,) = T.autograd.grad((jacfwd(vector)(x) @ V) @ W, x)
    close(g, jacrev(lambda x: (jacrev(vector)(x) @ V) @ W)(X))


def test_no_grad_outside():
    with T.no_grad():
        close(jvp(grad(scalar), (X,), (V,))[1], hessian(scalar)(X) @ V)


# --- with vmap ---


def test_vmap_of_jvp():
    points, directions = T.stack([X, V, W]), T.stack([V, W, X])
    values, tangents = vmap(lambda x, v: jvp(vector, (x,), (v,)))(points, directions)
    close(values, T.stack([vector(x) for x in points]))
    close(tangents, T.stack([jacrev(vector)(x) @ v for x, v in zip(points, directions)]))
    tangents = vmap(lambda v: jvp(vector, (X,), (v,))[1])(directions)
    close(tangents, directions @ jacrev(vector)(X).t())
    tangents = vmap(lambda x: jvp(vector, (x,), (V,))[1])(points)
    close(tangents, T.stack([jacrev(vector)(x) @ V for x in points]))


def test_jvp_of_vmap():
    points, directions = T.stack([X, W]), T.stack([V, X])
    close(jvp(vmap(vector), (points,), (directions,))[1], vmap(lambda x, v: jacrev(vector)(x) @ v)(points, directions))


def test_vmap_of_hessian_and_jacfwd():
    points = T.stack([X, V])
    close(vmap(hessian(scalar))(points), T.stack([jacrev(jacrev(scalar))(x) for x in points]))
    weight = t(0.3, 0.1, -0.2, 0.5, -0.4, 0.2).reshape(2, 3)
    for by_weight, by_x, x in zip(*vmap(jacfwd(layers, (0, 1)), (None, 0))(weight, points), points):
        expected = jacrev(layers, (0, 1))(weight, x)
        close(by_weight, expected[0])
        close(by_x, expected[1])


# --- jacfwd ---


@pytest.mark.parametrize("function", [vector, scalar, written, lambda x: x.outer(x), lambda x: x.sort()[0], lambda x: x.var()])
def test_jacfwd_is_jacrev(function):
    close(jacfwd(function)(X), jacrev(function)(X))


def test_jacfwd_of_many():
    def function(a, b):
        return a * b, {"sum": b.sum()}

    for argnums in (0, 1, (0, 1), (1,)):
        ours, theirs = jacfwd(function, argnums)(X, W), jacrev(function, argnums)(X, W)
        for one, other in zip((ours[0], ours[1]["sum"]), (theirs[0], theirs[1]["sum"])):
            assert type(one) is type(other)
            for a, b in zip(one, other) if isinstance(one, tuple) else [(one, other)]:
                close(a, b)


def test_jacfwd_of_nested_inputs():
    found = jacfwd(lambda d: d["a"] * d["b"])({"a": X, "b": W})
    close(found["a"], T.diag(W))
    close(found["b"], T.diag(X))


def test_jacfwd_with_aux():
    found, aux = jacfwd(lambda x: (vector(x), (x + 1, T.ones(2))), has_aux=True)(X)
    close(found, jacrev(vector)(X))
    close(aux[0], X + 1)


def test_jacfwd_of_matrices():
    x, y = X.reshape(3, 1), T.stack([V, W])
    close(jacfwd(lambda x: y @ x)(x).reshape(2, 3), y)


def test_jacfwd_draws():
    T.manual_seed(0)
    found = jacfwd(lambda x: x * T.rand(3, dtype=T.float64), randomness="same")(X)
    assert (found - T.diag(found.diagonal())).abs().max().item() == 0.0
    with pytest.raises(RuntimeError, match="^vmap: called random operation while in randomness error mode"):
        jacfwd(lambda x: x * T.rand(3, dtype=T.float64))(X)


@pytest.mark.parametrize(
    ("argnums", "match"),
    [
        (3, "^Got argnum=3, but only 1 positional inputs"),
        ((), "^argnums must be non-empty"),
        ((0, 0), "^argnums elements must be unique"),
        ("0", "^argnums must be int or Tuple"),
    ],
)
def test_what_jacfwd_refuses(argnums, match):
    with pytest.raises(RuntimeError, match=match):
        jacfwd(vector, argnums)(X)


@pytest.mark.gradiron
def test_no_inputs_no_columns():
    assert tuple(jacfwd(lambda x: x.sum() + X)(t()).shape) == (3, 0)


# --- autograd.functional ---


def test_jacobians_at_once_and_by_forward_mode():
    functional = T.autograd.functional

    def several(a, b):
        return a * b, b.sum()

    for function, inputs in ((vector, X), (several, (X, W)), (lambda x: (x * 2, x.sum()), X), (lambda a, b: a * b, (X, V))):
        expected = functional.jacobian(function, inputs)
        for options in ({"strategy": "forward-mode"}, {}):
            same(functional.jacobian(function, inputs, vectorize=True, **options), expected)
    for inputs, function in ((X, scalar), ((X, W), lambda a, b: (a * b.exp() * b).sum())):
        expected = functional.hessian(function, inputs)
        for strategy in ("reverse-mode", "forward-mode"):
            same(functional.hessian(function, inputs, vectorize=True, outer_jacobian_strategy=strategy), expected)


def same(found, expected):
    found = tuple(found) if isinstance(found, list) else found  # what PyTorch's forward mode makes of tuples
    assert isinstance(found, tuple) is isinstance(expected, tuple)
    if not isinstance(found, tuple):
        return close(found, expected)
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        same(one, other)


def test_columns_come_at_once_only():
    with pytest.raises(NotImplementedError, match="Computing Jacobian using forward-AD"):
        T.autograd.functional.jacobian(vector, X, strategy="forward-mode")


# --- lifetimes ---


@pytest.mark.gradiron
def test_nothing_is_left_behind():
    def rounds(count):
        for _ in range(count):
            jvp(grad(scalar), (X,), (V,))
            grad(lambda x: jvp(scalar, (x,), (V,))[1])(X)
            jvp(lambda x: jvp(scalar, (x,), (V,))[1], (X,), (W,))

    rounds(20)
    gc.collect()
    before = T._core.live_nodes()
    rounds(300)
    gc.collect()
    assert T._core.live_nodes() <= before


# --- linearize ---

# PyTorch warns of what its own tracer does.
folding = pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr")


@folding
def test_linearize():
    value, push = linearize(vector, X)
    close(value, vector(X))
    for direction in (V, W, V):
        close(push(direction), jvp(vector, (X,), (direction,))[1])


@folding
def test_linearize_many():
    def function(pair, x):
        return {"a": pair[0] * x, "b": (pair[1] ** 2).sum()}

    value, push = linearize(function, (X, W), V)
    directions = ((W, V), X)
    expected = jvp(function, ((X, W), V), directions)
    for key in ("a", "b"):
        close(value[key], expected[0][key])
        close(push(*directions)[key], expected[1][key])


@pytest.mark.gradiron
def test_linearize_under_vmap():
    _, push = linearize(vector, X)
    close(vmap(push)(T.eye(3, dtype=T.float64)), jacrev(vector)(X).t())


@folding
def test_what_a_linear_map_refuses():
    _, push = linearize(vector, X)
    with pytest.raises(RuntimeError, match="(?s)^Expected the tangents .* to have the same argspec as the primals"):
        push(V, V)
    with pytest.raises(RuntimeError, match="^tangent:0 with shape .* in flattened pytree doesn't match the shape"):
        push(V[:2])
    with pytest.raises(RuntimeError, match="^tangent:0 with dtype torch.float32 in flattened pytree doesn't match the dtype"):
        push(V.float())
