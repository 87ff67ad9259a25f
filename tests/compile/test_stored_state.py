"""State that a compiled function reads and replaces: tensors and numbers that calls leave for later ones."""

import gc
import threading

import gradiron as torch
import pytest
from gradiron import nn

PROGRAMS = []


def program(build):
    """Register a function that returns a function of a tensor and of the number of the call, and one that shows its state."""
    PROGRAMS.append(build)
    return build


class Plain:
    def __init__(self, **values):
        self.__dict__.update(values)


class Slotted:
    __slots__ = ("count", "h")


def shown(value):
    if isinstance(value, torch.Tensor):
        return (value.tolist(), str(value.dtype), value.requires_grad, value.is_leaf)
    if isinstance(value, (list, tuple)):
        return (type(value), *map(shown, value))
    if isinstance(value, dict):
        return {key: shown(each) for key, each in value.items()}
    return (type(value), value)


@program
def attribute():
    net = Plain(mem=torch.zeros(3), decay=0.5)

    def f(x, k):
        net.mem = net.decay * net.mem + x
        return net.mem * 2

    return f, lambda: net.mem


@program
def attribute_returned():
    net = Plain(mem=torch.zeros(3))

    def f(x, k):
        net.mem = net.mem * 0.5 + x
        return net.mem

    return f, lambda: net.mem


@program
def attribute_of_a_module():
    class Leaky(nn.Module):
        def __init__(self):
            super().__init__()
            self.mem = torch.zeros(3)
            self.register_buffer("trace", torch.zeros(3))
            self.linear = nn.Linear(3, 3)
            torch.manual_seed(0)
            with torch.no_grad():
                self.linear.weight.copy_(torch.randn(3, 3))
                self.linear.bias.zero_()

        def forward(self, x):
            with torch.no_grad():
                self.mem = 0.9 * self.mem + self.linear(x)
                spikes = (self.mem > 0.5).float()
                self.mem = self.mem - spikes * 0.5
                self.trace = self.trace * 0.5 + spikes
            return spikes

    net = Leaky()
    return lambda x, k: net(x), lambda: (net.mem, net.trace)


@program
def item():
    state = {"h": torch.zeros(3), "steps": 0}

    def f(x, k):
        state["h"] = torch.tanh(state["h"] + x)
        return state["h"] + 1

    return f, lambda: state


@program
def variable():
    h = torch.zeros(3)

    def f(x, k):
        nonlocal h
        h = torch.tanh(h + x)
        return h

    return f, lambda: h


H, COUNT = None, 0


@program
def global_variable():
    global H
    H = torch.zeros(3)

    def f(x, k):
        global H
        H = H * 0.5 + x
        return H + 1

    return f, lambda: H


@program
def elements_of_a_list():
    layers = [torch.zeros(3), torch.ones(3), torch.zeros(3)]

    def f(x, k):
        for i in range(3):
            layers[i] = x = torch.tanh(layers[i] + x)
        return x

    return f, lambda: layers


@program
def last_of_a_list():
    history = [torch.zeros(3)]

    def f(x, k):
        h = history[-1] * 0.5 + x
        history.append(h)
        return h + 1

    return f, lambda: history


@program
def last_of_a_list_replaced():
    history = [torch.zeros(3), torch.ones(3)]

    def f(x, k):
        history[-1] = history[-1] * 0.5 + x
        return history[-1] + 1

    return f, lambda: history


@program
def tuple_of_states():
    net = Plain(state=(torch.zeros(3), torch.ones(3)))

    def f(x, k):
        h, c = net.state
        c = c * 0.5 + torch.tanh(x + h)
        h = torch.sigmoid(x) * torch.tanh(c)
        net.state = (h, c)
        return h

    return f, lambda: net.state


@program
def list_of_states():
    net = Plain(states=[torch.zeros(3), torch.ones(3)])

    def f(x, k):
        net.states = [torch.tanh(h + x) for h in net.states]
        return net.states[0] + net.states[1]

    return f, lambda: net.states


