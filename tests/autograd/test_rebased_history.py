"""What a tensor's history, hooks and kept gradient become when the tensor or its base is rewritten, or gets other data."""

import pytest

from library import T


def leaf(*values):
    return T.tensor(values or (1.0, 2.0), dtype=T.float64, requires_grad=True)


def test_view_keeps_its_gradient_after_its_base_was_written():
    base = leaf() * 2
    view = base.view(2, 1)
    view.retain_grad()
    base.mul_(3)
    view.sum().backward()
    assert view.retains_grad
    assert view.grad.tolist() == [[1.0], [1.0]]


def test_view_written_in_place_keeps_the_gradient_of_its_new_history():
    base = leaf() * 2
    view = base.view(2, 1)
    view.retain_grad()
    view.abs_()
    base.sum().backward(retain_graph=True)
    assert view.grad is None
    view.sum().backward()
    assert view.grad.tolist() == [[1.0], [1.0]]


def test_kept_gradient_moves_with_inputs():
    x = leaf()
    view = x.unfold(0, 1, 1)
    view.sum().backward(inputs=[view])
    with T.no_grad():
        view.sub_(0.5)
    view.backward(T.tensor([[0.5], [2.0]], dtype=T.float64), inputs=[view])
    assert view.grad.tolist() == [[1.5], [3.0]]
    assert x.grad is None


@pytest.mark.parametrize("parts", ["unbind", "split"])
def test_function_refuses_stale_parts(parts):
    class Twice(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    base = leaf() * 1
    part = (base.unbind(0) if parts == "unbind" else base.split(1))[1]
    base.mul_(2)
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
        Twice.apply(part)
    with T.no_grad():
        assert Twice.apply(part).tolist() in (8.0, [8.0])


def test_data_leaves_the_leaf_in_the_graph():
    x = leaf()
    y = x * 3
    before = y.grad_fn.next_functions[0][0]
    x.data = T.tensor([5.0, 6.0], dtype=T.float64)
    assert (x * 1).grad_fn.next_functions[0][0] is before
    assert T.autograd.grad(y.sum(), x)[0].tolist() == [3.0, 3.0]
    assert before.variable is x


def test_data_of_another_dtype_takes_gradients_of_its_own():
    x = leaf()
    y = x * 3
    x.data = T.tensor([5.0, 6.0], dtype=T.float32)
    (x * 2).sum().backward()
    assert x.grad.dtype == T.float32
    assert y.grad_fn is not None


@pytest.mark.parametrize("name", ["floor", "ceil", "round", "trunc", "sign"])
def test_steps_have_a_gradient_that_nothing_leads_to(name):
    x = leaf(-1.5, 0.0, 2.25)
    (g,) = T.autograd.grad(getattr(x, name)().sum(), x, create_graph=True)
    assert g.tolist() == [0.0, 0.0, 0.0]
    assert g.dtype == T.float64
    assert not g.requires_grad


@pytest.mark.parametrize("name", ["floor", "sign"])
def test_steps_pass_nothing_on_even_of_nan(name):
    x = leaf(1.5, 2.0)
    (g,) = T.autograd.grad(getattr(x, name)(), x, T.tensor([float("nan"), float("inf")], dtype=T.float64))
    assert g.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("slope", [0.01, -0.5, 0.0])
def test_leaky_relu_leads_to_its_input_twice(slope):
    x = leaf(-2.0, 0.0, 3.0)
    (g,) = T.autograd.grad(T.nn.functional.leaky_relu(x, slope).sum(), x, create_graph=True)
    assert g.requires_grad
    assert g.tolist() == [slope, slope, 1.0]
    assert T.autograd.grad(g.sum(), x)[0].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("name", ["max", "min", "sort", "median", "cummax"])
def test_indices_take_no_gradient(name):
    x, seen = leaf(2.0, 1.0, 3.0), []
    values = getattr(x, name)(0)[0]
    values.grad_fn.register_prehook(lambda grads: seen.append(len(grads)))
    values.sum().backward()
    assert seen == [1]


@pytest.mark.parametrize("how", ["detach_", "requires_grad_"])
def test_post_accumulate_hook_runs_for_a_leaf_that_wants_none_any_more(how):
    x, seen = leaf(), []
    y = x * 2
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad))
    x.detach_() if how == "detach_" else x.requires_grad_(False)
    y.sum().backward()
    assert seen == [None]
