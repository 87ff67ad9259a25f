"""Threads and forks: shared graphs and leaves, grad mode of each thread, callbacks and frees anywhere, work after `fork`."""

import gc
import os
import subprocess
import sys
import threading
import time

import pytest

from library import IS_GRADIRON, NAME, T, leaf, python_ok

on_unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def together(work, count=6):
    """Runs `work(number)` in threads that start at once; their results, or the first error."""
    results, errors, gate = [None] * count, [], threading.Barrier(count)

    def one(number):
        try:
            gate.wait()
            results[number] = work(number)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads), "a thread hangs"
    if errors:
        raise errors[0]
    return results


def test_many_backwards_through_one_graph():
    x = T.linspace(-1, 1, 400).reshape(20, 20).requires_grad_()
    y = (x @ x).tanh()
    loss = (y @ y).exp().sum()
    (expected,) = T.autograd.grad(loss, x, retain_graph=True)

    def work(_):
        return [T.autograd.grad(loss, x, retain_graph=True)[0].tolist() for _ in range(10)]

    for gradients in together(work):
        assert all(g == expected.tolist() for g in gradients)


def test_many_backwards_accumulate_into_shared_leaves_without_loss():
    x, w = T.ones(7, requires_grad=True), T.ones(7, 7, requires_grad=True)
    shared = (x * 2).sum()

    def work(_):
        for _ in range(40):
            shared.backward(retain_graph=True)
            (x @ w).sum().backward()

    together(work)
    assert w.grad.tolist() == [[240.0] * 7] * 7
    assert x.grad.tolist() == [6 * 40 * (2.0 + 7.0)] * 7


def test_accumulation_with_hooks_after_it():
    x, seen = leaf([0.0]), []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))

    def work(_):
        for _ in range(20):
            (x * 1.0).sum().backward()

    together(work)
    assert x.grad.item() == 120 and len(seen) == 120


def test_second_derivatives_in_many_threads():
    x = leaf([0.5, 1.5])
    y = (x**3).sum()

    def work(_):
        for _ in range(20):
            (g,) = T.autograd.grad(y, x, create_graph=True)
            (h,) = T.autograd.grad(g.sum(), x)
        return h.tolist()

    assert together(work) == [[3.0, 9.0]] * 6


def test_only_one_backward_frees_the_graph():
    """Without retain_graph one thread wins; the others are told, nobody crashes, and no gradient is lost or doubled."""
    for _ in range(20):
        x = T.ones(50, requires_grad=True)
        y = x
        for _ in range(20):
            y = y.exp().log()
        loss = y.sum()

        def work(_, loss=loss):
            try:
                loss.backward()
            except RuntimeError as error:
                assert "second time" in str(error)
                return 0
            return 1

        wins = sum(together(work, 3))
        assert wins <= 1
        if wins:
            assert x.grad is not None


def test_every_thread_sees_the_same_objects():
    """Objects are made when somebody asks, and go when nobody holds them: in every thread the same one at a time."""
    x = leaf([1.0, 2.0])
    y = (x * 2).exp()
    y.sum().backward(retain_graph=True)
    gate = threading.Barrier(6)

    def work(_):
        found = []
        for _ in range(100):
            gate.wait()
            one, other = y.grad_fn, x.grad
            found.append((one, other, one.next_functions[0][0], y._base))
        return found

    for seen in zip(*together(work)):
        for objects in zip(*seen):
            assert len({id(o) for o in objects}) == 1


def test_attributes_of_a_gradient_last_though_threads_come_and_go():
    x = leaf([1.0, 2.0])
    (x * 2).sum().backward()
    x.grad.note = "kept"

    def work(_):
        return [x.grad.note for _ in range(300)]

    assert all(notes == ["kept"] * 300 for notes in together(work))


