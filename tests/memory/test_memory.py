"""Lifetimes: graphs are freed, cycles are collected, long chains do not overflow, and bad sizes are refused."""

import gc
import sys
import threading
import weakref

import pytest

from library import T, leaf, python, python_ok

RSS = """
def rss():
    gc.collect()
    with open('/proc/self/statm') as f:
        return int(f.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')
"""
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@on_linux
def test_ten_thousand_graphs_leave_memory_flat():
    python_ok(
        RSS
        + """
def step():
    x = T.ones(16, 16, requires_grad=True)
    y = x
    for _ in range(5):
        y = (y @ x).tanh() + y[0] * 2
    y.sum().backward()
    return x.grad
for _ in range(1000): step()
before = rss()
for _ in range(10_000): step()
grown = rss() - before
assert grown < 3e6, f'{grown} bytes more'
"""
    )


@on_linux
@pytest.mark.parametrize(
    "body",
    [
        "y = (x * 2).sum()",  # never run backward
        "y = x.exp().sum(); y.backward(retain_graph=True)",
        "y = x * 1; y[0] = 3.0; y.mul_(2); y.sum().backward()",
        pytest.param(
            "y = x * 2; y.register_hook(lambda g: g * y.sum().item()); y.sum().backward()", marks=pytest.mark.gradiron
        ),
        "y = F.apply(x); y.sum().backward()",
        "T.autograd.grad(T.autograd.grad((x ** 3).sum(), x, create_graph=True)[0].sum(), x)",
        "y = x * 2\ntry: y.backward()\nexcept RuntimeError: pass",
        "z = x.detach().numpy() if 'numpy' in sys.modules else x.tolist()",
        "v = x[1:]; w = v.view(-1); w.sum().backward()",
        "y = x * 2; y.retain_grad(); y.sum().backward(); y.grad",
        "a = x * 1; b = x * 2; y = (a * b).sum(); a.data, b.data = b.data, a.data; a.data = x.data; y.backward()",
        "a = x.detach(); y = (x * a).sum(); a.requires_grad_(); y.backward()",
    ],
)
def test_nothing_leaks_from(body):
    python_ok(
        RSS
        + f"""
class F(T.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x); ctx.twice = x * 2
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * ctx.twice
BODY = compile({body!r}, 'body', 'exec')
def step():
    exec(BODY, {{'T': T, 'F': F, 'sys': sys, 'x': T.ones(1000, requires_grad=True)}})
def steps(n):
    for i in range(n):
        step()
        # By itself a free-threaded collector waits until memory has grown.
        i % 100 or gc.collect()
steps(500)
before = rss()
steps(2000)
grown = rss() - before
assert grown < 2e6, f'{{grown}} bytes more'
"""
    )


class Token:
    """Something that a weak reference can watch."""


@pytest.mark.gradiron  # PyTorch keeps this one for ever
def test_a_cycle_through_a_hooks_closure_is_collected():
    token = Token()
    ghost = weakref.ref(token)
    x = leaf([1.0])
    y = x * 2
    y.register_hook(lambda g, keep=(y, token): None)
    del y, token
    gc.collect()
    assert ghost() is None


def test_a_cycle_through_a_leaf_hook_is_collected():
    token = Token()
    ghost = weakref.ref(token)
    x = leaf([1.0])
    x.register_hook(lambda g, keep=(x, token): None)
    del x, token
    gc.collect()
    assert ghost() is None


def test_a_cycle_through_an_attribute_is_collected():
    x = leaf([1.0])
    x.me, x.token = x, Token()
    ghost = weakref.ref(x.token)
    del x
    gc.collect()
    assert ghost() is None


@pytest.mark.gradiron
@on_linux
def test_create_graph_makes_no_cycle_that_stays():
    python_ok(
        RSS
        + """
def step():
    x = T.ones(100_000, requires_grad=True)
    (x * x * x).sum().backward(create_graph=True)
for _ in range(20): step()
before = rss()
for _ in range(200): step()
grown = rss() - before
assert grown < 4e6, f'{grown} bytes more'
"""
    )


@pytest.mark.gradiron
def test_a_gradient_with_a_graph_dies_with_its_leaf():
    x = leaf([1.0, 2.0])
    (x * x).sum().backward(create_graph=True)
    ghost = weakref.ref(x.grad)
    del x
    gc.collect()
    assert ghost() is None


def test_saved_values_are_freed_by_backward():
    token = Token()
    ghost = weakref.ref(token)

    class Keep(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x * 3)
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = leaf([1.0])
    y = Keep.apply(x)
    y.grad_fn.token = token
    del token
    y.backward()
    del y
    gc.collect()
    assert ghost() is None


def test_a_chain_of_a_million_operators():
    python_ok(
        """
x = T.ones(1, requires_grad=True)
y = x
for _ in range(1_000_000):
    y = y + 1
y.backward()
assert y.item() == 1_000_001 and x.grad.item() == 1
del y
y = x
for _ in range(300_000):
    y = y * 1.0
del y
""",
        timeout=300,
    )


