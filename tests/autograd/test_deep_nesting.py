"""Backwards inside backwards: any depth, with the modes, hooks and exceptions of the thread that asked."""

import threading
import warnings

import pytest

from library import IS_GRADIRON, T, leaf, python_ok


def nest(depth, at_the_end, *, along=lambda n: None):
    """A backward that starts another one, `depth` times; `along` sees each depth on the way."""

    class Deeper(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, left):
            ctx.left = left
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            along(ctx.left)
            if ctx.left == 0:
                at_the_end()
            else:
                start(ctx.left - 1)
            return g * 2, None

    def start(left):
        with T.enable_grad():
            x = leaf([1.0])
            Deeper.apply(x, left).sum().backward()
        return x.grad

    return start(depth)


@pytest.mark.parametrize("depth", [59, 60, 61, 1000, 6000])
def test_any_depth_ends(depth):
    seen = []
    assert nest(depth, lambda: seen.append(threading.current_thread())).tolist() == [2.0]
    assert len(seen) == 1


def test_a_sum_over_the_depths():
    order = []
    nest(200, lambda: None, along=order.append)
    assert order == list(range(200, -1, -1))


def test_one_leaf_for_all():
    """Each depth adds to the gradient of the same leaf."""
    w = leaf([1.0])

    def also(left):
        with T.enable_grad():
            (w * 1).sum().backward()

    nest(300, lambda: None, along=also)
    assert w.grad.tolist() == [301.0]


def test_an_exception_comes_all_the_way_back():
    class Own(Exception):
        pass

    def fail():
        raise Own("from below")

    with pytest.raises(Own, match="from below"):
        nest(500, fail)
    assert T.is_grad_enabled() and nest(3, lambda: None).tolist() == [2.0]


def test_an_exception_may_be_caught_on_the_way():
    caught = []

    class Catches(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            try:
                nest(150, lambda: 1 / 0)
            except ZeroDivisionError:
                caught.append(True)
            return g

    x = leaf([1.0])
    Catches.apply(x).sum().backward()
    assert caught == [True] and x.grad.tolist() == [1.0]


def test_modes_at_the_bottom():
    """What the thread has set holds at any depth, and is as it was at the end."""
    found = {}

    def look():
        found["grad"] = T.is_grad_enabled()
        found["anomaly"] = T.is_anomaly_enabled()
        with T.enable_grad():
            x = leaf([2.0])
            y = x * x
            found["recorded"] = y.requires_grad
        found["packed"] = len(packed)

    packed = []
    with (
        T.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t, lambda t: t),
        T.no_grad(),
        T.autograd.set_detect_anomaly(True),
    ):
        with T.enable_grad():
            nest(150, look)
        assert not T.is_grad_enabled()
        before = len(packed)
        with T.enable_grad():
            x = leaf([2.0])
            x * x
        assert len(packed) > before
    x * x
    after = len(packed)
    assert found["grad"] is False and found["anomaly"] and found["recorded"] and found["packed"] > 0
    assert len(packed) == after and T.is_grad_enabled()


def test_create_graph_at_the_bottom():
    grads = []

    def twice():
        with T.enable_grad():
            x = leaf([3.0])
            (g,) = T.autograd.grad((x**3).sum(), x, create_graph=True)
            grads.extend(T.autograd.grad(g.sum(), x))

    nest(100, twice)
    assert grads[0].tolist() == [18.0]


def test_transforms_at_the_bottom():
    """A transform may begin there, and the one around everything is known there."""
    found = []

    def inner():
        with T.enable_grad():
            found.append(T.func.vmap(T.func.grad(lambda x: x**2))(T.tensor([1.0, 2.0])).tolist())

    nest(100, inner)
    assert found == [[2.0, 4.0]]


def test_callbacks_and_hooks_at_the_bottom():
    calls = []

    def hooked():
        with T.enable_grad():
            x = leaf([1.0])
            x.register_hook(lambda g: calls.append("tensor"))
            x.register_post_accumulate_grad_hook(lambda t: calls.append("accumulated"))
            y = x * 2
            y.grad_fn.register_hook(lambda *_: calls.append("node"))
            y.sum().backward()

    nest(130, hooked)
    assert sorted(calls) == ["accumulated", "node", "tensor"]


def test_the_report_of_an_anomaly():
    def not_a_number():
        with T.enable_grad():
            x = leaf([0.0])
            (x.sqrt() * 0).sum().backward()

    with (
        warnings.catch_warnings(record=True) as told,
        pytest.raises(RuntimeError, match="SqrtBackward0.* returned nan values in its 0th output"),
        T.autograd.set_detect_anomaly(True),
    ):
        warnings.simplefilter("always")
        nest(70, not_a_number)
    text = "\n".join(str(w.message) for w in told)
    assert "Error detected in SqrtBackward0. Traceback of forward call that caused the error" in text


def test_several_threads_at_once():
    done = []

    def work():
        done.append(nest(200, lambda: None).tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert done == [[2.0]] * 4


@pytest.mark.skipif(not IS_GRADIRON, reason="PyTorch waits until all is done")
def test_it_can_be_interrupted():
    python_ok("""
import signal

class Endless(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        with T.enable_grad():
            start()
        return g

def start():
    Endless.apply(T.ones(1, requires_grad=True)).sum().backward()

def alarm(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, alarm)
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:
    start()
except KeyboardInterrupt:
    pass
else:
    raise AssertionError("nothing stopped it")
x = T.ones(1, requires_grad=True)
(x * 2).sum().backward()
assert x.grad.item() == 2 and T.is_grad_enabled()
""")
