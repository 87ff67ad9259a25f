"""Custom Functions inside transforms: what they must bring along, and how a rule is made of their methods."""

import pytest

from library import T, assert_values

func, Function = T.func, T.autograd.Function
X = T.tensor([1.0, 2.0, -3.0])
MANY = T.tensor([[0.5, 1.0, 2.0], [-1.0, 3.0, 0.25]])


def made(name, **parts):
    plain = ("generate_vmap_rule",)
    return type(name, (Function,), {k: v if k in plain else staticmethod(v) for k, v in parts.items()})


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)
    ctx.save_for_forward(*inputs)


def pull(ctx, g):
    (x,) = ctx.saved_tensors
    return g * x.cos()


def push(ctx, t):
    (x,) = ctx.saved_tensors
    return t * x.cos()


def rule(info, in_dims, x):
    return Ruled.apply(x), in_dims[0]


PARTS = {"forward": lambda x: x.sin(), "setup_context": keep, "backward": pull, "jvp": push}
Ruled = made("Ruled", vmap=rule, **PARTS)
Generated = made("Generated", generate_vmap_rule=True, **PARTS)
Bare = made("Bare", **PARTS)
Both = made("Both", vmap=rule, generate_vmap_rule=True, **PARTS)
Old = made("Old", forward=lambda ctx, x: x.sin(), backward=lambda ctx, g: g)

NESTINGS = {
    "grad": lambda f: func.grad(lambda x: f(x).sum())(X),
    "grad of grad": lambda f: func.grad(lambda x: func.grad(lambda x: f(x).sum())(x).sum())(X),
    "vjp": lambda f: func.vjp(f, X)[1](X),
    "jvp": lambda f: func.jvp(f, (X,), (X,)),
    "jacrev": lambda f: func.jacrev(f)(X),
    "jacfwd": lambda f: func.jacfwd(f)(X),
    "hessian": lambda f: func.hessian(lambda x: f(x).sum())(X),
    "jvp of grad": lambda f: func.jvp(func.grad(lambda x: f(x).sum()), (X,), (X,)),
    "grad of jvp": lambda f: func.grad(lambda x: func.jvp(f, (x,), (x,))[1].sum())(X),
    "vmap": lambda f: func.vmap(f)(MANY),
    "vmap along columns": lambda f: func.vmap(f, in_dims=1, out_dims=1)(MANY),
    "vmap of vmap": lambda f: func.vmap(func.vmap(f))(MANY),
    "vmap of grad": lambda f: func.vmap(func.grad(lambda x: f(x).sum()))(MANY),
    "grad of vmap": lambda f: func.grad(lambda x: func.vmap(f)(x).sum())(MANY),
    "vmap of jvp": lambda f: func.vmap(lambda x: func.jvp(f, (x,), (x,)))(MANY),
    "jvp of vmap": lambda f: func.jvp(func.vmap(f), (MANY,), (MANY,)),
    "vmap of hessian": lambda f: func.vmap(func.hessian(lambda x: f(x).sum()))(MANY),
    "vmap of what is shared": lambda f: func.vmap(lambda y: f(X) * y)(MANY),
    "vmap of a shared point's grad": lambda f: func.vmap(lambda y: func.grad(lambda x: (f(x) * y).sum())(X))(MANY),
    "vmap of a shared point's jacfwd": lambda f: func.vmap(lambda y: func.jacfwd(lambda x: f(x * y))(X))(MANY),
    "vmap along directions": lambda f: func.vmap(lambda v: func.jvp(f, (X,), (v,)))(MANY),
    "vmap of directions and samples": lambda f: func.vmap(lambda v, y: func.jvp(lambda x: f(x * y), (X,), (v,)))(MANY, MANY),
}
# All but the first nine have a vmap somewhere, and so have those that go through many directions at once.
BATCHED = [*list(NESTINGS)[9:], "jacfwd", "hessian"]


def flat(found):
    return [t for part in found for t in flat(part)] if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("nesting", NESTINGS.values(), ids=NESTINGS)
@pytest.mark.parametrize("function", [Ruled, Generated])
def test_functions_are_operators(nesting, function):
    for one, other in zip(flat(nesting(function.apply)), flat(nesting(T.sin)), strict=True):
        assert_values(one, other)


@pytest.mark.parametrize("name", NESTINGS)
def test_functions_of_the_old_style_are_refused(name):
    with pytest.raises(RuntimeError, match="functorch transforms .* it must override the setup_context staticmethod"):
        NESTINGS[name](Old.apply)


