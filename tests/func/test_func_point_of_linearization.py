"""Values that a function may look at: the point where it is differentiated is one point, however many directions run along."""

import pytest

from library import T, assert_values

func = T.func
X = T.tensor([1.5, 0.5, -0.75], dtype=T.float64)
MANY = T.arange(6, dtype=T.float64).reshape(2, 3) * 0.3 + 0.2


def branching(x):
    if x.sum() > 0:
        return x.sin() * x * float(x[0])
    return x.cos() * int(x.abs().max().item())


def straight(x):
    return x.sin() * x * 1.5


def written(x):
    y = x.clone()
    y[0] = y[1] * 2
    y.mul_(x)
    if bool(y.sum() > 100):
        y.zero_()
    y[1:].mul_(3.0)
    return y * x


def written_anew(x):
    y = T.cat([x[1:2] * 2, x[1:]]) * x
    return T.cat([y[:1], y[1:] * 3]) * x


def viewing(x):
    y = x * 2
    first, rest = y.split([1, 2])
    if first.item() > 0 and max(x.tolist()) < 2:
        return T.stack([rest.sum() * first.squeeze(0), *rest.unbind()]).exp()
    return y


def viewing_always(x):
    y = x * 2
    return T.stack([(y[1] + y[2]) * y[0], y[1], y[2]]).exp()


def multiplying(x):
    matrix = T.arange(9, dtype=T.float64).reshape(3, 3) / 10
    y = matrix @ x
    while y.max() > 1:
        y = y / 2
    return T.softmax(T.relu(y), 0) * x


def multiplying_once(x):
    matrix = T.arange(9, dtype=T.float64).reshape(3, 3) / 10
    return T.softmax(T.relu(matrix @ x), 0) * x


def picking(x):
    order = x.argsort().tolist()
    return x[order].cumsum(0) * x[x > 0].prod() + T.nn.functional.layer_norm(x, (3,))


def picked(x):
    return x.flip(0).cumsum(0) * (x[0] * x[1]) + T.nn.functional.layer_norm(x, (3,))


PAIRS = [(branching, straight), (written, written_anew), (viewing, viewing_always), (multiplying, multiplying_once)]
PAIRS.append((picking, picked))


def total(f):
    return lambda x: (f(x) ** 2).sum()


def flat(found):
    return [t for part in found for t in flat(part)] if isinstance(found, tuple) else [found]


