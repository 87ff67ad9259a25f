"""The collector walks through graphs that tensors share: it must free all garbage, and nothing else."""

import gc
import os
import random
import threading
import weakref

import pytest

from library import T

ROUNDS = int(os.environ.get("GRADIRON_TEST_ROUNDS", "2000")) // 20


class Token:
    """Something that a weak reference can watch, and that a hook asks for."""

    alive = True


class Double(T.autograd.Function):
    @staticmethod
    def forward(ctx, x, held):
        ctx.held = held
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        assert all(token.alive for token in ctx.held if isinstance(token, Token))
        return g * 2 + 0 * ctx.saved_tensors[0], None


class Graph:
    """Tensors, some kept by one another's hooks, contexts, attributes and packed values, and how to check them."""

    def __init__(self, seed):
        self.choice = choice = random.Random(seed)
        self.token = Token()
        self.calls = 0
        # What hooks hold grows later, so that cycles of any shape arise.
        self.boxes = [[self.token] for _ in range(3)]
        self.leaves = [T.tensor([1.0, 2.0], requires_grad=True) for _ in range(2)]
        self.all = list(self.leaves)
        for _ in range(choice.randrange(2, 12)):
            self.all.append(self.step(choice.choice(self.all), choice.choice(self.all), choice.choice(self.boxes)))
        for _ in range(choice.randrange(8)):
            self.bind(choice.choice(self.all), choice.choice(self.boxes))
        for box in self.boxes:
            box += choice.sample(self.all, choice.randrange(len(self.all)))

    def step(self, a, b, box):
        kind = self.choice.randrange(8)
        if kind == 0:
            return Double.apply(a, box) - a
        if kind == 1:
            with T.autograd.graph.saved_tensors_hooks(lambda t: (t, box), lambda pair: self.unpacked(pair)):
                return (a * b).tanh()
        if kind == 2:
            with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                return a.exp().tanh() * b.tanh()
        if kind == 3:
            return (a * 1).view(2, 1).view(2)
        if kind == 4:
            return (a + 0).mul_(b.tanh())
        return a.sin() + b if kind == 5 else a.tanh() * b.cos()

    def unpacked(self, pair):
        assert pair[1][0].alive
        return pair[0]

    def bind(self, tensor, box):
        def hook(*args):
            assert box[0].alive and self.token.alive
            self.calls += 1

        kind = self.choice.randrange(5)
        if kind == 0:
            tensor.box = box
        elif kind == 1 and tensor.grad_fn is not None:
            tensor.grad_fn.register_hook(hook)
        elif kind == 2 and tensor.grad_fn is not None:
            tensor.grad_fn.metadata["box"] = box
        else:
            tensor.register_hook(hook)

    def run(self, tensor):
        """Gradients, with every hook on the way called."""
        kept = T.autograd.grad(tensor.sum(), self.leaves, retain_graph=True, allow_unused=True)
        return [None if grad is None else grad.tolist() for grad in kept]


def make(seed):
    graph = Graph(seed)
    return graph, [graph.run(tensor) for tensor in graph.all]


@pytest.mark.parametrize("part", range(4))
def test_what_is_held_stays(part):
    choice = random.Random(part)
    kept = []
    for i in range(ROUNDS):
        graph, expected = make(part * ROUNDS + i)
        at = choice.randrange(len(graph.all))
        # From outside only one tensor is held, or a node of the graph.
        kept.append((graph.all[at], graph.leaves, expected[at]))
        if choice.random() < 0.3:
            kept.append((graph.all[-1].grad_fn, None, None))
        del graph
        if choice.random() < 0.5:
            gc.collect(choice.randrange(3))
        if len(kept) > 20:
            kept.pop(choice.randrange(len(kept)))
        tensor, leaves, values = choice.choice(kept)
        if values is not None:
            grads = T.autograd.grad(tensor.sum(), leaves, retain_graph=True, allow_unused=True)
            assert [None if grad is None else grad.tolist() for grad in grads] == values
    gc.collect()
    for tensor, leaves, values in kept:
        if values is not None:
            grads = T.autograd.grad(tensor.sum(), leaves, retain_graph=True, allow_unused=True)
            assert [None if grad is None else grad.tolist() for grad in grads] == values