@pytest.mark.gradiron
@on_linux
def test_a_long_chain_gives_its_memory_back():
    python_ok(
        RSS
        + """
x = T.ones(1, requires_grad=True)
def chain(n):
    y = x
    for _ in range(n):
        y = y * 1.5 + 0.1
    y.backward()
chain(1000)
before = rss()
chain(300_000)
left = rss() - before
assert left < 30e6, f'{left} bytes stay'
"""
    )


def test_a_wide_graph():
    x = leaf([1.0])
    total = x * 0
    for _ in range(20_000):
        total = total + x * 2
    total.backward()
    assert x.grad.item() == 40_000


def test_two_threads_run_backward_at_once():
    shared = T.ones(50, 50, requires_grad=True)
    middle = (shared @ shared).tanh()
    errors, results = [], []

    def work():
        try:
            for _ in range(20):
                mine = T.full((50,), 0.01, requires_grad=True)
                (g,) = T.autograd.grad((middle @ mine).sum(), mine, retain_graph=True)
                (h,) = T.autograd.grad((middle * 2).sum(), shared, retain_graph=True)
                results.append((g.sum().item(), h.sum().item()))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == [] and len(results) == 80 and len(set(results)) == 1


def test_threads_accumulate_into_one_leaf():
    x = T.ones(10, requires_grad=True)

    def work():
        for _ in range(50):
            (x * 1.0).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert x.grad.tolist() == [200.0] * 10


def test_graphs_may_be_built_and_freed_on_different_threads():
    made = []

    def build():
        x = leaf([1.0])
        y = x
        for _ in range(2000):
            y = y * 1.0
        made.append(y)

    for _ in range(5):
        thread = threading.Thread(target=build)
        thread.start()
        thread.join()
    while made:
        made.pop().backward()


def test_ctrl_c_during_a_long_backward():
    done = python("""
import signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
x = T.ones(100, 100, requires_grad=True)
y = x
for _ in range(1000):
    y = (y @ x) * 0.01
loss = y.sum()
going = threading.Event()
def interrupt():
    going.wait()
    time.sleep(0.15)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    going.set()
    while True:
        loss.backward(retain_graph=True)
except KeyboardInterrupt:
    pass
z = T.ones(2, requires_grad=True)
(z * 2).sum().backward()
assert z.grad.tolist() == [2.0, 2.0]
print('alive')
""")
    assert done.stdout == "alive\n", done.stderr


@pytest.mark.parametrize(
    "code, kinds",
    [
        ("T.zeros(2**40, 2**40)", (RuntimeError,)),
        ("T.empty(2**62, 2)", (RuntimeError,)),
        ("T.empty(10**18)", (RuntimeError,)),
        ("T.zeros(10**18, dtype=T.int8)", (RuntimeError,)),
        ("T.ones(3).expand(10**18, 3).contiguous()", (RuntimeError,)),
        ("T.ones(3).repeat(10**17)", (RuntimeError,)),
        ("T.arange(10**18)", (RuntimeError,)),
        ("T.eye(10**10)", (RuntimeError,)),
        ("T.ones(10**6, 1) @ T.ones(1, 1).expand(1, 10**12)", (RuntimeError,)),
        ("T.randperm(10**18)", (RuntimeError,)),
        ("T.ones(1, 1).expand(2**31, 2**31) + 1", (RuntimeError,)),
        ("T.zeros(2**64)", (TypeError, RuntimeError, OverflowError)),
        ("T.ones(2**63, 2)", (TypeError, RuntimeError, OverflowError)),
        ("T.ones(3).unfold(0, 2**62, 1)", (RuntimeError,)),
        ("T.ones(3).as_strided((2**62, 4), (1, 1))", (RuntimeError,)),
        ("T.ones(3).as_strided((2, 2), (2**62, 2**62))", (RuntimeError,)),
        ("T.ones(3).as_strided((2,), (1,), 2**62)", (RuntimeError,)),
        ("T.ones(3).roll(2**63 - 1).nope", (AttributeError,)),
        ("T.ones(3).view(2**62, 4)", (RuntimeError,)),
        ("T.ones(3).narrow(0, 2**62, 2**62)", (RuntimeError, IndexError)),
        ("T.ones(3)[2**62]", (IndexError,)),
        ("T.ones(3)[2**65]", (IndexError, ValueError, OverflowError)),
        ("T.ones(3).repeat_interleave(2**62)", (RuntimeError,)),
    ],
)
def test_sizes_that_cannot_be(code, kinds):
    with pytest.raises(kinds):
        eval(code, {"T": T})
    assert (T.ones(2) + 1).tolist() == [2.0, 2.0]


@pytest.mark.gradiron
def test_a_failed_allocation_says_how_much():
    with pytest.raises(RuntimeError, match="you tried to allocate 4000000000000000000 bytes"):
        T.empty(10**18)


def test_exit_with_living_graphs_is_quiet():
    done = python("""
import threading
x = T.ones(3, requires_grad=True)
keep = [(x * 2).exp() for _ in range(100)]
keep[0].register_hook(lambda g: keep)
def work():
    global other
    other = (x * 3).sum()
t = threading.Thread(target=work); t.start(); t.join()
""")
    assert (done.returncode, done.stderr) == (0, "")