@pytest.mark.gradiron  # PyTorch keeps such cycles for good
def test_collections_while_threads_work():
    """Cycles through hooks are made by all threads while one of them collects."""
    gone = []

    class Mark:
        def __del__(self):
            gone.append(1)

    def work(number):
        for i in range(60):
            x, mark = leaf([1.0, 2.0]), Mark()
            y = (x * 2).exp()
            y.register_hook(lambda g, y=y, mark=mark: g)
            y.sum().backward(create_graph=True)
            del x, y, mark
            if number == 0 and i % 5 == 0:
                gc.collect()

    together(work)
    gc.collect()
    assert len(gone) == 6 * 60


def test_grad_mode_belongs_to_a_thread():
    def work(number):
        assert T.is_grad_enabled()
        seen = []
        with T.set_grad_enabled(number % 2 == 0):
            for _ in range(50):
                time.sleep(0)
                seen.append((leaf([1.0]) * 2).requires_grad)
        return set(seen)

    with T.no_grad():
        results = together(work)
        assert not T.is_grad_enabled()
    assert results == [{True}, {False}] * 3


def test_inference_mode_belongs_to_a_thread():
    with T.inference_mode():
        assert together(lambda _: (T.is_inference_mode_enabled(), T.is_grad_enabled())) == [(False, True)] * 6


def test_callbacks_from_any_thread():
    class Twice(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, seen):
            ctx.seen = seen
            return x * 2

        @staticmethod
        def backward(ctx, g):
            ctx.seen.append(threading.get_ident())
            return g * 2, None

    made_here = []
    x = leaf([1.0])
    y = Twice.apply(x, made_here)
    y.register_hook(lambda g: made_here.append(threading.get_ident()))

    def work(_):
        mine = []
        Twice.apply(leaf([1.0]), mine).backward()
        y.backward(retain_graph=True)
        return mine == [threading.get_ident()]

    assert all(together(work))
    assert x.grad.item() == 12 and len(made_here) == 12
    assert len(set(made_here)) > 1 or not IS_GRADIRON


def test_a_callback_may_wait_for_another_threads_backward():
    x, z = leaf([1.0]), leaf([3.0])

    def hook(g):
        thread = threading.Thread(target=lambda: (z * z).backward())
        thread.start()
        thread.join(30)
        assert not thread.is_alive()

    y = x * 2
    y.register_hook(hook)
    y.backward()
    assert z.grad.item() == 6 and x.grad.item() == 2


def test_graphs_are_built_and_freed_on_different_threads():
    import queue

    line = queue.Queue(maxsize=8)

    def work(number):
        if number % 2:
            for _ in range(150):
                x = T.ones(10, requires_grad=True)
                y = x
                for _ in range(30):
                    y = y * 1.5 + x
                line.put((x, y))
        else:
            for _ in range(150):
                x, y = line.get(timeout=60)
                y.sum().backward()
                assert x.grad is not None
                del x, y

    together(work)


def test_many_threads_build_one_graph():
    x = T.ones(5, requires_grad=True)
    parts = together(lambda n: (x * n).exp().log())
    total = sum(parts)
    total.sum().backward()
    assert x.grad.tolist() == pytest.approx([15.0] * 5)


def test_errors_stay_in_their_thread():
    class Fails(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, number):
            ctx.number = number
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise KeyError(ctx.number)

    def work(number):
        for _ in range(10):
            with pytest.raises(KeyError) as caught:
                Fails.apply(leaf([1.0]), number).backward()
            assert caught.value.args == (number,)
            x = leaf([2.0])
            (x * x).backward()
            assert x.grad.item() == 4

    together(work)


def test_writes_in_place_from_many_threads():
    x = T.zeros(1000)

    def work(number):
        part = x[number * 100 : (number + 1) * 100]
        for _ in range(100):
            part.add_(1)

    together(work)
    assert x.tolist() == [100.0] * 600 + [0.0] * 400 and x._version == 600


