"""Hooks in all their places: order, what they may return, what takes them off."""

import functools
import gc
import weakref

import pytest

from library import T, assert_values, leaf


def test_the_order_of_all_kinds():
    x = leaf([1.0, 2.0])
    y = x * 2
    order = []

    def note(name):
        return lambda *_: order.append(name)

    y.grad_fn.register_hook(note("after"))
    y.register_hook(note("first"))
    y.grad_fn.register_prehook(note("before"))
    y.register_hook(note("second"))
    x.register_hook(note("leaf"))
    x.register_post_accumulate_grad_hook(note("accumulated"))
    y.sum().backward()
    assert order == ["first", "second", "before", "after", "leaf", "accumulated"]


def test_the_leafs_own_node_has_hooks():
    x = leaf([1.0, 2.0])
    y = x * x
    node = y.grad_fn.next_functions[0][0]
    seen = []
    node.register_prehook(lambda outputs: seen.append(("before", outputs[0].tolist(), x.grad)))
    node.register_prehook(lambda outputs: (outputs[0] * 5,))
    x.register_hook(lambda g: seen.append(("tensor", g.tolist())))
    node.register_hook(lambda inputs, outputs: seen.append(("after", inputs, outputs[0].tolist())))
    y.sum().backward()
    assert seen == [("tensor", [2.0, 4.0]), ("before", [2.0, 4.0], None), ("after", (), [10.0, 20.0])]
    assert_values(x.grad, [10.0, 20.0])


def test_node_hooks_may_replace():
    x = leaf([1.0, 2.0])
    y = x * x
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 2, None))
    y.sum().backward()
    assert_values(x.grad, [2.0, 4.0])
    x.grad = None
    y = x * x
    y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 3,))
    y.grad_fn.register_prehook(lambda outputs: None)
    y.sum().backward()
    assert_values(x.grad, [6.0, 12.0])


def named(g):
    return T.ones(3)


class Callable:
    def __call__(self, g):
        return T.ones(3)

    def method(self, g):
        return T.ones(3)


WRONG_TENSOR_HOOKS = {
    "number": (lambda g: 1, TypeError, "expected Variable, but hook returned 'int'"),
    "tuple": (lambda g: (g,), TypeError, "expected Variable, but hook returned 'tuple'"),
    "string": (lambda g: "a", TypeError, "expected Variable, but hook returned 'str'"),
    "shape": (named, RuntimeError, "hook 'named' has changed the size of value"),
    "rank": (lambda g: g[None], RuntimeError, "hook '<lambda>' has changed the size of value"),
    "dtype": (
        lambda g: g.double(),
        RuntimeError,
        r"hook '<lambda>' has changed the type of value \(was .*FloatTensor got .*DoubleTensor\)",
    ),
    "partial": (functools.partial(lambda a, g: T.ones(3), 1), RuntimeError, "hook '<unknown>' has changed the size of value"),
    "object": (Callable(), RuntimeError, "hook '<unknown>' has changed the size of value"),
    "method": (Callable().method, RuntimeError, "hook 'method' has changed the size of value"),
}


@pytest.mark.parametrize("kind", ["leaf", "result"])
@pytest.mark.parametrize("name", WRONG_TENSOR_HOOKS)
def test_what_a_tensor_hook_may_not_return(name, kind):
    hook, error, message = WRONG_TENSOR_HOOKS[name]
    x = leaf([1.0, 2.0])
    y = x * 2
    (x if kind == "leaf" else y).register_hook(hook)
    with pytest.raises(error, match=message):
        y.sum().backward()
    assert x.grad is None


WRONG_NODE_HOOKS = {
    "few": (
        lambda i, o: (i[0],),
        RuntimeError,
        r"hook '<lambda>' has returned an incorrect number of values \(got 1, but expected 2\)",
    ),
    "tensor": (lambda i, o: i[0], TypeError, "expected tuple, but hook returned 'Tensor'"),
    "list": (lambda i, o: list(i), TypeError, "expected tuple, but hook returned 'list'"),
    "shape": (lambda i, o: (T.ones(3), i[1]), RuntimeError, "hook '<lambda>' has changed the size of value"),
}