@program
def dict_of_states():
    net = Plain(states={"h": torch.zeros(3), "c": torch.ones(3)})

    def f(x, k):
        old = net.states
        net.states = {"h": old["h"] + x, "c": old["c"] * old["h"]}
        return net.states["c"]

    return f, lambda: net.states


@program
def slots():
    net = Slotted()
    net.h, net.count = torch.zeros(3), 0

    def f(x, k):
        net.h = net.h * 0.5 + x
        net.count += 1
        return net.h

    return f, lambda: (net.h, net.count)


@program
def none_at_first():
    net = Plain(mem=None)

    def f(x, k):
        if net.mem is None:
            net.mem = torch.zeros(3)
        net.mem = net.mem * 0.5 + x
        return net.mem + 1

    return f, lambda: net.mem


@program
def the_input_is_kept():
    net = Plain(last=torch.zeros(3))

    def f(x, k):
        difference = x - net.last
        net.last = x
        return difference

    return f, lambda: net.last


@program
def states_are_shifted():
    net = Plain(a=torch.zeros(3), b=torch.ones(3), c=torch.ones(3) * 2)

    def f(x, k):
        net.a, net.b, net.c = net.b, net.c, x + net.a
        return net.a + net.b

    return f, lambda: (net.a, net.b, net.c)


@program
def two_names():
    net = Plain(a=torch.zeros(3))
    net.b = net.a

    def f(x, k):
        both = net.a * 0.5 + net.b + x
        net.a = net.b = both
        return both + 1

    return f, lambda: (net.a, net.b, net.a is net.b)


@program
def views_of_a_state():
    net = Plain(ring=torch.zeros(4, 3))

    def f(x, k):
        net.ring = torch.cat([net.ring[1:], x[None]])
        return net.ring.mean(0)

    return f, lambda: net.ring


@program
def stored_twice():
    net = Plain(h=torch.zeros(3))

    def f(x, k):
        net.h = net.h + x
        net.h = net.h * 0.5
        return net.h + 1

    return f, lambda: net.h


@program
def written_in_place_and_replaced():
    net = Plain(h=torch.zeros(3))

    def f(x, k):
        net.h.add_(x)
        net.h = net.h * 0.5
        net.h.mul_(2.0)
        return net.h + 1

    return f, lambda: net.h


@program
def running_mean():
    net = Plain(mean=torch.zeros(3), count=0)

    def f(x, k):
        net.count += 1
        net.mean = net.mean + (x - net.mean) / net.count
        return net.mean * 1

    return f, lambda: (net.mean, net.count)


@program
def detached_state():
    w = torch.ones(3, requires_grad=True)
    net = Plain(h=torch.zeros(3))

    def f(x, k):
        h = torch.tanh(net.h * w + x)
        loss = h.square().sum()
        w.grad = None
        loss.backward()
        net.h = h.detach()
        return loss.detach()

    return f, lambda: (net.h, w.grad)


@program
def state_with_a_graph():
    w = torch.full((3,), 0.5, requires_grad=True)
    net = Plain(h=torch.zeros(3))

    def f(x, k):
        net.h = torch.tanh(net.h * w + x)
        return net.h.sum()

    def show():
        (slope,) = torch.autograd.grad(net.h.sum(), w, retain_graph=True)
        return net.h, slope, net.h.grad_fn.name()

    return f, show


@program
def counter():
    net = Plain(count=0)

    def f(x, k):
        net.count += 1
        return x * 2

    return f, lambda: net.count


@program
def counter_of_a_module():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.step, self.last, self.total = 0, 0.0, 1.0

        def forward(self, x):
            self.step += 1
            self.last = x.mean().item()
            self.total = self.total + x[0].item()
            return x * (self.step / 2)

    net = Counting()
    return lambda x, k: net(x), lambda: (net.step, net.last, net.total)


