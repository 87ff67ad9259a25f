"""gradiron.func: grad, vjp, jacrev, hessian and functional_call, nested in one another and in vmap."""

import pytest

from library import IS_GRADIRON, T, assert_values

func = T.func
grad, grad_and_value, vjp, jacrev, hessian, vmap = (
    func.grad,
    func.grad_and_value,
    func.vjp,
    func.jacrev,
    func.hessian,
    func.vmap,
)

# PyTorch's own, when it takes the stand.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit")


def line(n, start=0.3, step=0.4):
    return T.arange(n, dtype=T.float64) * step + start


def number(x):
    return T.tensor(x, dtype=T.float64)


def message(call, *args):
    with pytest.raises(Exception) as found:
        call(*args)
    return f"{type(found.value).__name__}: {found.value}".splitlines()[0]


# --- grad ---


def test_grad_of_one_number():
    x = number(0.7)
    assert_values(grad(T.sin)(x), x.cos())
    assert_values(grad(grad(T.sin))(x), -x.sin())
    assert_values(grad(grad(grad(T.sin)))(x), -x.cos())
    assert not grad(T.sin)(x).requires_grad
    assert x.grad is None


def test_argnums():
    f = lambda a, b, c: (a * b**2 * c**3).sum()
    a, b, c = line(3), line(3, 1.0), line(3, 2.0)
    assert_values(grad(f, argnums=1)(a, b, c), 2 * a * b * c**3)
    assert_values(grad(f, argnums=-1)(a, b, c), 3 * a * b**2 * c**2)
    found = grad(f, argnums=(2, 0))(a, b, c)
    assert isinstance(found, tuple)
    assert_values(found[0], 3 * a * b**2 * c**2)
    assert_values(found[1], b**2 * c**3)
    assert isinstance(grad(f, argnums=(0,))(a, b, c), tuple)
    x = number(2.0)
    assert message(grad(lambda x: x * 2, argnums=1), x) == "RuntimeError: Got argnum=1, but only 1 positional inputs"
    assert message(grad(lambda x: x, argnums=(0, 0)), x) == "RuntimeError: argnums elements must be unique, got (0, 0)"
    assert message(grad(lambda x: x, argnums="a"), x).startswith("RuntimeError: argnums must be int or Tuple[int, ...], got:")
    assert message(grad(lambda x: x, argnums=()), x) == "RuntimeError: argnums must be non-empty"


def test_containers_and_keywords():
    d = {"w": line(2), "b": [number(1.0), number(2.0)]}
    found = grad(lambda d, x, k=1: ((d["w"] * x).sum() + d["b"][0] * d["b"][1]) * k)(d, line(2, 5.0), k=2)
    assert_values(found["w"], line(2, 5.0) * 2)
    assert_values(found["b"][0], 4.0)
    assert_values(found["b"][1], 2.0)


def test_aux_and_value():
    x = number(3.0)
    g, (v, aux) = grad_and_value(lambda x: (x**2, {"double": x * 2}), has_aux=True)(x)
    assert (g.item(), v.item(), aux["double"].item()) == (6.0, 9.0, 6.0)
    assert not (g.requires_grad or v.requires_grad or aux["double"].requires_grad)
    g, aux = grad(lambda x: (x**2, x + 1), has_aux=True)(x)
    assert (g.item(), aux.item()) == (6.0, 4.0)
    g, v = grad_and_value(lambda x: x**2)(x)
    assert (g.item(), v.item()) == (6.0, 9.0)
    assert message(grad(lambda x: x * 2, has_aux=True), x) == (
        "RuntimeError: grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True"
    )
    assert message(grad(lambda x: (x * 2, (x, 3)), has_aux=True), x) == (
        "RuntimeError: Expected tensors, got unsupported type <class 'int'>"
    )


def test_what_does_not_depend_on_the_input():
    x, s = number(2.0), number(5.0)
    assert_values(grad(lambda x: s * 3)(x), 0.0)
    assert_values(grad(lambda x: x.detach() * 2)(x), 0.0)
    assert_values(grad(lambda x: x.detach() * x)(x), 2.0)
    assert_values(grad(lambda x, y: x, argnums=(0, 1))(x, line(2))[1], [0.0, 0.0])


