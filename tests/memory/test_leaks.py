"""What PyTorch's users have reported as leaks since 2017: here each is freed at once, or at the next `gc.collect()`."""

import gc
import os
import sys
import threading
import weakref

import pytest

from library import IS_GRADIRON, T

ROUNDS = int(os.environ.get("GRADIRON_TEST_ROUNDS", "2000"))
SIZE = 2000
pytestmark = pytest.mark.gradiron  # PyTorch leaks many of these for good


class Token:
    """Something that a weak reference can watch."""


class Square(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, extra=None):
        ctx.save_for_backward(x)
        ctx.extra = extra
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0], None


class KeepsOutput(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, token):
        ctx.token = token
        ctx.y = x * 2
        return ctx.y

    @staticmethod
    def backward(ctx, g):
        return g * 2 + 0 * ctx.y, None


class KeepsItself(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, token):
        ctx.token, ctx.me = token, ctx
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2, None


class SavesView(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, token):
        ctx.token = token
        y = x.view(2, -1)
        ctx.save_for_backward(y)
        ctx.y = y
        return y

    @staticmethod
    def backward(ctx, g):
        return g.reshape(-1) + 0 * ctx.saved_tensors[0].reshape(-1), None


class SavesOutput(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, token):
        ctx.token = token
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0], None


class Fails(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, token):
        ctx.token = token
        return x * 2

    @staticmethod
    def backward(ctx, g):
        raise ValueError("no", g, ctx)


class Tagged(T.Tensor):
    pass


def new():
    return T.ones(SIZE, requires_grad=True)


def create_graph_into_grad(token):
    x = new()
    x.register_hook(lambda g: token and None)
    (x * x * x).sum().backward(create_graph=True)


def create_graph_into_the_grad_of_a_middle(token):
    x = new()
    y = x * x
    y.retain_grad()
    y.token = token
    (y * y).sum().backward(create_graph=True)


def a_gradient_that_depends_on_its_tensor(token):
    x = new()
    x.token = token
    x.grad = x * 2


def gradients_of_gradients_kept_on_the_tensor(token):
    x = new()
    x.token = token
    x.first = T.autograd.grad((x**3).sum(), x, create_graph=True)[0]
    x.second = T.autograd.grad(x.first.sum(), x, create_graph=True)[0]
    x.second.sum().backward()


def a_hook_that_holds_its_leaf(token):
    x = new()
    x.register_hook(lambda g: g * x.sum() if token else g)
    (x * 2).sum().backward()


def a_hook_that_holds_its_output(token):
    x = new()
    y = x * 2
    y.register_hook(lambda g: g + 0 * y if token else g)
    y.sum().backward()


def a_hook_that_holds_a_later_output(token):
    x = new()
    y = x * 2
    z = y.exp().sum()
    y.register_hook(lambda g: g + 0 * z if token else g)
    z.backward()


def a_hook_that_holds_two_tensors_of_its_graph(token):
    y = new() * 2
    z = y.exp()
    y.register_hook(lambda g: g + 0 * y * z if token else g)
    z.sum().backward()


def a_bound_method_that_holds_two_tensors(token):
    class Watch:
        def __init__(self):
            self.token, self.y = token, new() * 2
            self.z = self.y.exp()
            self.y.register_hook(self.hook)

        def hook(self, g):
            return g * 2

    Watch().z.sum().backward()


def a_hook_that_holds_a_leaf_and_what_came_of_it(token):
    x = new()
    y = x * 2
    z = y * x
    x.register_hook(lambda g: (x, y, z, token) and None)
    z.sum().backward()


def a_hook_that_holds_branches_that_meet_again(token):
    y = new() * 2
    branches = [y.exp(), y.sin(), y.tanh()]
    total = branches[0] * branches[1] + branches[2]
    y.register_hook(lambda g: (branches, token) and None)
    total.register_hook(lambda g: (branches, total, y) and None)
    total.sum().backward()


def hooks_that_hold_each_others_tensors(token):
    x = new()
    y, z = x * 2, x * 3
    y.register_hook(lambda g: (z, token) and None)
    z.register_hook(lambda g: (y, token) and None)
    (y * z).sum().backward()


def a_hook_that_holds_a_tensor_and_its_view(token):
    y = new() * 2
    part = y[1:]
    y.register_hook(lambda g: (y, part, token) and None)
    part.sum().backward()


def a_hook_that_holds_a_tensor_and_its_gradient(token):
    x = new()
    (x * x * x).sum().backward(create_graph=True)
    grad = x.grad
    grad.register_hook(lambda g: (x, grad, token) and None)


def a_hook_that_holds_a_tensor_written_in_place(token):
    y = new() * 2
    z = y.exp()
    y.mul_(3)
    y.register_hook(lambda g: (y, z, token) and None)


def a_hook_that_is_a_method_of_its_tensor(token):
    y = new() * 2
    y.token = token
    y.register_hook(y.mul)


