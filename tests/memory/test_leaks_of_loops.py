"""Loops around tensors that stay: what a round leaves on them, on their nodes or in the library is gone after it; and cycles
through what calls hand back, functions of `func`, checkpoints, callbacks, anomaly mode, as PyTorch's users reported them."""

import copy
import gc
import importlib
import pickle
import sys

import pytest
from test_leaks import ROUNDS, assert_collected, assert_memory_flat, patterns_in

from library import NAME, T

pytestmark = [
    pytest.mark.gradiron,  # PyTorch leaks some of these for good
    pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled"),
]
checkpoint = importlib.import_module(f"{NAME}.utils.checkpoint").checkpoint
func, graph, forward_ad = T.func, T.autograd.graph, T.autograd.forward_ad
SIZE = 2000

LEAF = T.ones(20, requires_grad=True)
PLAIN = T.ones(20)
MIDDLE = LEAF * 2


class Square(T.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, tangent):
        return 2 * tangent * ctx.saved_tensors[0]


def backward(y, **options):
    y.sum().backward(**options)
    LEAF.grad = None


# --- loops ---


def loop_of_detached_tensors():
    (LEAF.detach().requires_grad_() * 2).sum().backward()
    PLAIN.detach().requires_grad_()
    PLAIN.view(4, 5).requires_grad_()
    (LEAF * 1).detach_()


def loop_of_switches():
    LEAF.requires_grad_(False)
    LEAF.requires_grad_(True)
    LEAF.grad_dtype = T.float64
    backward(LEAF * LEAF)
    LEAF.grad_dtype = T.float32


def loop_of_hooks():
    for handle in (
        LEAF.register_hook(lambda g: g),
        MIDDLE.register_hook(lambda g: g),
        LEAF.register_post_accumulate_grad_hook(lambda t: None),
        MIDDLE.grad_fn.register_hook(lambda inputs, outputs: None),
        MIDDLE.grad_fn.register_prehook(lambda outputs: None),
        graph.register_multi_grad_hook([LEAF, MIDDLE], lambda grads: None),
        graph.register_multi_grad_hook([LEAF, MIDDLE], lambda grad: None, mode="any"),
    ):
        handle.remove()


def loop_of_notes():
    LEAF.note = [LEAF]
    MIDDLE.grad_fn.metadata["note"] = MIDDLE
    del LEAF.note, MIDDLE.grad_fn.metadata["note"]


def loop_of_graphs_in_grad():
    (LEAF * LEAF).sum().backward(create_graph=True)
    LEAF.grad = None


def loop_of_backwards_over_one_graph():
    MIDDLE.retain_grad()
    part = MIDDLE.view(4, 5)
    part.retain_grad()
    part.sum().backward(retain_graph=True, inputs=[LEAF])
    T.autograd.grad(MIDDLE, LEAF, T.stack([PLAIN, PLAIN]), is_grads_batched=True, retain_graph=True)
    T.autograd.grad(graph.get_gradient_edge(MIDDLE), [LEAF], grad_outputs=(PLAIN,), retain_graph=True)
    LEAF.grad = MIDDLE.grad = None


def loop_of_other_memory():
    PLAIN.data = PLAIN.data
    LEAF.data = T.ones(20)
    other = PLAIN.clone()
    other.set_(PLAIN)
    other.resize_(3)
    with T.no_grad():
        LEAF.mul_(1.0)


def loop_of_copies():
    copy.deepcopy(LEAF)
    pickle.loads(pickle.dumps(PLAIN))
    T.from_numpy(PLAIN.numpy())
    T.from_dlpack(PLAIN)


def loop_of_packed_values():
    with graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        backward(LEAF * LEAF)
    with graph.save_on_cpu():
        backward(LEAF * LEAF)
    with graph.allow_mutation_on_saved_tensors():
        y = LEAF.clone()
        z = y.sin()
        y.mul_(2)
        backward(z)


def loop_of_checkpoints():
    for reentrant in (False, True):
        backward(checkpoint(lambda t: checkpoint(lambda u: u * u, t, use_reentrant=reentrant), LEAF, use_reentrant=reentrant))


def loop_of_anomaly_mode():
    with T.autograd.detect_anomaly(check_nan=True):
        backward(LEAF * LEAF)


def loop_of_watched_nodes():
    with graph.node_creation_hook(lambda node: None):
        LEAF * 2


