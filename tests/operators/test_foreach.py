"""`_foreach_*`: one operator over a list of tensors, out of place and in place, with PyTorch's refusals."""

import pytest

from library import T


def lists():
    return [T.tensor([1.0, 2.0]), T.tensor([[3.0]])], [T.tensor([4.0, 5.0]), T.tensor([[6.0]])]


def values(tensors):
    return [x.tolist() for x in tensors]


def test_one_argument():
    a, _ = lists()
    found = T._foreach_exp(a)
    assert isinstance(found, tuple)
    for x, y in zip(a, found, strict=True):
        assert T.equal(x.exp(), y)
    assert T._foreach_neg_(a) is a
    assert values(a) == [[-1.0, -2.0], [[-3.0]]]
    T._foreach_zero_(a)
    assert values(a) == [[0.0, 0.0], [[0.0]]]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum", "clamp_min", "clamp_max", "pow"])
def test_beside_a_list_a_number_and_numbers(name):
    function, inplace = getattr(T, f"_foreach_{name}"), getattr(T, f"_foreach_{name}_")
    single = {"maximum": T.clamp, "minimum": T.clamp}.get(name, getattr(T, name))
    bound = {"maximum": "min", "minimum": "max"}.get(name)

    def one(x, y):
        return single(x, **{bound: y}) if bound else single(x, y)

    a, b = lists()
    expected = [one(x, y) for x, y in zip(a, b, strict=True)]
    assert values(function(a, b)) == values(expected)
    assert values(function(a, 2.5)) == values([one(x, 2.5) for x in a])
    assert values(function(a, [2.0, 0.5])) == values([one(a[0], 2.0), one(a[1], 0.5)])
    assert inplace(a, b) is a
    assert values(a) == values(expected)


def test_scaled_and_by_a_tensor():
    a, b = lists()
    assert values(T._foreach_add(a, b, alpha=2)) == [[9.0, 12.0], [[15.0]]]
    assert values(T._foreach_sub(a, b, alpha=2)) == [[-7.0, -8.0], [[-9.0]]]
    assert values(T._foreach_mul(a, T.tensor(2.0))) == [[2.0, 4.0], [[6.0]]]
    assert values(T._foreach_add(a, T.tensor(2.0), alpha=3)) == [[7.0, 8.0], [[9.0]]]
    assert values(T._foreach_pow(2, a)) == [[2.0, 4.0], [[8.0]]]


def test_products_lerp_norm_and_copies():
    a, b = lists()
    assert values(T._foreach_addcmul(a, b, b, value=2)) == [[33.0, 52.0], [[75.0]]]
    assert values(T._foreach_addcmul(a, b, b, [2, 3])) == [[33.0, 52.0], [[111.0]]]
    assert values(T._foreach_addcmul(a, b, b, T.tensor([2.0, 3.0]))) == [[33.0, 52.0], [[111.0]]]
    assert values(T._foreach_addcdiv(a, b, b, 0.5)) == [[1.5, 2.5], [[3.5]]]
    assert values(T._foreach_lerp(a, b, 0.5)) == [[2.5, 3.5], [[4.5]]]
    assert values(T._foreach_lerp(a, b, [0.5, 0.25])) == [[2.5, 3.5], [[3.75]]]
    assert values(T._foreach_lerp(a, b, weights=b)) == [[13.0, 17.0], [[21.0]]]
    assert values(T._foreach_norm(b, 1)) == [9.0, 6.0]
    assert T._foreach_norm(b, dtype=T.float64)[0].dtype == T.float64
    assert values(T._foreach_powsum(a)) == [5.0, 9.0]
    assert values(T._foreach_max(b)) == [5.0, 6.0]
    assert values(T._foreach_mm([T.ones(2, 2)], [T.ones(2, 2)])) == [[[2.0, 2.0], [2.0, 2.0]]]
    clones = T._foreach_clone(a)
    assert T._foreach_copy_(a, b) is a
    assert values(a) == values(b) != values(clones)


def test_gradients_flow():
    x = T.tensor([1.0, 2.0], requires_grad=True)
    (y,) = T._foreach_mul([x], [x.detach()])
    (z,) = T._foreach_addcdiv([y], [x], [T.ones(2)], value=3)
    z.sum().backward()
    assert x.grad.tolist() == [4.0, 5.0]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda a, b: T._foreach_add(a, b[:1]), RuntimeError, "Tensor lists must have the same number of tensors, got 2 and 1"),
        (lambda a, b: T._foreach_add(a, [1.0]), RuntimeError, "Tensor list must have same number of elements as scalar list."),
        (lambda a, b: T._foreach_add([], 1), RuntimeError, "Tensor list must have at least one tensor."),
        (lambda a, b: T._foreach_sqrt([]), RuntimeError, "Tensor list must have at least one tensor."),
        (
            lambda a, b: T._foreach_sqrt(a[0]),
            TypeError,
            "_foreach_sqrt(): argument 'self' (position 1) must be tuple of Tensors, not Tensor",
        ),
        (lambda a, b: T._foreach_add([1, 2], 1), TypeError, "expected Tensor as element 0 in argument 0, but got int"),
        (lambda a, b: T._foreach_add(a, [a[0], 1]), TypeError, "expected Tensor as element 1 in argument 1, but got int"),
        (
            lambda a, b: T._foreach_add(a, 1, alpha=2),
            TypeError,
            "_foreach_add() received an invalid combination of arguments - got (list, int, alpha=int), but expected one of:",
        ),
        (
            lambda a, b: T._foreach_mul(a, T.tensor([2.0])),
            RuntimeError,
            "scalar tensor expected to be 0 dim but it has 1 dimensions and 1 elements.",
        ),
        (
            lambda a, b: T._foreach_addcmul(a, b, b, T.tensor([2.0])),
            RuntimeError,
            "Expected length of scalars to match input of length 2 but got 1 instead.",
        ),
        (
            lambda a, b: T._foreach_addcmul(a, b, b, T.ones(1, 2)),
            RuntimeError,
            "Expected packed scalar Tensor to be of dimension 1. Got 2 instead.",
        ),
        (
            lambda a, b: T._foreach_lerp(a, b[:1], 0.5),
            RuntimeError,
            "Tensor lists must have the same number of tensors, got 2 and 1",
        ),
        (
            lambda a, b: T._foreach_norm(a, "x"),
            TypeError,
            "_foreach_norm(): argument 'ord' (position 2) must be Number, not str",
        ),
        (
            lambda a, b: T._foreach_mm(a, a[:1]),
            RuntimeError,
            "_foreach_mm: self and mat2 must have the same number of tensors",
        ),
        (
            lambda a, b: T._foreach_max([T.ones(0)]),
            RuntimeError,
            "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is undefined.",
        ),
        (
            lambda a, b: T._foreach_add_([T.ones(2, requires_grad=True)], 1),
            RuntimeError,
            "a leaf Variable that requires grad is being used in an in-place operation.",
        ),
    ],
)
def test_refusals(call, kind, message):
    a, b = lists()
    with pytest.raises(kind) as caught:
        call(a, b)
    assert str(caught.value).partition("\n")[0] == message
    assert values(a) == [[1.0, 2.0], [[3.0]]]