def test_wrong_outputs():
    x = number(2.0)
    where = "RuntimeError: grad_and_value(f)(*args): Expected f(*args) to return a"
    assert message(grad(lambda x: x), line(2)).startswith(f"{where} scalar Tensor, got tensor with 1 dims.")
    assert message(grad(lambda x: 3.0), x) == f"{where} Tensor, got <class 'float'>"
    assert message(grad(lambda x: (x, x)), x) == f"{where} Tensor, got <class 'tuple'>"
    assert (
        message(grad(lambda x: x * 2), 3.0) == "ValueError: Thing passed to transform API must be Tensor, got <class 'float'>"
    )
    assert message(grad(lambda x: x * 2), T.tensor(3)).startswith("RuntimeError: only Tensors of floating point")


# --- grad mode and the user's own graph ---


def test_grad_mode_outside_and_inside():
    x = number(3.0)
    with T.no_grad():
        assert_values(grad(lambda x: x * x)(x), 6.0)
        assert_values(grad(grad(lambda x: x**3))(x), 18.0)
        assert not T.is_grad_enabled()

    def quiet(x):
        with T.no_grad():
            return x * x

    assert_values(grad(quiet)(x), 0.0)
    assert_values(grad(lambda x: quiet(x) * x)(x), 9.0)

    def partly(x):
        with T.no_grad():
            c = grad(lambda y: y**2)(x)
        return x - c

    assert_values(grad(partly)(x), 1.0)


def test_results_stay_connected_to_the_users_leaves():
    y = number(3.0).requires_grad_()
    g = grad(lambda x: x * x)(y)
    assert g.requires_grad
    assert_values(T.autograd.grad(g, y)[0], 2.0)
    g = grad(lambda x: x * x * y)(y)
    assert_values(g, 18.0)
    assert_values(T.autograd.grad(g, y)[0], 12.0)
    w = number(2.0).requires_grad_()
    g, v = grad_and_value(lambda x: x * x * w)(number(3.0))
    assert g.requires_grad and v.requires_grad
    assert_values(T.autograd.grad(g, w)[0], 6.0)
    assert_values(T.autograd.grad(v, w)[0], 9.0)
    with T.no_grad():
        g = grad(lambda x: x * x * y)(y)
    assert not g.requires_grad
    assert y.grad is None and w.grad is None


def test_history_before_the_transform_goes_on():
    y = number(0.5).requires_grad_()
    h = y.exp()
    g = grad(lambda x: x**3)(h)
    assert_values(T.autograd.grad(g, y)[0], 6 * h.detach() ** 2)


def test_in_place_inside():
    def f(x):
        y = x * 2
        y.mul_(x)
        y[0] = 0
        return y.sum()

    assert_values(grad(f)(line(3)), T.tensor([0.0, 4.0, 4.0], dtype=T.float64) * line(3))


def test_hooks_see_what_they_were_registered_on():
    seen = []

    def f(x):
        y = x * 2
        y.register_hook(lambda g: (seen.append(g.shape), g * 3)[1])
        return y.sum()

    assert_values(grad(f)(line(2)), [6.0, 6.0])
    assert_values(vmap(grad(f))(line(6).reshape(3, 2)), T.full((3, 2), 6.0, dtype=T.float64))
    assert seen == [(2,), (2,)]
    if not IS_GRADIRON:
        return  # There a function cannot see that the user's own leaves want gradients.
    x = line(6).reshape(3, 2).requires_grad_()
    assert_values(T.autograd.grad(vmap(f)(x).sum(), x)[0], T.full((3, 2), 6.0, dtype=T.float64))


# --- vjp ---


def test_vjp():
    x, y = line(3), line(3, 2.0)
    out, back = vjp(lambda a, b: (a * b).sin(), x, y)
    assert_values(out, (x * y).sin())
    assert not out.requires_grad
    c = line(3, -1.0)
    for _ in range(2):
        gx, gy = back(c)
        assert_values(gx, (x * y).cos() * y * c)
        assert_values(gy, (x * y).cos() * x * c)
    out, back = vjp(lambda a: {"s": a.sum(), "d": (a * 2, a)}, x)
    found = back({"s": number(1.0), "d": (x, x * 0)})
    assert_values(found[0], 1 + 2 * x)
    out, back, aux = vjp(lambda a: (a * 2, a + 1), x, has_aux=True)
    assert_values(aux, x + 1)
    assert_values(vmap(back)(T.eye(3, dtype=T.float64))[0], 2 * T.eye(3, dtype=T.float64))


def test_vjp_of_vjp():
    x, c = line(3), line(3, 1.0)
    pull = lambda x, c: vjp(lambda a: a**3, x)[1](c)[0]
    assert_values(grad(lambda x: pull(x, c).sum())(x), 6 * x * c)
    assert_values(grad(lambda c: pull(x, c).sum())(c), 3 * x**2)
    c.requires_grad_()
    out, back = vjp(lambda a: a**2, x)
    assert_values(T.autograd.grad(back(c)[0].sum(), c)[0], 2 * x)