def a_hook_that_is_a_method_of_a_later_tensor(token):
    y = new() * 2
    z = y.exp()
    z.token, z.y = token, y
    y.register_hook(z.mul)


def a_context_that_holds_two_tensors_of_its_graph(token):
    y = KeepsOutput.apply(new(), token)
    z = y * 2
    y.grad_fn.two = (y, z)
    z.sum().backward()


def packed_values_that_are_the_tensors_themselves(token):
    x = new()
    x.token = token
    with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x * 2
        y.token = token
        z = (y * y).exp()
        z.token = token
    return z.sum()


def packed_values_that_are_tuples_of_the_tensors(token):
    x = new()
    y = x * 2
    y.token = token
    with T.autograd.graph.saved_tensors_hooks(lambda t: (t, y), lambda pair: pair[0]):
        z = y * y
        (z * y).tanh()


def packed_values_that_hold_a_result(token):
    kept = []
    with T.autograd.graph.saved_tensors_hooks(lambda t: (t, kept), lambda pair: pair[0]):
        y = new() * 2
        z = (y * y).exp()
    kept += [y, z, token]


def a_hook_that_holds_its_handle(token):
    y = new() * 2
    box = [token]
    box.append(y.register_hook(lambda g, box=box: None))
    y.sum().backward()


def a_bound_method_as_a_hook(token):
    class Watch:
        def __init__(self):
            self.token, self.y = token, new() * 2
            self.handle = self.y.register_hook(self.hook)

        def hook(self, g):
            return g * 2

    Watch().y.sum().backward()


def a_hook_after_accumulation_that_holds_its_leaf(token):
    x = new()
    x.register_post_accumulate_grad_hook(lambda t: (x, token) and None)
    (x * 2).sum().backward()


def a_hook_of_a_node_that_holds_its_tensor(token):
    y = new() * 2
    y.grad_fn.register_hook(lambda gi, go: (y, token) and None)
    y.sum().backward()


def a_prehook_of_a_node_that_holds_its_tensor(token):
    y = new() * 2
    y.grad_fn.register_prehook(lambda go: (y, token) and None)
    y.sum().backward()


def a_node_held_by_a_closure(token):
    y = (new() * 2).exp()
    node = y.grad_fn
    y.back = lambda: (node, y, token)
    y.sum().backward()


def a_node_held_by_its_tensor(token):
    y = new() * 2
    y.node, y.token = y.grad_fn, token


def a_tensor_held_by_its_node(token):
    y = new() * 2
    y.grad_fn.metadata["y"] = y
    y.token = token


def a_graph_that_nobody_runs(token):
    y = new()
    y.token = token
    for _ in range(5):
        y = (y * 2).tanh()


def a_graph_kept_and_run_twice(token):
    y = (new() * 2).exp()
    y.register_hook(lambda g: token and None)
    y.sum().backward(retain_graph=True)
    y.sum().backward(retain_graph=True)


def a_tensor_that_knows_itself(token):
    x = new()
    x.me, x.token = x, token


def a_base_that_knows_its_view(token):
    x = new() * 1
    x.part, x.token = x[1:], token
    x.part.mul_(2)
    x.part.whole = x


def a_context_that_holds_its_output(token):
    KeepsOutput.apply(new(), token).sum().backward()


def a_context_that_holds_its_output_unused(token):
    KeepsOutput.apply(new(), token)


def a_context_that_holds_itself(token):
    KeepsItself.apply(new(), token).sum().backward()


def a_context_held_by_its_input(token):
    x = new()
    y = KeepsItself.apply(x, token)
    x.context = y.grad_fn


def a_context_that_holds_its_input(token):
    x = new()
    x.token = token
    Square.apply(x, x).sum().backward(create_graph=True)


def a_saved_view_that_is_returned(token):
    SavesView.apply(new() * 1, token).sum().backward()


def a_saved_view_that_is_returned_unused(token):
    SavesView.apply(new() * 1, token)


def a_saved_output(token):
    SavesOutput.apply(new(), token).sum().backward()


def a_saved_output_unused(token):
    SavesOutput.apply(new(), token)


def a_second_derivative_through_a_function(token):
    x = new()
    x.token = token
    g = T.autograd.grad(Square.apply(x).sum(), x, create_graph=True)[0]
    x.keep = g
    g.sum().backward()


def an_error_kept_on_its_tensor(token):
    x = new()
    x.token = token
    try:
        Fails.apply(x, token).sum().backward()
    except ValueError as error:
        x.error = error


def an_error_of_the_engine_kept_on_its_tensor(token):
    x = new()
    x.token = token
    y = (x * 2).exp().sum()
    y.backward()
    try:
        y.backward()
    except RuntimeError as error:
        x.error, x.y = error, y


def an_error_in_a_hook(token):
    x = new()

    def hook(g):
        raise KeyError(g, x, token)

    x.register_hook(hook)
    try:
        (x * 2).sum().backward()
    except KeyError as error:
        x.error = error


def a_subclass_with_attributes(token):
    x = T.ones(SIZE).as_subclass(Tagged)
    x.requires_grad_()
    x.me, x.token = x, token
    (x * 2).sum().backward()