def test_a_thread_may_end_with_a_graph_of_its_own():
    kept = threading.local()

    def work(_):
        kept.y = (leaf([1.0]) * 2).exp()
        kept.y.register_hook(lambda g: g)

    for _ in range(5):
        together(work)


@pytest.mark.gradiron  # PyTorch aborts here
def test_daemon_threads_do_not_disturb_the_exit():
    python_ok("""
import threading
x = T.ones(200, 200, requires_grad=True)
def work():
    while True:
        (x @ x).tanh().sum().backward()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
""")


FORK = """
import os, sys, signal, time, threading
def child(work):
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert status == 0, f'the child ended with {status}'
x = T.ones(500, 500, requires_grad=True)
def work():
    y = (x @ x).tanh().exp()
    loss = y.sum() + x.softmax(1).cumsum(0).sum() + T.sort(x.flatten())[0].sum()
    loss.backward()
    return loss.item()
"""


@on_unix
@pytest.mark.parametrize(
    "body",
    [
        "work()\nchild(work)\nwork()",
        "child(work)\nchild(work)",
        "work()\nchild(lambda: child(work))\nwork()",
        "expected = work()\ndef same():\n    assert work() == expected\nfor _ in range(5): child(same)",
        "T.set_num_threads(4)\nwork()\nchild(lambda: (T.set_num_threads(2), work(), T.set_num_threads(4), work()))",
        "y = (x @ x).sum()\nchild(lambda: y.backward())\ny.backward()\nassert x.grad is not None",
        "t = threading.Thread(target=lambda: [work() for _ in range(10)])\nt.start()\ntime.sleep(0.02)\nwork()\nt.join()\nchild(work)",
    ],
)
def test_work_goes_on_after_a_fork(body):
    if not IS_GRADIRON:
        pytest.skip("PyTorch's threads do not survive a fork")
    python_ok(FORK + body, timeout=100)


@on_unix
def test_multiprocessing_by_fork():
    python_ok(
        """
import multiprocessing as mp
def work(seed):
    T.manual_seed(seed)
    x = T.randn(300, 300, requires_grad=True)
    (x @ x).tanh().sum().backward()
    return x.grad.sum().item()
if __name__ == '__main__':
    expected = [work(s) for s in range(4)]
    with mp.get_context('fork').Pool(2) as pool:
        assert pool.map_async(work, range(4)).get(60) == expected
"""
        if IS_GRADIRON
        else "",
        timeout=100,
    )


@on_unix
@pytest.mark.gradiron
def test_the_gpu_does_not_go_along_with_a_fork(device):
    if device == "cpu":
        pytest.skip("needs a GPU")
    python_ok(
        FORK
        + """
x = T.ones(3, device='cuda')
def gpu():
    try:
        T.ones(3, device='cuda')
    except RuntimeError as error:
        assert 'forked subprocess' in str(error)
    else:
        raise AssertionError('the GPU worked in a child')
    assert (T.ones(3) + 1).tolist() == [2.0] * 3
child(gpu)
assert (x + 1).tolist() == [2.0] * 3
""",
        env={"GRADIRON_SOFTWARE_GPU": "1"},
    )


def test_random_numbers_of_threads_are_whole():
    """One generator, many threads: every number is drawn once."""
    T.manual_seed(0)
    drawn = together(lambda _: [T.rand(3).tolist() for _ in range(50)])
    rows = [tuple(row) for rows in drawn for row in rows]
    assert len(set(rows)) == len(rows)


def test_ctrl_c_in_the_main_thread_while_others_work():
    code = f"""
import importlib, os, signal, threading, time
T = importlib.import_module({NAME!r})
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
x = T.ones(150, 150, requires_grad=True)
stop = False
def work():
    while not stop:
        T.autograd.grad((x @ x).tanh().sum(), x)
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        (x @ x).sum().backward()
except KeyboardInterrupt:
    stop = True
for t in threads: t.join()
(x * 2).sum().backward()
print('alive')
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "alive\n", done.stderr