def test_vjp_errors():
    x = number(2.0)
    assert message(vjp, lambda x: x * 2, 3.0) == "ValueError: Thing passed to transform API must be Tensor, got <class 'float'>"
    assert message(vjp, lambda x: 3, x) == (
        "RuntimeError: vjp(f, *primals): expected f(*primals) to return only tensors, got unsupported type <class 'int'>"
    )
    back = vjp(lambda x: x * 2, x)[1]
    assert message(back, line(2)).startswith("RuntimeError: Mismatch in shape: grad_output[0] has a shape of")
    assert message(back, (x,)) == (
        "RuntimeError: Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
        "cotangents: (*,), primal output: *"
    )


# --- Jacobians and Hessians ---


@pytest.mark.parametrize("chunk", [None, 1, 2, 100])
def test_jacrev(chunk):
    x = line(3)
    assert_values(jacrev(lambda x: x.sin(), chunk_size=chunk)(x), T.diag(x.cos()))
    m = line(6).reshape(2, 3)
    found = jacrev(lambda m, x: m @ x, argnums=(0, 1), chunk_size=chunk)(m, x)
    expected = T.autograd.functional.jacobian(lambda m, x: m @ x, (m, x))
    for f, e in zip(found, expected):
        assert_values(f, e)


def test_jacrev_structures():
    x, y = line(3), line(3, 1.0)
    j = jacrev(lambda a, b: {"p": a * b, "s": (a + b).sum()}, argnums=(0, 1))(x, y)
    assert_values(j["p"][0], T.diag(y))
    assert_values(j["p"][1], T.diag(x))
    assert_values(j["s"][1], T.ones(3, dtype=T.float64))
    j = jacrev(lambda d: d["a"] * d["b"])({"a": x, "b": y})
    assert_values(j["a"], T.diag(y))
    j, aux = jacrev(lambda x: (x**2, x + 1), has_aux=True)(x)
    assert_values(j, T.diag(2 * x))
    assert_values(aux, x + 1)
    assert_values(jacrev(lambda x: y)(x), T.zeros(3, 3, dtype=T.float64))
    assert jacrev(lambda x: x[:0])(x).shape == (0, 3) if IS_GRADIRON else True
    assert message(lambda: jacrev(lambda x: x, chunk_size=0)(x)) == "ValueError: jacrev: `chunk_size` should be greater than 0."
    assert message(jacrev(lambda x: x.long()), x).startswith(
        "RuntimeError: vjp(f, ...): All outputs of f must be floating-point"
    )


def test_jacrev_of_jacrev():
    f = lambda x: x.sin() * x.sum()
    x = line(3)
    found = jacrev(jacrev(f))(x)
    expected = T.autograd.functional.jacobian(lambda y: T.autograd.functional.jacobian(f, y, create_graph=True), x)
    assert_values(found, expected)


def test_hessian():
    f = lambda x: (x.sin() * x.prod()).sum()
    x = line(3)
    assert_values(hessian(f)(x), T.autograd.functional.hessian(f, x))
    assert_values(vmap(hessian(f))(T.stack([x, x * 2])), T.stack([hessian(f)(x), hessian(f)(x * 2)]))
    g = lambda a, b: (a * a * b).sum()
    found = hessian(g, argnums=(0, 1))(x, x + 1)
    expected = T.autograd.functional.hessian(g, (x, x + 1))
    for i in range(2):
        for j in range(2):
            assert_values(found[i][j], expected[i][j])


def test_jacobian_vectorized():
    f = lambda x, y: ((x * y).sin(), x.sum() * y)
    x, y = line(3), line(3, 1.0)
    found = T.autograd.functional.jacobian(f, (x, y), vectorize=True)
    for row, expected in zip(found, T.autograd.functional.jacobian(f, (x, y))):
        for a, e in zip(row, expected):
            assert_values(a, e)
    g = lambda x: (x**3).sum()
    assert_values(T.autograd.functional.hessian(g, x, vectorize=True), T.diag(6 * x))


# --- nestings with vmap ---


def model(w, b, x):
    return T.tanh(w @ x + b)


def loss(w, b, x, t):
    return ((model(w, b, x) - t) ** 2).sum()


def data():
    return line(6).reshape(2, 3).sin(), line(2), line(15).reshape(5, 3).cos(), line(10).reshape(5, 2).sin()