@program
def counter_in_a_dict():
    state = {"n": 3, "t": 0.0}

    def f(x, k):
        state["n"] += 2
        state["t"] = state["t"] + 0.1
        return x * 2

    return f, lambda: state


@program
def counter_in_a_cell():
    count, rate = 0, 1.0

    def f(x, k):
        nonlocal count, rate
        count += 1
        rate *= 0.5
        return x * rate

    return f, lambda: (count, rate)


@program
def global_counter():
    global COUNT
    COUNT = 0

    def f(x, k):
        global COUNT
        COUNT += 1
        return x + COUNT

    return f, lambda: COUNT


@program
def bias_corrected():
    net = Plain(m=torch.zeros(3), v=torch.zeros(3), step=0)

    def f(x, k):
        net.step += 1
        net.m = 0.9 * net.m + 0.1 * x
        net.v = 0.99 * net.v + 0.01 * x * x
        m = net.m / (1 - 0.9**net.step)
        v = net.v / (1 - 0.99**net.step)
        return m / (v.sqrt() + 1e-8)

    return f, lambda: (net.m, net.v, net.step)


@program
def every_third_call():
    net = Plain(count=0, h=torch.zeros(3))

    def f(x, k):
        net.count += 1
        if net.count % 3 == 0:
            net.h = net.h + x
        return net.h * 2

    return f, lambda: (net.count, net.h)


@program
def warmup():
    net = Plain(step=0)

    def f(x, k):
        net.step += 1
        scale = min(1.0, net.step / 8)
        return x * scale

    return f, lambda: net.step


@program
def sums_of_read_numbers():
    net = Plain(total=0.0, n=0)

    def f(x, k):
        net.total += x.sum().item()
        net.n += 1
        return x * 2

    return f, lambda: (net.total, net.n)


@program
def meter():
    class Meter:
        def __init__(self):
            self.sum, self.count, self.average = 0.0, 0, 0.0

        def update(self, value, n=1):
            self.sum += value * n
            self.count += n
            self.average = self.sum / self.count

    average = Meter()

    def f(x, k):
        average.update((x * x).mean().item(), x.shape[0])
        return x * 2

    return f, lambda: (average.sum, average.count, average.average)


@program
def mean_is_returned():
    net = Plain(total=0.0, n=0)

    def f(x, k):
        net.total += x.mean().item() * 0.5
        net.n += 1
        return (x * 2, net.n, net.total)

    return f, lambda: (net.total, net.n)


@program
def numbers_in_a_new_tuple():
    net = Plain(count=0)

    def f(x, k):
        net.count += 1
        return x + 1, [net.count, net.count * 0.5], {"n": -net.count}

    return f, lambda: net.count


@program
def history_of_numbers():
    net, history = Plain(count=0), []

    def f(x, k):
        history.append(net.count * 2)
        net.count = net.count + 1
        return x + 1

    return f, lambda: (net.count, history)


def test_state_in_an_argument():
    def step(state, x, history):
        state["h"] = torch.tanh(state["h"] + x)
        state["new"] = state["h"] * 2
        history[0] = x
        return state["h"] + 1

    compiled, found = torch.compile(step), []
    for f in (step, compiled):
        state, history = {"h": torch.zeros(3), "new": None}, [torch.zeros(3)]
        for k in range(8):
            x = torch.tensor([0.5, -1.0, 2.0]) * k
            found.append((shown(f(state, x, history)), shown(state), history[0] is x))
            if k == 5:
                state = {**state, "h": torch.ones(3)}
    assert found[:8] == found[8:]
    assert not compiled._compiled.reasons and compiled._compiled.replays >= 4


def run(build, compile, calls=12):
    f, show = build()
    f = compile(f)
    found = []
    for k in range(calls):
        x = torch.tensor([0.5, -1.0, 2.0]) * (k + 1)
        found.append((shown(f(x, 0)), shown(show())))
    return found, f


