"""What transforms put around tensors: how it prints, what it hides, how it is taken off."""

import pytest

from library import T, assert_values

func = T.func
X = T.tensor([1.0, 2.0, -3.0])
MANY = T.tensor([[1.0, 2.0], [3.0, 4.0]])


def printed(transform):
    """What a function prints that `transform` runs."""
    seen = []
    transform(lambda t: (seen.append(repr(t)), t)[1])
    return seen[0]


def tracked(level, value):
    return f"GradTrackingTensor(lvl={level}, value=\n{indented(value)}\n)"


def batched(level, value):
    return f"BatchedTensor(lvl={level}, bdim=0, value=\n{indented(value)}\n)"


def indented(text):
    return "\n".join("    " + line if line else line for line in text.split("\n"))


VECTOR = "tensor([ 1.,  2., -3.])"
MATRIX = "tensor([[1., 2.],\n        [3., 4.]])"
FORMS = {
    "grad": (lambda log: func.grad(lambda t: log(t).sum())(X), tracked(1, VECTOR)),
    "result": (lambda log: func.grad(lambda t: log(t * 2).sum())(X), tracked(1, "tensor([ 2.,  4., -6.])")),
    "made inside": (lambda log: func.grad(lambda t: log(T.zeros(2)).sum() + t.sum())(X), tracked(1, "tensor([0., 0.])")),
    "detached": (lambda log: func.grad(lambda t: log(t.detach()).sum() + t.sum())(X), tracked(1, VECTOR)),
    "truths": (lambda log: func.grad(lambda t: (log(t > 0) * t).sum())(X), tracked(1, "tensor([ True,  True, False])")),
    "vjp": (lambda log: func.vjp(log, X), tracked(1, VECTOR)),
    "jvp": (lambda log: func.jvp(log, (X,), (X,)), tracked(1, VECTOR)),
    "jvp's result": (lambda log: func.jvp(lambda t: log(t * 2), (X,), (X,)), tracked(1, "tensor([ 2.,  4., -6.])")),
    "jacrev": (lambda log: func.jacrev(log)(X), tracked(1, VECTOR)),
    "jacfwd": (lambda log: func.jacfwd(log)(X), tracked(2, VECTOR)),
    "hessian": (lambda log: func.hessian(lambda t: log(t).sum())(X), tracked(3, tracked(2, VECTOR))),
    "two": (lambda log: func.grad(lambda t: func.grad(lambda t: log(t).sum())(t).sum())(X), tracked(2, tracked(1, VECTOR))),
    "vmap": (lambda log: func.vmap(log)(MANY), batched(1, MATRIX)),
    "vmap of vmap": (lambda log: func.vmap(func.vmap(log))(MANY), batched(2, batched(1, MATRIX))),
    "vmap of grad": (lambda log: func.vmap(func.grad(lambda t: log(t).sum()))(MANY), tracked(2, batched(1, MATRIX))),
    "grad of vmap": (lambda log: func.grad(lambda t: func.vmap(log)(t).sum())(MANY), batched(2, tracked(1, MATRIX))),
    "vmap of jvp": (lambda log: func.vmap(lambda t: func.jvp(log, (t,), (t,)))(MANY), tracked(2, batched(1, MATRIX))),
    "vmap of jacrev": (lambda log: func.vmap(func.jacrev(log))(MANY), tracked(2, batched(1, MATRIX))),
    "made in vmap": (lambda log: func.vmap(lambda t: log(T.zeros(2)) + t)(MANY), "tensor([0., 0.])"),
    "captured": (lambda log: func.vmap(lambda t: log(X).sum() + t)(MANY), VECTOR),
    "planes": (
        lambda log: func.vmap(lambda t: log(t * 2), in_dims=0)(T.ones(2, 1, 2)),
        batched(1, "tensor([[[2., 2.]],\n\n        [[2., 2.]]])"),
    ),
}


@pytest.mark.parametrize(("transform", "text"), FORMS.values(), ids=FORMS)
def test_printed_forms(transform, text):
    assert printed(transform) == text


def test_captured_tensors_print_as_they_are():
    assert printed(lambda log: func.grad(lambda t: (log(X) * t).sum())(X * 1)) == VECTOR


