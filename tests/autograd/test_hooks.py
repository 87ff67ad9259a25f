"""Hooks on tensors, on accumulation and on nodes."""

import copy
import gc
import pickle
import weakref

import pytest

from library import T, assert_values, leaf


def test_a_hook_sees_the_gradient(device):
    seen = []
    x = leaf([1.0, 2.0], device)
    y = x * 2
    y.register_hook(seen.append)
    (y * y).sum().backward()
    (g,) = seen
    assert_values(g, [4.0, 8.0])
    assert g.device == x.device


def test_a_hook_may_replace_the_gradient(device):
    x = leaf([1.0, 2.0], device)
    y = x * 2
    y.register_hook(lambda g: -g)
    y.sum().backward()
    assert_values(x.grad, [-2.0, -2.0])


def test_a_hook_that_returns_none_changes_nothing():
    x = leaf([1.0])
    x.register_hook(lambda g: None)
    (x * 3).backward()
    assert_values(x.grad, [3.0])


def test_hooks_run_in_order_and_chain():
    x = leaf([1.0])
    order = []
    x.register_hook(lambda g: order.append(("a", g.item())) or g + 1)
    x.register_hook(lambda g: order.append(("b", g.item())) or g * 10)
    (x * 2).backward()
    assert order == [("a", 2.0), ("b", 3.0)]
    assert_values(x.grad, [30.0])


def test_a_handle_removes_its_hook():
    x = leaf([1.0])
    handle = x.register_hook(lambda g: g * 100)
    keep = x.register_hook(lambda g: g + 1)
    handle.remove()
    handle.remove()
    (x * 2).backward()
    assert_values(x.grad, [3.0])
    keep.remove()
    (x * 2).backward()
    assert_values(x.grad, [5.0])


def test_a_handle_is_a_context_manager():
    x = leaf([1.0])
    with x.register_hook(lambda g: g * 100):
        (x * 2).backward()
    (x * 2).backward()
    assert_values(x.grad, [202.0])


def test_a_leaf_hook_sees_the_sum_once():
    seen = []
    x = leaf([1.0])
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 2 + x * 3).backward()
    assert seen == [5.0]


def test_a_hook_runs_before_retain_grad_stores():
    x = leaf([1.0])
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    (y * 3).backward()
    assert_values(y.grad, [30.0])
    assert_values(x.grad, [60.0])


def test_a_hook_runs_for_autograd_grad():
    x = leaf([1.0])
    x.register_hook(lambda g: g * 7)
    (g,) = T.autograd.grad(x * 2, x)
    assert_values(g, [14.0])


def test_a_hook_under_create_graph_is_differentiated():
    x = leaf([3.0])
    y = x * x
    y.register_hook(lambda g: g * g)
    (g,) = T.autograd.grad((y * 2).sum(), x, create_graph=True)
    assert_values(g, [4 * 6.0])
    (h,) = T.autograd.grad(g, x)
    assert_values(h, [8.0])


def test_hooks_print_in_the_order_of_backward(capsys):
    w = leaf(2.0)
    a = T.ones(2, 2) * w
    b = (a + 3) * (a * 4)
    loss = b.mean()
    for name, t in [("a", a), ("b", b), ("loss", loss)]:
        t.register_hook(lambda g, name=name: print(name, g))
    loss.backward()
    assert capsys.readouterr().out == (
        "loss tensor(1.)\nb tensor([[0.2500, 0.2500],\n        [0.2500, 0.2500]])\na tensor([[7., 7.],\n        [7., 7.]])\n"
    )


@pytest.mark.parametrize(
    "hook, kind, message",
    [
        (lambda g: "no", TypeError, "expected Variable, but hook returned 'str'"),
        (lambda g: g.reshape(1, 2), RuntimeError, "has changed the size of value"),
        (lambda g: g.double(), RuntimeError, "has changed the type of value"),
        (lambda g: [][1], IndexError, "list index out of range"),
    ],
)
def test_a_bad_hook_raises_and_accumulates_nothing(hook, kind, message):
    x = leaf([1.0, 2.0])
    x.register_hook(hook)
    with pytest.raises(kind, match=message):
        (x * 2).sum().backward()
    assert x.grad is None


def test_hooks_need_a_tensor_that_requires_grad():
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        T.ones(1).register_hook(print)


