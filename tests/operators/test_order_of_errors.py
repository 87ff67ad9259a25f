"""Which error comes first: what an operator saves is saved before it runs, so hooks see it, and may refuse it, first."""

import pytest

from library import T, leaf

hooks = T.autograd.graph.saved_tensors_hooks


class No(Exception):
    pass


def no(t):
    raise No


X = leaf([1.0, 2.0, 3.0, 4.0])
FAR, THREE = T.tensor([9]), T.ones(3)

# A call that fails, and the shapes of what it would have saved.
FAILING = {
    "mul": (lambda: X * THREE, [(3,)]),
    "div": (lambda: X / THREE, [(3,)]),
    "maximum": (lambda: T.maximum(X, THREE), [(3,), (4,)]),
    "where": (lambda: T.where(THREE > 0, X, X), [(3,)]),
    "mul_": (lambda: X.clone().mul_(THREE), [(3,)]),
    "matmul": (lambda: X[None] @ X[None], [(1, 4), (1, 4)]),
    "index": (lambda: X[FAR], [(1,)]),
    "index_select": (lambda: X.index_select(0, FAR), [(1,)]),
    "index_put": (lambda: X.index_put((FAR,), X[0]), [(1,)]),
    "gather": (lambda: X.gather(0, FAR), [(1,), (4,)]),
    "take": (lambda: X.take(FAR), [(1,), (4,)]),
    "cumprod": (lambda: X.cumprod(4), [(4,)]),
    "cummax": (lambda: X.cummax(4), [(4,)]),
    "prod": (lambda: X.prod(4), [(4,)]),
    "var": (lambda: X.var(4), [(4,)]),
    "softmax": (lambda: X.softmax(4), []),
    "sum": (lambda: X.sum(4), []),
    "max": (lambda: X.max(4), []),
    "reshape": (lambda: X.reshape(3), []),
}


@pytest.mark.parametrize("name", FAILING)
def test_hooks_see_what_a_failing_operator_would_have_saved(name):
    call, shapes = FAILING[name]
    seen = []
    with hooks(lambda t: seen.append(tuple(t.shape)), lambda t: t), pytest.raises((RuntimeError, IndexError)):
        call()
    assert sorted(seen) == sorted(shapes)
    # Where something is saved, a hook's own error comes first.
    with hooks(no, lambda t: t), pytest.raises(No if shapes else (RuntimeError, IndexError)):
        call()
    with T.no_grad(), hooks(no, lambda t: t), pytest.raises((RuntimeError, IndexError)):
        call()


def test_a_tensor_of_inference_mode_is_refused_before_its_shape():
    with T.inference_mode():
        a = T.ones(3)
    for call in (lambda: X * a, lambda: X[None] @ a[None]):
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
            call()
    with pytest.raises(RuntimeError, match="must match the size"):
        _ = X + a


def test_hooks_of_argsort_see_the_indices():
    seen = []
    x = leaf([3.0, 1.0, 2.0])
    with hooks(lambda t: seen.append(t.tolist()), lambda t: t):
        assert x.argsort().tolist() == [1, 2, 0]
        assert not x.argsort().requires_grad
        x.detach().argsort()
    assert seen == [[1, 2, 0], [1, 2, 0]]


def test_masked_select_saves_what_it_was_given():
    seen = []
    x = leaf([[1.0], [2.0]])
    row, number = T.tensor([True, False, True]), leaf(2.0)
    with hooks(lambda t: (seen.append(tuple(t.shape)), t)[1], lambda t: t):
        y = x.masked_select(row)
        z = number.masked_select(number > 0)
    assert sorted(seen) == [(), (), (2, 1), (3,)]
    (y.sum() + z.sum()).backward()
    assert y.tolist() == [1.0, 1.0, 2.0, 2.0] and z.tolist() == [2.0]
    assert x.grad.tolist() == [[2.0], [2.0]] and number.grad.item() == 1.0


@pytest.mark.parametrize("name", ("atan2_", "hypot_", "fmod_", "remainder_", "floor_divide_", "xlogy_", "mul_", "pow_"))
def test_what_cannot_be_cast_comes_before_what_has_no_kernel(name):
    complexes = T.ones(2, dtype=T.complex64)
    for target, message in (
        (T.ones(2), "result type ComplexFloat can't be cast to the desired output type Float"),
        (T.ones(1), r"output with shape \[1\] doesn't match the broadcast shape \[2\]"),
        (T.ones(3), "The size of tensor a"),
    ):
        with pytest.raises(RuntimeError, match=f"^{message}"):
            getattr(target, name)(complexes)
        assert target.tolist() == [1.0] * len(target)
    with pytest.raises(NotImplementedError, match="lt_cpu"):
        T.ones(2).lt_(complexes)