def test_per_sample_gradients():
    w, b, xs, ts = data()
    found = vmap(grad(loss, argnums=(0, 1)), in_dims=(None, None, 0, 0))(w, b, xs, ts)
    assert found[0].shape == (5, 2, 3) and found[1].shape == (5, 2)
    for i in range(5):
        expected = grad(loss, argnums=(0, 1))(w, b, xs[i], ts[i])
        assert_values(found[0][i], expected[0])
        assert_values(found[1][i], expected[1])
    leaf = w.clone().requires_grad_()
    found = vmap(grad(loss), in_dims=(None, None, 0, 0))(leaf, b, xs, ts)
    twice = T.autograd.grad(found.pow(2).sum(), leaf)[0]
    expected = sum(grad(lambda w: grad(loss)(w, b, x, t).pow(2).sum())(w) for x, t in zip(xs, ts))
    assert_values(twice, expected)


def test_grad_of_vmap():
    w, b, xs, ts = data()
    total = lambda w: vmap(loss, in_dims=(None, None, 0, 0))(w, b, xs, ts).sum()
    leaf = w.clone().requires_grad_()
    sum(loss(leaf, b, x, t) for x, t in zip(xs, ts)).backward()
    assert_values(grad(total)(w), leaf.grad)


def test_vmap_of_jacrev_and_jacrev_of_vmap():
    w, b, xs, _ = data()
    f = lambda x: model(w, b, x)
    found = vmap(jacrev(f))(xs)
    assert_values(found, T.stack([jacrev(f)(x) for x in xs]))
    whole = jacrev(vmap(f))(xs)
    assert whole.shape == (5, 2, 5, 3)
    assert_values(whole[2, :, 2], found[2])
    assert_values(whole[2, :, 1], T.zeros(2, 3, dtype=T.float64))
    shared = vmap(jacrev(lambda w, x: model(w, b, x)), in_dims=(None, 0))(w, xs)
    assert_values(shared, T.stack([jacrev(lambda w, x: model(w, b, x))(w, x) for x in xs]))


def test_deep_nestings():
    x = line(6).reshape(2, 3)
    f = lambda a: (a.sin() * a).sum()
    second = lambda a: 2 * a.cos() - a * a.sin()
    assert_values(vmap(vmap(grad(lambda a: a.sin() * a)))(x), x.sin() + x * x.cos())
    assert_values(vmap(grad(lambda a: grad(f)(a).sum()))(x), second(x))
    assert_values(grad(lambda m: vmap(grad(f))(m).sum())(x), second(x))
    assert_values(vmap(vmap(grad(grad(lambda a: a.sin() * a))))(x), second(x))
    assert_values(jacrev(lambda a: vmap(grad(lambda b: b.sin() * b))(a))(x[0]), T.diag(second(x[0])))
    assert_values(vmap(lambda a: vmap(lambda b: grad(lambda c: c * a.sum() * b)(b))(a))(x), x.sum(1)[:, None] * x)
    assert_values(vmap(jacrev(jacrev(lambda a: a**3)))(x)[1, 2, 2, 2], 6 * x[1, 2])


def test_gradients_of_each_sample_inside_vmap():
    x, w = line(6).reshape(3, 2), line(2, 1.0)

    def step(a):
        out, back = vjp(lambda v: (v * a).exp(), w)
        return out, back(T.ones(2, dtype=T.float64))[0]

    out, g = vmap(step)(x)
    assert_values(out, (w * x).exp())
    assert_values(g, x * (w * x).exp())


def test_second_derivatives_of_a_network_agree_with_the_loop():
    w, b, xs, ts = data()
    h = vmap(hessian(lambda b, x, t: loss(w, b, x, t)), in_dims=(None, 0, 0))(b, xs, ts)
    for i in range(5):
        assert_values(h[i], T.autograd.functional.hessian(lambda b: loss(w, b, xs[i], ts[i]), b))


def test_checks_agree_with_differences():
    f = lambda x: vmap(lambda a: T.softmax(a, 0) * a.norm())(x)
    assert T.autograd.gradcheck(f, (line(6).reshape(2, 3).requires_grad_(),))
    g = lambda x: vmap(grad(lambda a: (a**3).sum() * a.prod()))(x)
    assert T.autograd.gradcheck(g, (line(6).reshape(2, 3).requires_grad_(),))


# --- functional_call ---


class Linear(T.nn.Module if hasattr(T.nn, "Module") else object):
    def __init__(self, w, b):
        super().__init__()
        self.w, self.b = w, b

    def __call__(self, x, scale=1):
        return (x @ self.w.t() + self.b) * scale