NESTINGS = {
    "jacfwd": lambda f: func.jacfwd(f)(X),
    "jacfwd of jacfwd": lambda f: func.jacfwd(func.jacfwd(f))(X),
    "jacfwd of jacrev": lambda f: func.jacfwd(func.jacrev(f))(X),
    "jacrev of jacfwd": lambda f: func.jacrev(func.jacfwd(f))(X),
    "jacrev of jacrev": lambda f: func.jacrev(func.jacrev(f))(X),
    "three": lambda f: func.jacfwd(func.jacrev(func.jacfwd(f)))(X),
    "hessian": lambda f: func.hessian(total(f))(X),
    "hessian's gradient": lambda f: func.grad(lambda x: func.hessian(total(f))(x).sin().sum())(X),
    "vmap of jvp": lambda f: func.vmap(lambda v: func.jvp(f, (X,), (v,)))(MANY),
    "vmap of vjp": lambda f: func.vmap(lambda v: func.vjp(f, X)[1](v)[0])(MANY),
    "vmap of grad": lambda f: func.vmap(lambda v: func.grad(lambda x: (f(x) * v).sum())(X))(MANY),
    "vmap of hessian": lambda f: func.vmap(lambda v: func.hessian(lambda x: (f(x) * v).sum())(X))(MANY),
    "vmap of jacfwd of jacrev": lambda f: func.vmap(lambda v: func.jacfwd(func.jacrev(lambda x: f(x) * v * x))(X))(MANY),
    "vmap of jacrev of jacfwd": lambda f: func.vmap(lambda v: func.jacrev(func.jacfwd(lambda x: f(x) * v * x))(X))(MANY),
    "vmap of jacfwd of jacfwd": lambda f: func.vmap(lambda v: func.jacfwd(func.jacfwd(lambda x: f(x) * v * x))(X))(MANY),
    "jvp along samples": lambda f: func.vmap(lambda v, y: func.jvp(lambda x: f(x).sum() * y * x, (X,), (v,)))(MANY, MANY.sin()),
    "grad of jvp along samples": lambda f: func.vmap(
        lambda v, y: func.grad(lambda x: func.jvp(lambda x: f(x).sum() * y * x, (x,), (v,))[1].sum())(X)
    )(MANY, MANY.sin()),
    "jvp of grad along samples": lambda f: func.vmap(
        lambda v, y: func.jvp(func.grad(lambda x: (f(x).sum() * y * x).sum()), (X,), (v,))
    )(MANY, MANY.sin()),
    "jacfwd of vmap": lambda f: func.jacfwd(lambda c: func.vmap(lambda v: f(c) * v)(MANY))(X),
    "grad of vmap of grad": lambda f: func.grad(
        lambda c: func.vmap(lambda v: func.grad(lambda x: (f(c).sum() * v * x * x).sum() + (f(x) * c).sum())(c))(MANY).sum()
    )(X),
    "auxiliary": lambda f: func.jacfwd(lambda x: (f(x), x.sum()), has_aux=True)(X),
    "value and auxiliary of samples": lambda f: func.vmap(
        lambda v: func.grad_and_value(lambda x: ((f(x) * v).sum(), f(x)), has_aux=True)(X)
    )(MANY),
    "functional": lambda f: T.autograd.functional.jacobian(f, X, vectorize=True, strategy="forward-mode"),
    "functional hessian": lambda f: T.autograd.functional.hessian(
        total(f), X, vectorize=True, outer_jacobian_strategy="forward-mode"
    ),
}


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
@pytest.mark.parametrize("nesting", NESTINGS.values(), ids=NESTINGS)
@pytest.mark.parametrize(("looking", "blind"), PAIRS, ids=[looking.__name__ for looking, _ in PAIRS])
def test_values_may_be_looked_at(nesting, looking, blind):
    found, wanted = (flat(nesting(f)) for f in (looking, blind))
    for one, other in zip(found, wanted, strict=True):
        assert_values(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
@pytest.mark.parametrize("look", [bool, float, int, lambda t: t.item(), lambda t: list(range(t.long()))])
def test_samples_may_not_be_looked_at(look):
    def f(x):
        look(x[0])
        return x

    with pytest.raises(RuntimeError, match="vmap: It looks like you're"):
        func.vmap(func.jacfwd(f))(MANY)
    func.jacfwd(f)(X)
    func.hessian(lambda x: f(x).pow(2).sum())(X)


def test_directions_may_not_be_looked_at():
    def f(v):
        moved = func.jvp(lambda x: x * x, (X,), (v,))[1]
        return X * moved[0].item()

    with pytest.raises(RuntimeError, match="vmap: It looks like you're"):
        func.vmap(f)(MANY)


def test_samples_are_not_written_into_what_they_share():
    def into_the_point(v, y):
        return func.jvp(lambda x: x.clone().mul_(y), (X,), (v,))

    with pytest.raises(RuntimeError, match="inplace arithmetic"):
        func.vmap(into_the_point)(MANY, MANY)


def test_a_shared_leaf_takes_the_sum_of_all_samples():
    shared = X.clone().requires_grad_()
    func.vmap(lambda v: func.jvp(lambda x: x * x * shared, (X,), (v,))[1])(MANY).sum().backward()
    assert_values(shared.grad, (2 * X * MANY).sum(0))
    shared.grad = None
    func.vmap(lambda v: func.grad(lambda x: (x * x * shared * v).sum())(X))(MANY).sum().backward()
    assert_values(shared.grad, (2 * X * MANY).sum(0))
