"""Replays that end early: errors of operators, Ctrl-C, no memory, forked processes; and captures that raise."""

import gc
import os
import signal
import subprocess
import sys
import sysconfig
import textwrap
import threading
import time

import gradiron as torch
import pytest
from gradiron import nn


def info(compiled):
    return torch._dynamo.explain(compiled)


def test_an_error_in_a_replay_is_that_of_the_function_and_names_the_line():
    table = torch.randn(4, 3)

    @torch.compile
    def f(index):
        found = table[index]  # here
        return found.sum()

    for _ in range(3):
        f(torch.tensor([1, 2]))
    assert info(f).replays == 1
    with pytest.raises((IndexError, RuntimeError)) as plain:
        table[torch.tensor([1, 9])]
    with pytest.raises(type(plain.value)) as seen:
        f(torch.tensor([1, 9]))
    assert str(seen.value) == str(plain.value)
    if sys.version_info >= (3, 11):
        (note,) = seen.value.__notes__
        assert os.path.basename(__file__) in note and "# here" in note
    # The capture is still good.
    before = info(f).replays
    assert torch.equal(f(torch.tensor([3, 0])), table[[3, 0]].sum())
    assert info(f).replays == before + 1 and info(f).graph_count == 1


def test_ctrl_c_in_a_replay_and_the_next_call():
    weight = torch.randn(200, 200)

    @torch.compile
    def f(x):
        for _ in range(500):
            x = torch.tanh(x @ weight)
        return x

    x = torch.randn(200, 200)
    first = f(x)
    f(x)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(1000):
            f(x)
    assert time.monotonic() - began < 20
    before = info(f).replays
    assert torch.equal(f(x), first)
    assert info(f).replays == before + 1


def run(code):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_no_memory_in_a_replay_is_an_error_after_which_all_goes_on():
    out = run(
        """
        import linecache, resource, sys, types
        import gradiron as torch

        source = '''
        def f(x):
            return x.expand(1 << 14, 1 << 12) * 2.0
        '''
        import textwrap
        source = textwrap.dedent(source)
        linecache.cache["made.py"] = (len(source), None, source.splitlines(True), "made.py")
        module = {}
        exec(compile(source, "made.py", "exec"), module)
        f = torch.compile(module["f"])
        x = torch.ones(1 << 12)
        for _ in range(3):
            f(x)
        assert torch._dynamo.explain(f).replays == 1, torch._dynamo.explain(f)
        held = f(x)  # 256 MB
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        unlimited = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), unlimited[1]))
        blocks = []
        for _ in range(3):
            try:
                blocks.append(f(x))
            except (MemoryError, RuntimeError) as error:
                print(type(error).__name__, str(error)[:80])
                break
        else:
            print("there was enough")
        resource.setrlimit(resource.RLIMIT_AS, unlimited)
        blocks.clear()
        assert torch.equal(f(x), held)
        print(torch._dynamo.explain(f).graph_count)
        """
    )
    error, graphs = out.strip().splitlines()
    assert "memory" in error, out
    assert graphs == "1"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_process_trains_on():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    x = torch.randn(3, 4)
    for _ in range(3):
        step(x)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"".join(step(x).item().hex().encode() + b" " for _ in range(3)))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    found = os.read(reading, 1000).decode().split()
    assert found == [step(x).item().hex() for _ in range(3)]
    assert info(step).graph_count == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_fork_while_a_call_is_captured():
    def f(x):
        child.append(os.fork())
        return x * 2

    child = []
    compiled = torch.compile(f)
    for number in range(2):
        found = compiled(torch.ones(2))
        if child[number] == 0:
            # The new process captures on its own.
            other = torch.compile(lambda x: x + 1)
            good = [torch.equal(other(torch.ones(2)), torch.full((2,), 2.0)) for _ in range(3)]
            os._exit(0 if all(good) and info(other).replays == 1 else 1)
        assert torch.equal(found, torch.full((2,), 2.0))
        assert os.waitpid(child[number], 0)[1] == 0
    assert "posix.fork" in str(info(compiled).break_reasons)


class Stopped(Exception):
    pass


def test_an_exception_in_a_capture_leaves_nothing_behind():
    weight = torch.ones(3, requires_grad=True)
    calls, log, found = [0], [], {}

    def f(x):
        y = (weight * x).sum()
        y.backward()
        log.append(y.detach())
        found["y"] = y.detach()
        with torch.no_grad():
            if x.shape[0] == 3:
                raise Stopped(len(x))
        return y

    compiled = torch.compile(f)
    del calls
    enabled = gc.isenabled()
    for number in range(4):
        weight.grad = None
        with pytest.raises(Stopped):
            compiled(torch.full((3,), float(number)))
        # What the call did until then stands, as without compile.
        assert len(log) == number + 1 and found["y"].item() == 3.0 * number == log[-1].item()
        assert torch.equal(weight.grad, torch.full((3,), float(number)))
    assert info(compiled).graph_count == 0 and not info(compiled).break_reasons
    assert sys.getprofile() is None and gc.isenabled() is enabled and torch.is_grad_enabled()
    assert not torch._core.is_capturing() and not torch.compiler.is_compiling()
    # Another function is captured right afterwards, and so is this one with arguments for which it returns.
    other = torch.compile(lambda x: x * 2)
    for _ in range(3):
        other(torch.ones(2))
    assert info(other).replays == 1


def test_an_exception_that_f_handles_is_part_of_the_capture():
    def f(x, table={"a": 2.0}):  # noqa: B006
        try:
            scale = table["b"]
        except KeyError:
            scale = table["a"]
        finally:
            x = x + 1
        return x * scale

    compiled = torch.compile(f)
    for _ in range(4):
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 4.0))
    assert info(compiled).replays == 2
    f.__defaults__[0]["b"] = 3.0
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 6.0))


def test_threads_train_models_of_their_own_and_share_a_function():
    @torch.compile
    def shared(x):
        return torch.tanh(x).sum()

    results = {}

    def train(seed):
        generator = torch.Generator().manual_seed(seed)
        weight = torch.randn(8, 8, generator=generator).requires_grad_()

        @torch.compile
        def step(x):
            loss = shared(x @ weight)
            loss.backward()
            with torch.no_grad():
                weight.sub_(weight.grad, alpha=0.1)
                weight.grad = None
            return loss

        for _ in range(20):
            loss = step(torch.randn(4, 8, generator=generator))
        results.setdefault(seed, []).append(loss.item())

    for _ in range(2):
        threads = [threading.Thread(target=train, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for seed in range(3):
        train(seed)
    assert [len(set(results[seed])) for seed in range(3)] == [1, 1, 1] and all(len(each) == 3 for each in results.values())


class Scale:
    value = 1.0


def scaling(scale):
    def f(x):
        for _ in range(300):
            x = x + 1
        return x * scale.value

    return f


def test_threads_that_capture_at_once_see_all_that_their_own_call_reads():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(10):
            scales = [Scale() for _ in range(3)]
            compiled = [torch.compile(scaling(scale)) for scale in scales]
            x = torch.zeros(2)
            for f in compiled:
                f(x)
            barrier = threading.Barrier(len(compiled))

            def capture(f, x=x, barrier=barrier):
                barrier.wait()
                f(x)

            threads = [threading.Thread(target=capture, args=(f,)) for f in compiled]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for f, scale in zip(compiled, scales, strict=True):
                f(x)
                scale.value = 2.0
                assert f(x)[0].item() == 600
                assert info(f).graph_count >= 1
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a lock around all threads")
def test_free_threaded_python_compiles():
    test_threads_train_models_of_their_own_and_share_a_function()