@pytest.mark.parametrize("name", BATCHED)
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (Bare, "You tried to vmap over Bare, but it does not have vmap support"),
        (Both, "You tried to vmap over Both, but it has both generate_vmap_rule=True and an overridden vmap"),
    ],
)
def test_samples_need_one_rule(name, function, message):
    with pytest.raises(RuntimeError, match=message):
        NESTINGS[name](function.apply)


@pytest.mark.parametrize("name", ["grad", "grad of grad", "vjp", "jvp", "jvp of grad", "grad of jvp"])
@pytest.mark.parametrize("function", [Bare, Both])
def test_without_samples_no_rule_is_needed(name, function):
    for one, other in zip(flat(NESTINGS[name](function.apply)), flat(NESTINGS[name](T.sin)), strict=True):
        assert_values(one, other)


def test_outside_of_transforms_everything_goes():
    for function in (Old, Bare, Both):
        assert_values(function.apply(X), X.sin())


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda x: x, "two returns, an output and out_dims .* Got a <class '.*Tensor'> instead"),
        (lambda x: (x, 0, 1), "two returns, an output and out_dims .* Got 3 returns instead"),
        (
            lambda x: (x, (0, 0)),
            "The autograd.Function's vmap staticmethod returned an incompatible \\(output, out_dims\\) tuple",
        ),
    ],
)
def test_rules_that_return_something_else(returned, message):
    wrong = made("Wrong", vmap=lambda info, dims, x: returned(x), **PARTS)
    with pytest.raises(RuntimeError, match=message):
        func.vmap(wrong.apply)(MANY)


def test_a_rule_from_functions_that_return_other_things():
    several = made(
        "Several",
        forward=lambda x: (x * 2, 3, None, x.sum()),
        setup_context=lambda ctx, inputs, output: None,
        backward=lambda ctx, g, a, b, h: g * 2 + h,
        generate_vmap_rule=True,
    )

    def f(x):
        double, three, nothing, total = several.apply(x)
        assert (three, nothing) == (3, None)
        return double.sum() * 3 + total

    assert_values(func.vmap(f)(MANY), MANY.sum(1) * 7)
    assert_values(func.vmap(func.grad(f))(MANY), T.full((2, 3), 7.0))


def test_what_forward_and_backward_save_is_kept_apart():
    def save(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)
        ctx.save_for_forward(output + 1, inputs[0])

    def forward_saved(ctx, t):
        more, x = ctx.saved_tensors
        return t * (more - 1) + 0 * x

    def backward_saved(ctx, g):
        x, y = ctx.saved_tensors
        return g * y + 0 * x

    exponential = made(
        "Exponential",
        forward=lambda x: x.exp(),
        setup_context=save,
        backward=backward_saved,
        jvp=forward_saved,
        generate_vmap_rule=True,
    )
    for name in ("vmap of grad", "vmap of jvp", "grad of vmap", "jvp of vmap", "jacfwd"):
        for one, other in zip(flat(NESTINGS[name](exponential.apply)), flat(NESTINGS[name](T.exp)), strict=True):
            assert_values(one, other)


@pytest.mark.parametrize("transform", [func.grad, lambda f: lambda x: func.vmap(func.grad(f))(x.reshape(1, 3))])
def test_too_many_gradients(transform):
    wrong = made(
        "Wrong",
        forward=lambda x: x * 2,
        setup_context=lambda ctx, inputs, output: None,
        backward=lambda ctx, g: (g, g),
        generate_vmap_rule=True,
    )
    with pytest.raises(RuntimeError, match="returned an incorrect number of gradients \\(expected 1, got 2\\)"):
        transform(lambda x: wrong.apply(x).sum())(X)


def test_shared_inputs_get_a_gradient_for_each_sample():
    product = made(
        "Product",
        forward=lambda x, y: x * y,
        setup_context=keep,
        backward=lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0]),
        generate_vmap_rule=True,
    )
    per_sample = func.vmap(lambda y: func.grad(lambda x: product.apply(x, y).sum())(X))
    assert_values(per_sample(MANY), MANY)
    total = func.grad(lambda x: func.vmap(lambda y: product.apply(x, y))(MANY).sum())
    assert_values(total(X), MANY.sum(0))


def test_forward_works_on_plain_tensors():
    """Inside of any transform its memory can be looked at, and NumPy can be asked."""
    seen = []

    def forward(x):
        seen.append(repr(x))
        inner = func.grad(lambda z: (z**2).sum())(x)
        return T.tensor(x.detach().numpy() * 2) + 0 * inner

    double = made("Double", forward=forward, setup_context=keep, backward=lambda ctx, g: g * 2, jvp=lambda ctx, t: t * 2)
    assert_values(func.grad(lambda x: double.apply(x).sum())(X), X * 0 + 2)
    assert_values(func.grad(lambda x: func.grad(lambda y: (double.apply(y) ** 2).sum())(x).sum())(X), X * 0 + 8)
    assert_values(func.jvp(double.apply, (X,), (X,))[1], X * 2)
    assert not any("GradTracking" in text for text in seen)
    with pytest.raises(RuntimeError, match="doesn't have storage"):
        func.grad(lambda x: T.tensor(x.detach().numpy()).sum())(X)