@pytest.mark.gradiron  # PyTorch leaks them
def test_what_is_not_held_goes():
    gc.collect()
    before = T._core.live_nodes()
    ghosts = []
    for i in range(ROUNDS * 2):
        graph, _ = make(i)
        ghosts.append(weakref.ref(graph.token))
        del graph
    for _ in range(3):
        gc.collect()
    assert not [i for i, ghost in enumerate(ghosts) if ghost() is not None]
    assert T._core.live_nodes() == before


@pytest.mark.gradiron  # PyTorch never calls it
def test_a_finalizer_brings_a_tensor_back():
    saved = []

    class Phoenix:
        def __del__(self):
            saved.append(self.z)

    def build():
        phoenix, token = Phoenix(), Token()
        x = T.ones(2, requires_grad=True)
        y = x * 2
        z = y.exp()
        y.register_hook(lambda g: g * 2 if token.alive and phoenix.z is z and y is not None else None)
        phoenix.y, phoenix.z, phoenix.x = y, z, x

    build()
    gc.collect()
    assert len(saved) == 1
    x = saved[0].grad_fn.next_functions[0][0].next_functions[0][0].variable
    saved[0].sum().backward()
    assert T.allclose(x.grad, 4 * saved[0].detach())


def test_an_outside_holder_of_each_kind():
    holders = [
        lambda y, z: y,
        lambda y, z: z,
        lambda y, z: y.grad_fn,
        lambda y, z: z.grad_fn,
        lambda y, z: z * 2,
        lambda y, z: z[1:],
        lambda y, z: (z * 2).sum().backward,
    ]
    for hold in holders:
        token = Token()
        x = T.ones(3, requires_grad=True)
        y = x * 2
        z = y.exp()
        y.register_hook(lambda g, y=y, z=z, token=token: g if token.alive else None)
        kept = hold(y, z)
        ghost = weakref.ref(token)
        del y, z, token
        for generation in (0, 1, 2, 2):
            gc.collect(generation)
            assert ghost() is not None
        if isinstance(kept, T.Tensor):
            kept.sum().backward()
            assert x.grad is not None
        del kept


def test_a_held_context_keeps_what_its_node_has():
    """Also when all other ways to the node are garbage."""
    x, calls = T.ones(2, requires_grad=True), []
    y = Double.apply(x, [])
    node = y.grad_fn
    node.register_hook(lambda *_, calls=calls: calls.append(1))
    y.me, y.node = y, node
    del y
    gc.collect()
    (grad,) = T.autograd.grad((T.autograd.graph.GradientEdge(node, 0),), (x,), (T.ones(2),))
    assert calls == [1] and grad.tolist() == [2.0, 2.0]


def test_a_context_older_than_its_tensor_keeps_what_its_node_has():
    """A young collection asks the tensor only."""
    x, calls = T.ones(2, requires_grad=True), []
    y = Double.apply(x, [])
    z = y * y
    del y
    (node, _), *_ = z.grad_fn.next_functions
    node.register_hook(lambda *_, calls=calls: calls.append(1))
    gc.collect()
    y = z.grad_fn._saved_self
    y.me, y.node = y, node
    del y, z
    gc.collect(0)
    (grad,) = T.autograd.grad((T.autograd.graph.GradientEdge(node, 0),), (x,), (T.ones(2),))
    assert calls == [1] and grad.tolist() == [2.0, 2.0]


def test_collections_beside_running_threads():
    stop, errors = threading.Event(), []

    def work(seed):
        try:
            i = seed
            while not stop.is_set():
                graph, expected = make(i)
                assert [graph.run(tensor) for tensor in graph.all] == expected
                x = T.ones(20000, requires_grad=True)
                y = x * 2
                y.register_hook(lambda g, y=y: g if y is not None else None)
                z = y.sin()
                z.y = y
                z.mul_(2).sum().backward()
                i += 4
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(max(ROUNDS // 2, 20)):
        gc.collect()
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors


def test_without_the_collectors_news():
    """Somebody may empty `gc.callbacks`: less is freed, and nothing breaks."""
    y = T.ones(2, requires_grad=True) * 2
    y.register_hook(lambda g: None)
    told, gc.callbacks[:] = gc.callbacks[:], []
    try:
        for i in range(10):
            graph, expected = make(i)
            gc.collect()
            assert [graph.run(tensor) for tensor in graph.all] == expected
    finally:
        gc.callbacks[:] = told
