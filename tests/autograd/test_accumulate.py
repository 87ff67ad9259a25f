"""What becomes of a leaf's gradient: taken over, copied, added in place or not, and how it lies in memory."""

import pytest

from library import T, assert_values, leaf


def test_the_first_gradient_lies_as_its_tensor_does():
    for x in (T.ones(2, 3).t(), T.ones(2, 3, 4).permute(2, 0, 1), T.ones(2, 1, 3).transpose(0, 2), T.ones(4)):
        x = x.detach().requires_grad_()
        (x * 2).sum().backward()
        assert x.grad.stride() == x.stride()
        x.grad = None
        x.backward(T.ones(x.shape))
        assert x.grad.stride() == x.stride()


def test_tensors_with_gaps_or_repeats_get_ordered_gradients():
    for x in (T.ones(3, 8)[:, ::2], T.ones(1).expand(4), T.ones(3, 1).expand(3, 2)):
        x = x.detach().requires_grad_()
        (x * 2).sum().backward()
        assert x.grad.is_contiguous()


def test_with_a_graph_too():
    x = T.ones(2, 3).t().detach().requires_grad_()
    (x * x).sum().backward(create_graph=True)
    assert x.grad.stride() == (1, 3) and x.grad.grad_fn.name() == "torch::autograd::CopyBackwards"
    first = x.grad
    x.grad = None
    first.sum().backward()
    assert_values(x.grad, [[2.0, 2.0]] * 3)


def test_a_gradient_that_somebody_holds_is_copied():
    x, seed = leaf([1.0, 2.0]), T.ones(2)
    x.backward(seed)
    assert x.grad is not seed and x.grad.data_ptr() != seed.data_ptr()
    x.grad = None
    seen = []
    x.register_hook(lambda g: seen.append(g))
    (x * 2).sum().backward()
    assert x.grad is not seen[0] and x.grad.data_ptr() != seen[0].data_ptr()


def test_expanded_gradients_become_dense():
    x = T.zeros(4, requires_grad=True)
    x.sum().backward()
    assert x.grad.stride() == (1,)
    x.grad.mul_(2)
    assert_values(x.grad, [2.0] * 4)


def test_later_gradients_are_added_in_place():
    x = leaf([1.0, 2.0])
    (x * 2).sum().backward()
    first = x.grad
    for n in (1, 2):
        (x * 2).sum().backward()
        assert x.grad is first and first._version == n
    x.grad.zero_()
    (x * 2).sum().backward()
    assert x.grad is first
    assert_values(first, [2.0, 2.0])


def test_but_not_with_a_graph():
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward(create_graph=True)
    assert x.grad is not first and x.grad.requires_grad
    assert_values(first, [2.0, 4.0])
    assert_values(x.grad, [4.0, 8.0])


def test_a_gradient_of_the_users_is_added_to():
    x = leaf([1.0, 2.0])
    mine = x.grad = T.ones(2)
    (x * 2).sum().backward()
    assert x.grad is mine
    assert_values(mine, [3.0, 3.0])


def test_a_leaf_that_stopped_wanting_gradients_gets_none():
    x = leaf([1.0, 2.0])
    y = x * 2
    x.requires_grad_(False)
    y.sum().backward()
    assert x.grad is None


ASSIGNMENTS = {
    "a number": (lambda x: 1, TypeError, "assigned grad expected to be a Tensor or None but got grad of type"),
    "a shape": (
        lambda x: T.ones(3),
        RuntimeError,
        "attempting to assign a gradient of size '.*3.*' to a tensor of size '.*2.*'",
    ),
    "a rank": (lambda x: T.ones(1, 2), RuntimeError, "attempting to assign a gradient of size"),
    "a dtype": (lambda x: T.ones(2, dtype=T.float64), RuntimeError, "attempting to assign a gradient with dtype"),
    "itself": (lambda x: x, RuntimeError, "can't assign Variable as its own grad"),
}


@pytest.mark.parametrize("name", ASSIGNMENTS)
def test_wrong_assignments(name):
    make, error, message = ASSIGNMENTS[name]
    x = leaf([1.0, 2.0])
    with pytest.raises(error, match=message):
        x.grad = make(x)
    assert x.grad is None


def test_retained_gradients_are_copies():
    x = leaf([1.0, 2.0])
    y = x * 2
    y.retain_grad()
    seed = T.ones(2)
    y.backward(seed)
    assert y.grad.data_ptr() != seed.data_ptr() and y.grad.stride() == (1,)
    z = x * 2
    z.retain_grad()
    z.sum().backward()
    assert z.grad.stride() == (1,)


def test_retained_gradients_come_last_and_follow_the_tensor():
    x = leaf([1.0, 2.0])
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert_values(y.grad, [10.0, 10.0])
    z = x * 2
    z.retain_grad()
    z.mul_(3)
    z.sum().backward()
    assert_values(z.grad, [1.0, 1.0])


def test_grad_fills_what_was_asked_to_be_retained():
    x = leaf([1.0, 2.0])
    y = x * 2
    y.retain_grad()
    T.autograd.grad((y * 3).sum(), x)
    assert_values(y.grad, [3.0, 3.0])
    assert x.grad is None


def test_a_factor_counts_as_saved():
    for f in (lambda x: x * 2, lambda x: x / 2, lambda x: x**3, lambda x: x * x):
        for x in (leaf(2.0), leaf([1.0, 2.0])):
            y = f(x).sum()
            y.backward()
            with pytest.raises(RuntimeError, match="backward through the graph a second time"):
                y.backward()
    for f in (lambda x: x + 2, lambda x: x - x, lambda x: -x, lambda x: x.view(-1)):
        y = f(leaf([1.0, 2.0])).sum()
        y.backward()
        y.backward()
