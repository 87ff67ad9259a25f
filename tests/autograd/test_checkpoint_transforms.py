"""Checkpointed functions inside the transforms of `func` (where PyTorch refuses most) and with forward mode."""

import pytest

from library import NAME, T, assert_values

checkpoint = __import__(f"{NAME}.utils.checkpoint", fromlist=["checkpoint"])
func, fw = T.func, T.autograd.forward_ad
X = T.arange(6, dtype=T.float64).reshape(3, 2) * 0.3 + 0.1


def plain(x):
    return (x.sin() * x.exp()).sum()


def kept(x):
    return checkpoint.checkpoint(plain, x, use_reentrant=False)


def nested(x):
    return checkpoint.checkpoint(lambda y: kept(y.cos()), x, use_reentrant=False)


def in_parts(x):
    return checkpoint.checkpoint_sequential([T.sin, T.exp, T.sum], 2, x, use_reentrant=False)


PAIRS = [(kept, plain), (nested, lambda x: plain(x.cos())), (in_parts, lambda x: x.sin().exp().sum())]

NESTINGS = {
    "grad": lambda f: func.grad(f)(X[0]),
    "grad of grad": lambda f: func.grad(lambda x: func.grad(f)(x).sum())(X[0]),
    "vmap of grad": lambda f: func.vmap(func.grad(f))(X),
    "grad of vmap": lambda f: func.grad(lambda x: func.vmap(f)(x).sum())(X),
    "vmap of grad of grad": lambda f: func.vmap(func.grad(lambda x: func.grad(f)(x).sum()))(X),
    "vmap of vmap of grad": lambda f: func.vmap(func.vmap(func.grad(f)))(T.stack([X, X * 2])),
    "jacrev": lambda f: func.jacrev(lambda x: f(x) * x)(X[0]),
    "hessian": lambda f: func.hessian(f)(X[0]),
    "jacrev of jacrev": lambda f: func.jacrev(func.jacrev(f))(X[0]),
    "jacrev of jacfwd": lambda f: func.jacrev(func.jacfwd(f))(X[0]),
    "vmap of hessian": lambda f: func.vmap(func.hessian(f))(X),
    "jvp of grad": lambda f: func.jvp(func.grad(f), (X,), (X,))[1],
    "vmap of jvp of grad": lambda f: func.vmap(lambda x: func.jvp(func.grad(f), (x,), (x,))[1])(X),
}


@pytest.mark.gradiron
@pytest.mark.parametrize("nesting", NESTINGS.values(), ids=NESTINGS)
@pytest.mark.parametrize(("checkpointed", "direct"), PAIRS, ids=["one", "nested", "sequential"])
def test_transforms(nesting, checkpointed, direct):
    assert_values(nesting(checkpointed), nesting(direct), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("checkpointed", "direct"), PAIRS, ids=["one", "nested", "sequential"])
def test_values_of_samples_and_tangents(checkpointed, direct):
    assert_values(func.vmap(checkpointed)(X), func.vmap(direct)(X))
    assert_values(func.jvp(checkpointed, (X,), (X,))[1], func.jvp(direct, (X,), (X,))[1])
    both = [func.vmap(lambda x, f=f: func.jvp(f, (x,), (x,))[1])(X) for f in (checkpointed, direct)]
    assert_values(*both)


@pytest.mark.gradiron
def test_a_backward_after_the_vmap():
    found = []
    for f in (kept, plain):
        x = X.clone().requires_grad_()
        func.vmap(f)(x).sum().backward()
        found.append(x.grad)
    assert_values(*found)


@pytest.mark.gradiron
@pytest.mark.parametrize("captured", [False, True])
def test_samples_beside_a_shared_parameter(captured):
    weight = T.tensor([0.3, 0.5], dtype=T.float64)

    def gradient(f):
        return func.vmap(lambda x, w: func.grad(lambda w: f(x, w))(w), in_dims=(0, None))(X, weight)

    def run(x, w):
        if captured:
            return checkpoint.checkpoint(lambda w: plain(x * w), w, use_reentrant=False)
        return checkpoint.checkpoint(lambda x, w: plain(x * w), x, w, use_reentrant=False)

    assert_values(gradient(run), gradient(lambda x, w: plain(x * w)))


@pytest.mark.gradiron
@pytest.mark.parametrize("randomness", ["same", "different"])
def test_random_numbers_are_drawn_again(randomness):
    def drop(x):
        return (T.nn.functional.dropout(x, 0.5) * x).sum()

    found = []
    for f in (drop, lambda x: checkpoint.checkpoint(drop, x, use_reentrant=False)):
        T.manual_seed(5)
        found.append(func.vmap(func.grad(f), randomness=randomness)(X))
    assert_values(*found)


@pytest.mark.gradiron
def test_random_numbers_of_a_batch_of_backwards():
    """The recomputation draws as the forward did, not as the vmap over the gradients would."""
    x = X[0].clone().requires_grad_()
    y = checkpoint.checkpoint(lambda x: T.nn.functional.dropout(x * x, 0.5), x, use_reentrant=False)
    (found,) = T.autograd.grad(y, x, T.eye(2, dtype=T.float64), is_grads_batched=True)
    assert_values(found, T.diag(y.detach() / x.detach() * 2))


def test_forward_over_reverse():
    x = X[0].clone().requires_grad_()
    found = []
    with fw.dual_level():
        for f in (kept, plain):
            dual = fw.make_dual(x, T.tensor([1.0, 2.0], dtype=T.float64))
            (gradient,) = T.autograd.grad(f(dual), dual, create_graph=True)
            found.append(fw.unpack_dual(gradient).tangent.detach())
    assert_values(*found)


def test_reverse_over_forward():
    x, found = X[0].clone().requires_grad_(), []
    with fw.dual_level():
        for f in (kept, plain):
            dual = fw.make_dual(x, T.tensor([1.0, 2.0], dtype=T.float64))
            (gradient,) = T.autograd.grad(fw.unpack_dual(f(dual)).tangent, x)
            found.append(gradient)
    assert_values(*found)