def writes_in_place(token):
    x = new()
    y = x * 1
    y.token = token
    y[0] = y.sum().detach()
    y.mul_(2)[1:].exp_()
    y.sum().backward(create_graph=True)
    x.result = y


def a_graph_freed_by_another_thread(token):
    box = []

    def work():
        y = KeepsOutput.apply(new(), token)
        box.append((y * 2).exp())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    box.pop()


def tensors_among_default_arguments(token):
    x = new()

    def loss(t=x, token=token):
        return (t * 2).sum()

    x.loss = loss
    loss().backward()


def functional_derivatives(token):
    x = T.ones(8, requires_grad=True)
    x.token = token
    x.jacobian = T.autograd.functional.jacobian(lambda t: t * x, x, create_graph=True)


def an_abandoned_iterator(token):
    def parts():
        x = new() * 2
        x.token = token
        yield from x.split(SIZE // 2)

    it = parts()
    next(it)


def packed_values_that_hold_their_tensor(token):
    x = new()
    with T.autograd.graph.saved_tensors_hooks(lambda t: (t, x, token), lambda packed: packed[0]):
        y = x.exp() * x
    x.y = y
    y.sum().backward()


def packed_values_that_hold_their_output(token):
    x, box = new(), [token]
    with T.autograd.graph.saved_tensors_hooks(lambda t: (t.detach(), box), lambda packed: packed[0]):
        box.append(x.exp() * x)


def a_checkpoint(token):
    from importlib import import_module

    checkpoint = import_module(T.__name__ + ".utils.checkpoint").checkpoint
    x = new()
    x.token = token
    y = checkpoint(lambda t: (t * x).exp(), x, use_reentrant=False)
    x.y = y
    y.sum().backward()


def a_hook_on_many_gradients(token):
    x, y = new(), new()
    T.autograd.graph.register_multi_grad_hook([x, y], lambda grads: (x, y, token) and None)
    (x * y).sum().backward()


def there(name):
    """Whether the library has this part."""
    try:
        if name == "checkpoint":
            from importlib import import_module

            import_module(T.__name__ + ".utils.checkpoint")
        return name == "checkpoint" or hasattr(T.autograd.graph, name)
    except ImportError:
        return False


SLOW = {a_graph_freed_by_another_thread, functional_derivatives}
PARTS = {
    packed_values_that_hold_their_tensor: "saved_tensors_hooks",
    packed_values_that_hold_their_output: "saved_tensors_hooks",
    packed_values_that_are_the_tensors_themselves: "saved_tensors_hooks",
    packed_values_that_are_tuples_of_the_tensors: "saved_tensors_hooks",
    packed_values_that_hold_a_result: "saved_tensors_hooks",
    a_checkpoint: "checkpoint",
    a_hook_on_many_gradients: "register_multi_grad_hook",
}


def patterns_in(names):
    """The functions that tie a knot around a `token`."""
    functions = (f for f in names.values() if callable(f) and getattr(f, "__code__", None))
    return [f for f in functions if f.__code__.co_varnames[:1] == ("token",)]


PATTERNS = patterns_in(globals())
PATTERNS = [f for f in PATTERNS if f not in PARTS or there(PARTS[f])]
named = pytest.mark.parametrize("pattern", PATTERNS, ids=lambda f: f.__name__)


def assert_collected(pattern):
    token = Token()
    ghost = weakref.ref(token)
    pattern(token)
    del token
    gc.collect()
    assert ghost() is None


@named
def test_is_collected(pattern):
    assert_collected(pattern)


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@named
def test_memory_stays_flat(pattern):
    assert_memory_flat(pattern, ROUNDS // 20 if pattern in SLOW else ROUNDS)


def assert_memory_flat(pattern, rounds=ROUNDS, first=200):
    """After the `first` rounds, memory and nodes are where they were."""
    for _ in range(first):
        pattern(None)
    gc.collect()
    nodes, before = live_nodes(), resident()
    for i in range(rounds):
        pattern(None)
        # The collector counts objects, not bytes: now and then it is told.
        if i % 200 == 199:
            gc.collect()
    gc.collect()
    assert live_nodes() == nodes
    assert resident() - before < 6e6


def live_nodes():
    return T._core.live_nodes() if IS_GRADIRON else 0


FREED_AT_ONCE = [
    create_graph_into_grad,
    a_gradient_that_depends_on_its_tensor,
    a_graph_that_nobody_runs,
    a_graph_kept_and_run_twice,
    a_saved_view_that_is_returned,
    a_saved_output,
    a_saved_output_unused,
]


@pytest.mark.parametrize("pattern", FREED_AT_ONCE, ids=lambda f: f.__name__)
def test_needs_no_collector(pattern):
    token = Token()
    ghost = weakref.ref(token)
    gc.disable()
    try:
        pattern(token)
        del token
        assert ghost() is None or pattern is a_saved_view_that_is_returned
    finally:
        gc.enable()