@pytest.mark.parametrize("name", WRONG_NODE_HOOKS)
def test_what_a_node_hook_may_not_return(name):
    hook, error, message = WRONG_NODE_HOOKS[name]
    y = leaf([1.0, 2.0]) ** leaf([1.0, 2.0])
    y.grad_fn.register_hook(hook)
    with pytest.raises(error, match=message):
        y.sum().backward()


def test_what_a_prehook_may_not_return():
    for hook, error, message in (
        (lambda o: o[0], TypeError, "expected tuple, but hook returned 'Tensor'"),
        (lambda o: 3, TypeError, "expected tuple, but hook returned 'int'"),
        (lambda o: (o[0], o[0]), RuntimeError, r"incorrect number of values \(got 2, but expected 1\)"),
        (lambda o: (T.ones(3),), RuntimeError, "has changed the size of value"),
    ):
        y = leaf([1.0, 2.0]) * 2
        y.grad_fn.register_prehook(hook)
        with pytest.raises(error, match=message):
            y.sum().backward()


def test_none_stays_none():
    x = leaf([1.0, 2.0])
    y = x * 2
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0], T.ones(2)))
    with pytest.raises(RuntimeError, match="can't replace a None gradient with a non-None value"):
        y.sum().backward()


def test_a_missing_gradient_is_shown_as_none():
    a, b = leaf([1.0, 2.0, 3.0]).split([1, 2])
    seen = []
    a.register_hook(lambda g: seen.append(("a", g.tolist())))
    b.register_hook(lambda g: seen.append(("b", g)))
    a.sum().backward()
    assert sorted(seen, key=str) == [("a", [1.0]), ("b", None)]


def test_a_leaf_is_told_that_no_gradient_came():
    class Second(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return None, g

    x, y = leaf([1.0]), leaf([2.0])
    seen = []
    x.register_hook(lambda g: seen.append(g))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad))
    Second.apply(x, y).backward()
    assert seen == [None, None] and x.grad is None


def test_post_accumulate_hooks():
    x = leaf([1.0, 2.0])

    def step(t):
        assert t is x
        t.data -= t.grad
        t.grad = None

    handle = x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    assert x.grad is None
    assert_values(x, [-1.0, 0.0])
    handle.remove()
    seen = []
    with x.register_post_accumulate_grad_hook(lambda t: seen.append(T.is_grad_enabled())):
        (x * 2).sum().backward()
        (x * 2).sum().backward(create_graph=True)
    (x * 2).sum().backward()
    T.autograd.grad((x * 2).sum(), x)
    assert seen == [False, True]
    x.register_post_accumulate_grad_hook(lambda t: 3)
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'int'"):
        (x * 2).sum().backward()
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(print)


def test_handles():
    from importlib import import_module

    RemovableHandle = import_module(f"{T.__name__}.utils.hooks").RemovableHandle
    x = leaf([1.0, 2.0])
    y = x * 2
    seen = []
    for register in (
        y.register_hook,
        x.register_post_accumulate_grad_hook,
        y.grad_fn.register_hook,
        y.grad_fn.register_prehook,
    ):
        handle = register(lambda *_: seen.append(1))
        assert isinstance(handle, RemovableHandle) and isinstance(handle.id, int)
        with handle as inside:
            assert inside is handle
        handle.remove()
        handle.remove()
    y.sum().backward()
    assert seen == []


def test_handles_for_dictionaries_of_ones_own():
    from collections import OrderedDict
    from importlib import import_module

    RemovableHandle = import_module(f"{T.__name__}.utils.hooks").RemovableHandle
    hooks, extra = OrderedDict(), OrderedDict()
    first, second = RemovableHandle(hooks, extra_dict=extra), RemovableHandle(hooks)
    assert first.id != second.id
    hooks[first.id], hooks[second.id], extra[first.id] = 1, 2, 3
    first.remove()
    first.remove()
    assert list(hooks.values()) == [2] and not extra
    with second:
        pass
    assert not hooks
    del hooks
    second.remove()