def loop_of_tangents():
    with forward_ad.dual_level():
        forward_ad.unpack_dual(Square.apply(forward_ad.make_dual(LEAF, PLAIN)))
        forward_ad.make_dual(PLAIN.view(4, 5), PLAIN.view(4, 5))


def loop_of_transforms():
    func.grad(lambda t: (t * LEAF).sum())(PLAIN)
    func.vmap(func.grad(lambda t: Square.apply(t).sum()))(PLAIN.view(4, 5))
    func.vjp(lambda t: t * t, LEAF)[1](PLAIN)
    func.linearize(lambda t: t * t, LEAF)[1](PLAIN)


def loop_of_failing_transforms():
    with pytest.raises(ZeroDivisionError):
        func.grad(lambda t: 1 / 0)(PLAIN)
    with pytest.raises(RuntimeError):
        func.vmap(lambda t: t + T.ones(7))(PLAIN.view(4, 5))
    with pytest.raises(ZeroDivisionError), forward_ad.dual_level():
        forward_ad.make_dual(LEAF, PLAIN)
        1 / 0


def loop_of_inference():
    with T.inference_mode():
        (PLAIN * 2).view(4, 5)


LOOPS = [f for name, f in list(globals().items()) if name.startswith("loop_of_")]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("loop", LOOPS, ids=lambda f: f.__name__)
def test_loops_leave_nothing(loop):
    assert_memory_flat(lambda token: loop(), first=100)


# --- cycles ---


def new():
    return T.ones(SIZE, requires_grad=True)


def a_checkpoint_that_holds_its_result(token):
    x = new()
    box = [x, token]
    for reentrant in (False, True):
        box.append(checkpoint(lambda t: (t * x * len(box)).exp(), x, use_reentrant=reentrant))
    x.box = box


def a_checkpoint_run_twice_that_holds_its_result(token):
    x = new()
    box = [token]
    box.append(checkpoint(lambda t: (t * len(box)).exp(), x, use_reentrant=False))
    box[1].sum().backward(retain_graph=True)
    box[1].sum().backward()
    x.box = box


def a_checkpoint_whose_recomputation_fails(token):
    x = new()
    calls = []

    def fails_later(t):
        calls.append((x, token))
        if len(calls) > 1:
            raise KeyError(t)
        return t.exp()

    y = checkpoint(fails_later, x, use_reentrant=False)
    try:
        y.sum().backward()
    except KeyError as error:
        x.error, x.y = error, y


def a_view_that_retains_its_gradient(token):
    x = new() * 2
    part = x[1:]
    part.retain_grad()
    x.part, part.whole, part.token = part, x, token
    (part * part).sum().backward(create_graph=True)


def a_gradient_of_a_view_held_by_its_base(token):
    x = new() * 2
    part = x.view(2, -1)
    part.retain_grad()
    (part * x.view(2, -1)).sum().backward(create_graph=True)
    part.grad.base, part.grad.token = x, token


def anomaly_mode_that_remembers_makers(token):
    with T.autograd.detect_anomaly(check_nan=False):
        x = new()
        first = T.autograd.grad((x**3).sum(), x, create_graph=True)[0]
        x.first, x.token = first, token
        first.grad_fn.metadata["x"] = x
        first.sum().backward()


def an_error_of_anomaly_mode(token):
    with T.autograd.detect_anomaly():
        x = T.zeros(SIZE, requires_grad=True)
        y = (x / x).sum()
        try:
            y.backward()
        except RuntimeError as error:
            x.error, x.y, x.token = error, y, token


def a_pullback_held_by_its_point(token):
    x = new()
    x.result, x.pull = func.vjp(lambda t: t * x, x)
    x.token = token


def a_linear_map_held_by_its_point(token):
    x = new()
    x.result, x.push = func.linearize(lambda t: t * x, x)
    x.token = token


def an_error_of_a_transform_held_by_its_point(token):
    x = new()

    def fails(t):
        t.x, t.token = x, token
        raise KeyError(t)

    for transform in (func.grad, func.vmap, func.jacfwd, lambda f: lambda t: func.jvp(f, (t,), (t,))):
        try:
            transform(fails)(x)
        except KeyError as error:
            x.error = error


def a_callback_that_holds_its_tensor(token):
    x = new()
    y = x * 2
    y.register_hook(lambda g: graph.queue_callback(lambda: (x, y, token) and None))
    x.y = y
    y.sum().backward()