def test_layers_are_taken_off():
    seen = []

    def f(t):
        inner, whole = func.debug_unwrap(t, recurse=False), func.debug_unwrap(t)
        seen.append((repr(inner), repr(whole), tuple(inner.shape), tuple(whole.shape)))
        return t

    func.vmap(func.vmap(f))(MANY)
    func.vmap(func.grad(lambda t: f(t).sum()))(MANY)
    func.grad(lambda t: func.vmap(f)(t).sum())(MANY)
    assert [s[1:] for s in seen] == [(MATRIX, (2,), (2, 2)), (MATRIX, (2,), (2, 2)), (MATRIX, (2, 2), (2, 2))]
    assert func.debug_unwrap(X) is X


def test_unwrapped_values_are_constants():
    assert_values(func.grad(lambda t: (t * func.debug_unwrap(t)).sum())(X), X)
    assert_values(func.jvp(lambda t: t * func.debug_unwrap(t), (X,), (T.ones(3),))[1], X)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: func.grad(lambda t: (f(t), t.sum())[1])(X),
        lambda f: func.jvp(lambda t: (f(t), t)[1], (X,), (X,)),
        lambda f: func.vmap(lambda t: (f(t), t)[1])(MANY),
    ],
)
def test_there_is_no_memory_to_point_at(transform):
    with pytest.raises(RuntimeError, match="Cannot access data pointer of Tensor"):
        transform(lambda t: t.data_ptr())
    with pytest.raises(NotImplementedError, match="Cannot access storage of"):
        transform(lambda t: t.untyped_storage())


def test_values_may_be_read():
    seen = []
    func.grad(lambda t: (seen.append(t.tolist()), t.sum())[1])(X)
    func.jvp(lambda t: (seen.append(t.tolist()), t.sum())[1], (X,), (X,))
    assert seen == [[1.0, 2.0, -3.0]] * 2
    with pytest.raises(RuntimeError):
        func.vmap(lambda t: t.tolist())(MANY)


def test_samples_that_escape():
    kept = []
    func.vmap(lambda t: (kept.append(t), t)[1])(MANY)
    with pytest.raises(RuntimeError, match="^Either your tensor may have escaped from inside a function being vmapped"):
        kept[0] * 2
    with pytest.raises(RuntimeError, match="escaped"):
        func.vmap(lambda t: t * kept[0])(MANY) if T.__name__ == "gradiron" else kept[0].sin()


def test_retain_grad_is_refused():
    for f in (lambda t: t.retain_grad(), lambda t: (t * 2).retain_grad()):
        with pytest.raises(RuntimeError, match="attempting to call Tensor.retain_grad\\(\\)"):
            func.grad(lambda t: (f(t), t.sum())[1])(X)


@pytest.mark.parametrize("name", ["jacobian", "hessian", "vjp", "jvp", "vhp", "hvp"])
def test_functional_is_refused(name):
    call = getattr(T.autograd.functional, name)
    more = () if name in ("jacobian", "hessian") else (T.ones(()),) if name == "vjp" else (X,)

    def f(t):
        call(lambda u: (u * u).sum(), t, *more)
        return t.sum()

    for transform in (func.grad(f), func.vmap(f)):
        with pytest.raises(RuntimeError, match="attempting to call Tensor.requires_grad_\\(\\) \\(or perhaps using"):
            transform(T.ones(2, 3))


def test_samples_have_no_history_of_their_own():
    weight = T.ones(2, requires_grad=True)
    for of in (lambda t: (t * weight).sum(), lambda t: t.sum()):
        with pytest.raises(RuntimeError, match="^element 0 of tensors does not require grad and does not have a grad_fn"):
            func.vmap(lambda t: T.autograd.grad(of(t), weight))(MANY)
    # What all samples share has one.
    assert_values(func.vmap(lambda t: t * T.autograd.grad((weight * weight).sum(), weight)[0])(MANY), MANY * 2)
    # A transform inside of the vmap sees through to what was made in it.
    found = func.vmap(func.grad(lambda t: T.autograd.grad((t**3).sum(), t, create_graph=True)[0].sum()))(MANY)
    assert_values(found, 6 * MANY)