def test_the_lists_of_hooks():
    x = leaf([1.0, 2.0])
    assert x._backward_hooks is None and T.ones(1)._backward_hooks is None and (x * 2)._backward_hooks is None
    hook = lambda g: None  # noqa: E731
    handle = x.register_hook(hook)
    assert list(x._backward_hooks.values()) == [hook]
    x.register_post_accumulate_grad_hook(hook)
    assert list(x._post_accumulate_grad_hooks.values()) == [hook]
    handle.remove()
    assert not x._backward_hooks


def test_hooks_that_come_and_go_during_a_backward():
    x = leaf([1.0, 2.0])
    y = x * 2
    seen = []

    def late(g):
        seen.append("late")
        x.register_hook(lambda g: seen.append("leaf"))
        handle.remove()

    handle = y.register_hook(late)
    y.register_hook(lambda g: seen.append("other"))
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert seen == ["late", "other", "leaf", "other", "leaf"]


def test_a_hook_runs_another_backward():
    x, w = leaf([2.0]), leaf([3.0])
    y = x * x

    def inner(g):
        with T.enable_grad():
            (w * w).sum().backward()

    y.register_hook(inner)
    y.sum().backward()
    assert_values(x.grad, [4.0])
    assert_values(w.grad, [6.0])


@pytest.mark.parametrize("setup", [False, True])
def test_hooks_that_forward_hangs_on_its_own_node(setup):
    """The context is the node: what is hung there before there are edges fires like the rest."""
    log = []

    def hang(ctx):
        for name in ("hook", "prehook"):
            register = getattr(ctx, f"register_{name}")
            register(lambda *grads, name=name: log.append((name, len(grads))))
            register(lambda *grads: log.append("removed")).remove()
        ctx.late = ctx.register_hook(lambda *grads: log.append("taken off later"))

    class Double(T.autograd.Function):
        if setup:

            @staticmethod
            def forward(x):
                return x * 2

            @staticmethod
            def setup_context(ctx, inputs, output):
                hang(ctx)
        else:

            @staticmethod
            def forward(ctx, x):
                hang(ctx)
                return x * 2

        @staticmethod
        def backward(ctx, g):
            log.append("backward")
            return g * 2

    x = leaf([1.0, 2.0])
    y = Double.apply(x)
    y.grad_fn.register_hook(lambda *grads: log.append("after"))
    y.grad_fn.late.remove()
    y.sum().backward()
    assert log == [("prehook", 1), "backward", ("hook", 2), "after"]
    log.clear()
    Double.apply(x.detach())
    assert log == []


def test_a_hook_of_forwards_does_not_keep_the_context():
    class Held:
        pass

    class Same(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, held):
            ctx.held = held
            ctx.register_hook(lambda *grads: ctx.held)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g, None

    for wants in (True, False):
        held = Held()
        seen = weakref.ref(held)
        Same.apply(T.ones(1, requires_grad=wants), held)
        del held
        gc.collect()
        assert seen() is None


def test_handles_are_copied_with_their_dictionaries():
    import copy
    import pickle
    from collections import OrderedDict
    from importlib import import_module

    RemovableHandle = import_module(f"{T.__name__}.utils.hooks").RemovableHandle
    for again in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        hooks, extra = OrderedDict(), OrderedDict()
        handle = RemovableHandle(hooks, extra_dict=extra)
        assert handle.hooks_dict_ref() is hooks
        hooks[handle.id] = extra[handle.id] = 1
        hooks2, extra2, handle2 = again((hooks, extra, handle))
        later = RemovableHandle(hooks2)
        assert handle2.id == handle.id != later.id and handle2.hooks_dict_ref() is hooks2
        handle2.remove()
        assert not hooks2 and not extra2 and hooks and extra