def hooks_on_any_gradient(token):
    x, y = new(), new() * 2
    graph.register_multi_grad_hook([x, y], lambda grad: (x, y, token) and None, mode="any")
    (x * y).sum().backward()


def a_watcher_of_nodes_that_keeps_them(token):
    nodes = []
    with graph.node_creation_hook(nodes.append):
        y = (new() * 2).exp()
    y.nodes, y.token = nodes, token
    nodes.append(y)


def a_function_with_a_rule_for_samples(token):
    x = T.ones(4, SIZE // 4)

    def f(t):
        y = Square.apply(t)
        t.y, t.token = y, token
        y.t = t
        return y.sum()

    x.gradient = func.vmap(func.grad(f))(x)


def a_gradient_of_a_gradient_inside_of_a_backward(token):
    class Runs(T.autograd.Function):
        @staticmethod
        def forward(ctx, f, x, y):
            ctx.f, ctx.token = f, token
            ctx.save_for_backward(x, y)
            return x

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            with T.enable_grad():
                copy_of_y = y.clone().requires_grad_()
                found = T.autograd.grad(ctx.f(x, copy_of_y), copy_of_y, g, create_graph=T.is_grad_enabled())
            return None, None, *found

    y = new()
    y.loss = (Runs.apply(lambda a, b: a + b * y, T.ones(SIZE), y) ** 2).sum()
    y.loss.backward(create_graph=True)


def a_function_that_holds_a_method_of_its_result(token):
    class Solves(T.autograd.Function):
        @staticmethod
        def forward(ctx, f, x, a):
            ctx.f = f
            return f(x)

        @staticmethod
        def backward(ctx, g):
            return None, None, g

    class Model:
        def __init__(self):
            self.token, self.a = token, new()
            self.solution = Solves.apply(self.run, T.ones(SIZE), self.a)

        def run(self, x):
            return self.a * x

    Model()


def a_hook_that_keeps_the_gradient_it_is_given(token):
    kept = [token]
    x = new()
    y = x * x
    y.register_hook(kept.append)
    y.grad_fn.register_hook(lambda inputs, outputs: kept.extend([*inputs, *outputs]))
    y.exp().sum().backward(create_graph=True)


def a_view_written_by_a_function_that_saves_it(token):
    class Doubles(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.token = token
            x.mul_(2)
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    part = (new() + 1)[:10]
    Doubles.apply(part)


def what_setup_context_returns(token):
    class Returns(Square):
        @staticmethod
        def setup_context(ctx, inputs, output):
            return token, inputs, output

        @staticmethod
        def backward(ctx, g):
            return g

    Returns.apply(new()).sum().backward()


def a_gradient_that_is_its_own_start(token):
    x = new()
    y = (x * 2) * x
    y.token = token
    y.backward(y, create_graph=True)


def hooks_inside_of_a_checkpoint(token):
    x = new()

    def f(t):
        with graph.saved_tensors_hooks(lambda u: u, lambda u: u):
            y = t.exp() * x
        y.token = token
        return y.sin()

    x.y = checkpoint(f, x, use_reentrant=False)
    x.y.sum().backward()


def a_profile_of_tangents(token):
    profiler = importlib.import_module(f"{NAME}.profiler")
    x = new()
    with profiler.profile(record_shapes=True) as profile:
        x.result = func.jvp(lambda t: t * x, (x,), (T.ones(SIZE),))
    x.profile, x.token = profile, token


CYCLES = patterns_in(globals())
SLOW = {anomaly_mode_that_remembers_makers, an_error_of_anomaly_mode, an_error_of_a_transform_held_by_its_point}
by_cycle = pytest.mark.parametrize("pattern", CYCLES, ids=lambda f: f.__name__)


@by_cycle
def test_is_collected(pattern):
    assert_collected(pattern)


def test_hooks_that_hold_their_node_live_as_long_as_the_graph():
    ran = []

    def made():
        y = T.ones((), requires_grad=True).clone()
        node = y.grad_fn
        y.register_hook(lambda g: ran.append(node.name()))
        return y.clone()

    y = made()
    y.backward(retain_graph=True)
    gc.collect()
    y.backward()
    assert ran == ["CloneBackward0"] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@by_cycle
def test_memory_stays_flat(pattern):
    assert_memory_flat(pattern, ROUNDS // 4 if pattern in SLOW else ROUNDS, first=100)