@pytest.mark.parametrize(
    "nesting, forwards, setups",
    [
        ("grad", 1, 2),
        ("grad of grad", 1, 3),
        ("jvp", 1, 2),
        ("jacrev", 1, 2),
        ("jacfwd", 1, 2),
        ("hessian", 1, 3),
        ("jvp of grad", 1, 3),
        ("grad of jvp", 1, 3),
        ("vmap", 1, 1),
        ("vmap of vmap", 1, 1),
        ("vmap of grad", 1, 2),
        ("grad of vmap", 1, 2),
        ("vmap of hessian", 1, 3),
    ],
)
def test_contexts_are_set_up_for_each_transform(nesting, forwards, setups):
    calls = []

    def forward(x):
        calls.append("forward")
        return x.sin()

    def setup(ctx, inputs, output):
        calls.append("setup")
        assert len(ctx.needs_input_grad) == len(inputs)
        keep(ctx, inputs, output)

    parts = {**PARTS, "forward": forward, "setup_context": setup}
    NESTINGS[nesting](made("Counted", generate_vmap_rule=True, **parts).apply)
    assert calls[0] == "forward" and (calls.count("forward"), calls.count("setup")) == (forwards, setups)


class Triple(Function):
    """In the old style, which has no rule for samples."""

    @staticmethod
    def forward(ctx, x):
        assert len(ctx.needs_input_grad) == 1
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return Triple.apply(g)

    @staticmethod
    def jvp(ctx, t):
        return Triple.apply(t)


def test_batches_of_gradients_and_tangents_need_no_rule():
    autograd, x = T.autograd, X.clone().requires_grad_()
    three = 3 * T.eye(3)
    (found,) = autograd.grad(Triple.apply(x), x, T.eye(3), is_grads_batched=True)
    assert_values(found, three)
    for strategy in ("reverse-mode", "forward-mode"):
        assert_values(autograd.functional.jacobian(Triple.apply, X, vectorize=True, strategy=strategy), three)
    double = X.double().requires_grad_()
    checks = {f"check_{what}": True for what in ("forward_ad", "batched_grad", "batched_forward_grad")}
    assert autograd.gradcheck(Triple.apply, (double,), **checks)
    with pytest.raises(RuntimeError, match="it must override the setup_context staticmethod"):
        func.vmap(Triple.apply)(MANY)


SEEN = []


def nested_rule(info, in_dims, pair, factor, more):
    SEEN.append((info.batch_size, in_dims, type(pair)))
    first, second = (x if d is None else x.movedim(d, 0) for x, d in zip(pair, in_dims[0], strict=True))
    shared = in_dims[0] == [None, None] and in_dims[2]["a"] is None
    return first * factor + second + more["a"], None if shared else 0


Nested = made(
    "Nested",
    forward=lambda pair, factor, more: pair[0] * factor + pair[1] + more["a"],
    setup_context=lambda ctx, inputs, output: None,
    backward=lambda ctx, g: (None, None, None),
    vmap=nested_rule,
)


def test_rules_get_nested_dimensions():
    """Of tensors inside of containers, too, and where no argument is a tensor itself."""
    SEEN.clear()
    y = func.vmap(lambda x: Nested.apply([x, X], 2, {"a": x}))(MANY)
    assert y.equal(MANY * 3 + X) and SEEN == [(2, ([0, None], None, {"a": 0}), list)]
    SEEN.clear()
    func.vmap(lambda x, y: Nested.apply((x, y), x.sum().expand(3), {"a": X}), in_dims=(0, None))(MANY, X)
    assert SEEN == [(2, ((0, None), 0, {"a": None}), tuple)]
    SEEN.clear()
    y = func.vmap(lambda x: Nested.apply([X, X], 2, {"a": X}) + x)(MANY)
    assert y.equal(MANY + 4 * X) and not SEEN
    SEEN.clear()
    # At the inner level only the first tensor has samples, at the outer one only the second.
    inner = lambda x, y: Nested.apply([x, y], 1, {"a": X})
    y = func.vmap(lambda y: func.vmap(lambda x: inner(x, y))(MANY))(MANY + 1)
    assert SEEN[0][1] == ([0, None], None, {"a": None})
    assert y.equal(MANY + (MANY + 1)[:, None] + X)