class Net(T.nn.Module if hasattr(T.nn, "Module") else object):
    def __init__(self):
        super().__init__()
        self.first, self.second = Linear(line(6).reshape(2, 3), line(2)), Linear(line(2).reshape(1, 2), line(1))

    def __call__(self, x, scale=1):
        return self.second(self.first(x).tanh(), scale)

    def named_parameters(self, remove_duplicate=True):
        for owner in ("first", "second"):
            for name in ("w", "b"):
                yield f"{owner}.{name}", getattr(getattr(self, owner), name)

    def named_buffers(self, remove_duplicate=True):
        return iter(())


@pytest.mark.skipif(not IS_GRADIRON, reason="PyTorch wants a real Module")
def test_functional_call():
    net, x = Net(), line(3)
    own = dict(net.named_parameters())
    kept = {k: id(v) for k, v in own.items()}
    doubled = {k: v * 2 for k, v in own.items()}
    expected = ((x @ doubled["first.w"].t() + doubled["first.b"]).tanh() @ doubled["second.w"].t() + doubled["second.b"]) * 3
    assert_values(func.functional_call(net, doubled, (x,), {"scale": 3}), expected)
    assert_values(func.functional_call(net, doubled, x, {"scale": 3}), expected)
    assert {k: id(v) for k, v in net.named_parameters()} == kept
    half = [{"first.w": own["first.w"] * 0}, {"second.b": own["second.b"]}]
    assert_values(func.functional_call(net, half, x), (own["first.b"].tanh() @ own["second.w"].t() + own["second.b"]))
    g = grad(lambda p: func.functional_call(net, p, x).sum())(own)
    assert sorted(g) == sorted(own)
    assert_values(g["second.b"], [1.0])
    per_sample = vmap(grad(lambda p, x: func.functional_call(net, p, x).sum()), in_dims=(None, 0))(own, line(12).reshape(4, 3))
    assert per_sample["first.w"].shape == (4, 2, 3)
    with pytest.raises(RuntimeError, match="Missing key"):
        func.functional_call(net, {"first.w": own["first.w"]}, x, strict=True)
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        func.functional_call(net, [own, own], x)
    with pytest.raises(AttributeError):
        func.functional_call(net, {"nothing.w": x}, x)
    assert {k: id(v) for k, v in net.named_parameters()} == kept


@pytest.mark.skipif(not IS_GRADIRON, reason="PyTorch wants a real Module")
def test_tied_weights():
    """One tensor under two names is replaced under both, unless told otherwise."""
    net, x, one = Net(), line(3), line(2) + 5
    net.second.b = net.first.b = line(2)
    net.second.w = line(4).reshape(2, 2)
    other = net.second(T.tanh(x @ net.first.w.t() + one))
    assert_values(func.functional_call(net, {"first.b": one}, x, tie_weights=False), other)
    assert_values(func.functional_call(net, {"first.b": one}, x), other - net.second.b + one)
    two = {"first.b": one, "second.b": one * 2}
    with pytest.raises(ValueError, match="functional_call got multiple values for keys .*, which are tied"):
        func.functional_call(net, two, x)
    assert_values(func.functional_call(net, two, x, tie_weights=False), other - net.second.b + one * 2)


@pytest.mark.skipif(not IS_GRADIRON, reason="PyTorch wants a real Module")
def test_stacked_models():
    nets = [Net() for _ in range(3)]
    params, buffers = func.stack_module_state(nets)
    assert params["first.w"].shape == (3, 2, 3) and buffers == {}
    out = vmap(lambda p, x: func.functional_call(nets[0], p, x), in_dims=(0, None))(params, line(3))
    assert_values(out, T.stack([n(line(3)) for n in nets]))


# --- what is left behind ---


def test_nothing_is_left_behind():
    x = line(3)
    if not IS_GRADIRON:
        pytest.skip("counts gradiron's nodes")
    import gc

    def hooked(a):
        y = a * 2
        # The hook holds the tensor that it hangs on.
        y.register_hook(lambda g: g + y.detach() * 0)
        return y.sum()

    gc.collect()
    before = T._core.live_nodes()
    for _ in range(3):
        vmap(grad(lambda a: a.sin() * a))(x)
        jacrev(jacrev(lambda a: a**2))(x)
        vmap(grad(lambda a: grad(T.sin)(a) * a))(x)
        vmap(grad(hooked))(x.reshape(3, 1))
    gc.collect()
    assert T._core.live_nodes() <= before