@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_state_is_what_it_is_without_compile(build):
    expected, _ = run(build, lambda f: f)
    found, compiled = run(build, torch.compile)
    for k, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one == other, k
    reasons = compiled._compiled.reasons
    assert not reasons, reasons
    assert compiled._compiled.replays >= 5, torch._dynamo.explain(compiled)


@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_state_with_the_same_input_object(build):
    x = torch.tensor([0.5, -1.0, 2.0])
    both = []
    for compile in (lambda f: f, torch.compile):
        f, show = build()
        f = compile(f)
        both.append([(shown(f(x, 0)), shown(show())) for _ in range(9)])
    assert both[0] == both[1]
    gc.collect()


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_a_learning_rate_that_the_step_computes(optimizer):
    def training(compile):
        torch.manual_seed(0)
        model, net = nn.Linear(3, 2), Plain(step=0)
        rule = getattr(torch.optim, optimizer)(model.parameters(), lr=0.1)

        def step(x):
            net.step += 1
            for group in rule.param_groups:
                group["lr"] = 0.1 * min(1.0, net.step / 5)
            rule.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            rule.step()
            return loss.detach()

        f = compile(step)
        losses = [f(torch.ones(2, 3)).item() for _ in range(12)]
        return losses, [p.tolist() for p in model.parameters()], rule.param_groups[0]["lr"], f

    *one, _ = training(lambda f: f)
    *other, compiled = training(torch.compile)
    assert one == other
    assert compiled._compiled.replays >= 5, compiled._compiled.reasons


def test_a_scheduler_inside_of_the_step():
    def training(compile):
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        rule = torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = torch.optim.lr_scheduler.ExponentialLR(rule, 0.9)

        def step(x):
            rule.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            rule.step()
            scheduler.step()
            return loss.detach()

        f = compile(step)
        losses = [f(torch.ones(2, 3)).item() for _ in range(12)]
        return losses, scheduler.get_last_lr(), scheduler.state_dict(), f

    *one, _ = training(lambda f: f)
    *other, compiled = training(torch.compile)
    assert one == other
    assert compiled._compiled.replays >= 5, compiled._compiled.reasons


def test_two_threads_keep_their_state_apart():
    class Net:
        def __init__(self):
            self.h, self.count = torch.zeros(3), 0

        def go(self, x):
            self.count += 1
            self.h = self.h * 0.5 + x * self.count
            return self.h

    def expected():
        net = Net()
        return [net.go(torch.ones(3)).tolist() for _ in range(40)]

    compiled, found = torch.compile(Net.go), {}

    def work(number):
        net = Net()
        found[number] = [compiled(net, torch.ones(3)).tolist() for _ in range(40)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[number] == expected() for number in range(3))


def test_an_error_in_the_call_leaves_ordinary_numbers():
    net, total = Plain(count=0, words={}), 0

    def f(x):
        nonlocal total
        net.count += 1
        total += 2
        net.words["n"] = (net.count, total)
        return x[:, 3] if len(net.words["n"]) == 2 and x.shape[0] == 1 else x * 2

    compiled = torch.compile(f)
    for k in range(8):
        if k % 3:
            compiled(torch.ones(3))
        else:
            with pytest.raises(IndexError):
                compiled(torch.ones(1))
        assert net.count == k + 1 and type(net.count) is int and type(total) is int and total == 2 * (k + 1)
        assert list(map(type, net.words["n"])) == [int, int] and net.words["n"] == (net.count, total)


def test_memory_does_not_grow():
    net = Plain(h=torch.zeros(3), count=0)

    def f(x, t):
        net.count += 1
        net.h = net.h * 0.5 + x * t
        return net.h

    compiled, x = torch.compile(f, fullgraph=True), torch.ones(3)
    for k in range(50):
        compiled(x, k * 0.5)
    gc.collect()
    before = len(gc.get_objects())
    for k in range(5000):
        compiled(x, k * 0.5)
    gc.collect()
    assert len(gc.get_objects()) < before + 50
    assert compiled._compiled.replays >= 5040