def test_a_hook_follows_the_tensor_through_an_in_place_write():
    seen = []
    x = leaf([1.0, 2.0])
    y = x * 2
    y.register_hook(lambda g: seen.append(("before", g.tolist())))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("after", g.tolist())))
    y.sum().backward()
    assert seen == [("after", [1.0, 1.0]), ("before", [3.0, 3.0])]


def test_hooks_of_a_view_and_of_its_base():
    seen = []
    x = leaf([1.0, 2.0])
    y = x * 2
    v = y[0]
    v.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: seen.append(g.tolist()))
    (v * 5).backward()
    assert seen == [5.0, [5.0, 0.0]]


def test_post_accumulate_grad_hook():
    seen = []
    x = leaf([1.0])
    handle = x.register_post_accumulate_grad_hook(lambda p: seen.append((p is x, p.grad.item())))
    (x * 2).backward()
    (x * 2).backward()
    assert seen == [(True, 2.0), (True, 4.0)]
    handle.remove()
    (x * 2).backward()
    assert len(seen) == 2


def test_post_accumulate_grad_hook_may_step_and_clear():
    x = leaf([1.0])

    def step(p):
        with T.no_grad():
            p -= 0.5 * p.grad
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).backward()
    assert x.grad is None
    assert_values(x, [0.0])
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(step)


def test_node_hooks():
    x = leaf([1.0])
    y = x * 2
    seen = []
    handle = y.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs[0].item(), outputs[0].item())))
    (y * 3).backward(retain_graph=True)
    assert seen == [(6.0, 3.0)]
    handle.remove()


def test_node_prehooks_may_replace_gradients():
    x = leaf([1.0])
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    (y * 3).backward()
    assert_values(x.grad, [60.0])


def test_node_posthooks_may_replace_gradients():
    x = leaf([1.0])
    y = x * 2
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + 100,) + tuple(inputs[1:]))
    y.backward()
    assert_values(x.grad, [102.0])


def test_a_hook_may_run_another_backward():
    x, w = leaf([2.0]), leaf([3.0])

    def inner(g):
        with T.enable_grad():
            (w * w).backward()

    y = x * 2
    y.register_hook(inner)
    y.backward()
    assert_values(w.grad, [6.0])
    assert_values(x.grad, [2.0])


def test_a_hook_lives_as_long_as_the_graph():
    class Owner:
        def __call__(self, g):
            return g * 2

    owner = Owner()
    ghost = weakref.ref(owner)
    x = leaf([1.0])
    y = x * 3
    y.register_hook(owner)
    z = y.sum()
    del owner, y
    gc.collect()
    assert ghost() is not None
    z.backward()
    assert_values(x.grad, [6.0])
    del z
    gc.collect()
    assert ghost() is None


def test_a_hook_is_not_called_for_gradients_that_do_not_come():
    seen = []
    x = leaf([1.0])
    y = x * 2
    y.register_hook(seen.append)
    (x * 3).backward()
    assert seen == []


@pytest.mark.parametrize("register", ["register_hook", "register_post_accumulate_grad_hook"])
def test_a_hooked_leaf_shows_other_data(register):
    seen = []
    x = leaf([1.0, 1.0])
    getattr(x, register)(lambda t: seen.append(tuple(t.shape)))
    x.data = T.ones(3, dtype=T.float64)
    (x * 3).sum().backward()
    assert seen == [(3,)] and x.grad.dtype == T.float64 and x.grad.tolist() == [3.0, 3.0, 3.0]


class Holder:
    pass


def double(g):
    return g * 2


def test_what_holds_a_handle_is_copied():
    holder = Holder()
    holder.x = leaf([1.0])
    holder.handle = holder.x.register_hook(double)
    copied = copy.deepcopy(holder)
    assert type(copied.handle) is type(holder.handle) and copied.handle.id == holder.handle.id
    copied.handle.remove()
    pickle.loads(pickle.dumps(holder.handle)).remove()
    (holder.x * 1 + copied.x * 1).backward()
    assert holder.x.grad.tolist() == [2.0] and copied.x.grad.tolist() == [1.0]
    copy.copy(holder.handle).remove()
    (holder.x * 1).backward()
    assert holder.x.grad.tolist() == [3.0]
