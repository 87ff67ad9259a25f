"""Captured calls: kernels that ran while they were captured, replayed on other tensors, with all that the call changed."""

import gc
import os
import signal
import sys
import threading
import time

import pytest

from library import T

pytestmark = pytest.mark.gradiron
core = getattr(T, "_core", None)
nn, F, optim = T.nn, T.nn.functional, T.optim


def capture(call, known, *args):
    """The program of a call with its results, which are tensors, lists of them, or None."""
    core.begin_capture(True)
    try:
        results = call(*args)
    except BaseException:
        core.discard_capture()
        raise
    flat = [] if results is None else [results] if isinstance(results, T.Tensor) else list(results)
    del results
    return core.end_program(list(known), flat), flat


def replay(program, known, numbers=()):
    results = program.replay(tuple(known), tuple(numbers))
    assert isinstance(results, list), results
    return results


def reason(call, known, *args):
    with pytest.raises(RuntimeError) as caught:
        capture(call, known, *args)
    assert not core.is_capturing()
    return str(caught.value)


def network():
    T.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))


# Results


def test_the_captured_call_is_the_call_and_replays_take_other_tensors():
    x, y = T.randn(5, 4), T.randn(4, 3)

    def call(x, y):
        return (x @ y).relu().sum(0)

    program, (first,) = capture(call, [x, y], x, y)
    assert T.equal(first, call(x, y))
    kept = []
    for _ in range(4):
        a, b = T.randn(5, 4), T.randn(4, 3)
        (result,) = replay(program, [a, b])
        kept.append((result, call(a, b)))
        assert result.grad_fn is None and not result.requires_grad and result.is_contiguous()
    assert all(T.equal(result, expected) for result, expected in kept)
    assert len({result.data_ptr() for result, _ in kept}) == 4
    assert program.kernels == 3 and program.bytes > 0 and program.used == (0, 1)


def test_results_that_share_memory_share_it_again():
    x = T.randn(4, 6)

    def call(x):
        y = x * 2
        return y, y[1], y.t(), y.detach(), y.view(-1)[3:], x, x[2], x.T

    def facts(results, x):
        shared = [[a._storage_id() == b._storage_id() for b in (*results, x)] for a in results]
        kinds = [(r.shape, r.stride(), r.storage_offset(), r._is_view(), r._version) for r in results]
        bases = [[r._base is other for other in (*results, x)] for r in results]
        return shared, kinds, bases

    program, first = capture(call, [x], x)
    for a in (T.randn(4, 6), T.randn(4, 6), T.randn(9, 6)[2:6]):
        results = replay(program, [a])
        assert all(T.equal(r, e) for r, e in zip(results, call(a)))
        assert facts(results, a) == facts(call(a), a) and results[6]._base is call(a)[6]._base
        assert results[5] is a
        results[0].add_(1)
        assert T.equal(results[2], results[0].t()) and results[1]._version == results[0]._version
        results[6].zero_()
        assert a[2].eq(0).all()


def test_kinds_of_results():
    x = T.randn(3, 4)

    def call(x):
        leaf = T.zeros(2, requires_grad=True)
        return x.to(T.float16), x > 0, T.empty(0), (x + 1j).conj(), x.t() + 1, leaf, x.expand(2, 3, 4)

    program, first = capture(call, [x], x)
    for a, b in zip(first, replay(program, [x])):
        kind = lambda t: (t.dtype, t.shape, t.stride(), t.is_conj(), t.requires_grad, t.is_leaf, t._version)
        assert kind(a) == kind(b) and T.equal(a, b)


def test_numbers_of_python_become_constants():
    x = T.randn(3)

    def call(x):
        return x * T.tensor([1.0, 2.0, 3.0]) + T.tensor(4), x[[2, 0]], T.tril_indices(3, 3)

    program, _ = capture(call, [x], x)
    T.full((1000,), 9.0)
    for _ in range(2):
        a = T.randn(3)
        assert all(T.equal(r, e) for r, e in zip(replay(program, [a]), call(a)))


def test_random_numbers_go_on():
    x = T.ones(50)
    program, _ = capture(lambda: F.dropout(x, 0.5) + T.randn(50), [x])
    T.manual_seed(5)
    expected = [F.dropout(x, 0.5) + T.randn(50) for _ in range(3)]
    T.manual_seed(5)
    assert all(T.equal(replay(program, [x])[0], e) for e in expected)


# Training steps

OPTIMIZERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "plain SGD": lambda p: optim.SGD(p, lr=0.1),
    "Adam": lambda p: optim.Adam(p, lr=0.01),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01, amsgrad=True),
    "Adamax": lambda p: optim.Adamax(p, lr=0.01),
    "NAdam": lambda p: optim.NAdam(p, lr=0.01),
    "RAdam": lambda p: optim.RAdam(p, lr=0.01),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "Rprop": lambda p: optim.Rprop(p, lr=0.01),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.01),
    "Adadelta": lambda p: optim.Adadelta(p),
    "ASGD": lambda p: optim.ASGD(p, lr=0.01),
}


def tensors_of(model, optimizer, *more):
    states = [t for state in optimizer.state.values() for t in state.values() if isinstance(t, T.Tensor)]
    return [*more, *model.parameters(), *model.buffers(), *states]


def training(optimizer_of, set_to_none=True):
    model = network()
    optimizer = optimizer_of(model.parameters())

    def step(x, y):
        optimizer.zero_grad(set_to_none=set_to_none)
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step


def batches(count):
    T.manual_seed(1)
    return [(T.randn(4, 8), T.randn(4, 1)) for _ in range(count)]


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_replayed_step_trains_like_the_step(name, set_to_none):
    runs = []
    for is_captured in (False, True):
        model, optimizer, step = training(OPTIMIZERS[name], set_to_none)
        data, losses, program = batches(8), [], None
        for at, (x, y) in enumerate(data):
            if not is_captured or at < 2:
                loss = step(x, y)
            elif program is None:
                program, (loss,) = capture(step, tensors_of(model, optimizer, x, y), x, y)
            else:
                (loss,) = replay(program, tensors_of(model, optimizer, x, y))
            losses.append(loss.item())
            assert loss.requires_grad and loss.grad_fn.name() == "MseLossBackward0"
        known = tensors_of(model, optimizer)
        grads = [p.grad for p in model.parameters()]
        runs.append((losses, known + grads, [t._version for t in known + grads]))
    (eager, tensors, versions), (replayed, others, other_versions) = runs
    assert eager == replayed and versions == other_versions
    assert all(T.equal(a, b) for a, b in zip(tensors, others))


def test_a_graph_that_the_call_freed_is_freed_in_a_replay():
    model, optimizer, step = training(OPTIMIZERS["SGD"])
    x, y = batches(1)[0]
    step(x, y)
    known = tensors_of(model, optimizer, x, y)
    program, (first,) = capture(step, known, x, y)
    (second,) = replay(program, known)
    for loss in (first, second):
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            loss.backward()
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            (loss * 2).backward()
        assert loss.grad_fn.name() == "MseLossBackward0"
    assert first.grad_fn is not second.grad_fn


def test_gradients_of_gradients_inside_of_the_call():
    x, w = T.randn(4), T.randn(4, requires_grad=True)

    def call(x):
        y = (w * x).sin().sum()
        (g,) = T.autograd.grad(y, w, create_graph=True)
        (h,) = T.autograd.grad(g.square().sum(), w)
        return h

    program, _ = capture(call, [x, w], x)
    for _ in range(3):
        a = T.randn(4)
        assert T.equal(replay(program, [a, w])[0], call(a))


# `.grad`


def grad_kinds(first, call):
    """Versions, values and identities of `w.grad` over calls that are captured in the third."""
    found = []
    for is_captured in (False, True):
        T.manual_seed(0)
        w, program, kept, facts = T.randn(3, requires_grad=True), None, [], []
        first(w)
        for at in range(6):
            x, before = T.full((3,), at + 1.0), w.grad
            if not is_captured or at < 2:
                call(w, x)
            elif at == 2:
                program, _ = capture(lambda: call(w, x), [x, w])
            else:
                replay(program, [x, w])
            grad = w.grad
            kept.append(grad)
            facts.append(None if grad is None else (grad is before, grad.tolist(), grad._version, grad.stride()))
        facts.append([None if grad is None else grad.tolist() for grad in kept])
        found.append(facts)
    assert found[0] == found[1]


def backward(w, x):
    (w * x).sum().backward()


def test_a_gradient_is_added_to():
    grad_kinds(lambda w: None, backward)


def test_a_gradient_is_new_in_each_call():
    def call(w, x):
        w.grad = None
        backward(w, x)

    grad_kinds(lambda w: None, call)


def test_a_gradient_is_dropped_at_the_end():
    def call(w, x):
        backward(w, x)
        with T.no_grad():
            w.sub_(w.grad)
        w.grad = None

    grad_kinds(lambda w: None, call)


def test_a_gradient_is_read_and_then_dropped():
    def call(w, x):
        old = w.grad
        w.grad = None
        backward(w, x + old)

    grad_kinds(lambda w: setattr(w, "grad", T.ones(3)), call)


def test_a_gradient_is_set_to_zero_and_added_to():
    def call(w, x):
        w.grad.zero_()
        backward(w, x)

    grad_kinds(lambda w: setattr(w, "grad", T.ones(3)), call)


def test_a_gradient_that_is_a_result_and_one_that_is_given():
    w, x = T.randn(3, requires_grad=True), T.ones(3)

    def call():
        w.grad = None
        backward(w, x)
        return w.grad, w.grad[1:]

    program, _ = capture(call, [x, w])
    first, part = replay(program, [x, w])
    assert first is w.grad and part._base is first
    second, _ = replay(program, [x, w])
    assert second is w.grad and second is not first and second.data_ptr() != first.data_ptr()

    program, _ = capture(lambda: setattr(w, "grad", x), [x, w])
    other = T.ones(3)
    replay(program, [other, w])
    assert w.grad is other


def test_the_memory_of_a_gradient_is_used_again_unless_somebody_holds_it():
    w, x = T.randn(300, requires_grad=True), T.ones(300)

    def call():
        w.grad = None
        backward(w, x)

    call()
    program, _ = capture(call, [x, w])
    replay(program, [x, w])
    address = w.grad.data_ptr()
    replay(program, [x, w])
    assert w.grad.data_ptr() == address
    for hold in (lambda: w.grad, lambda: w.grad[1:], lambda: w.grad.detach(), lambda: w.grad.numpy()):
        held = hold()
        address = w.grad.data_ptr()
        replay(program, [x * 2, w])
        assert w.grad.data_ptr() != address and float(held[1]) == 1.0 and w.grad[1].item() == 2.0
        del held
        replay(program, [x, w])


def test_a_gradient_that_is_missing_or_of_another_kind_is_refused():
    w, x = T.randn(3, requires_grad=True), T.ones(3)
    backward(w, x)
    program, _ = capture(lambda: backward(w, x), [x, w])
    w.grad = None
    assert "has no .grad" in program.replay((x, w), ())
    assert w.grad is None
    backward(w, x)
    fresh, _ = capture(lambda: (setattr(w, "grad", None), backward(w, x)) and None, [x, w])
    replay(fresh, [x, w])
    v = T.randn(3, requires_grad=True)
    first, _ = capture(lambda: backward(v, x), [x, v])
    assert "that had none" in first.replay((x, v), ())


# What a call writes


def test_writes_in_place_and_their_versions():
    x, y = T.randn(4), T.randn(4)

    def call(x, y):
        x.add_(y)
        x[1:3].mul_(2)
        y.view(2, 2).t()[0].zero_()
        y.data.mul_(3)

    program, _ = capture(call, [x, y], x, y)
    a, b = T.randn(4), T.randn(4)
    c, d = a.clone(), b.clone()
    call(a, b)
    before = c._version, d._version
    replay(program, [c, d])
    assert T.equal(a, c) and T.equal(b, d)
    assert (c._version - before[0], d._version - before[1]) == (2, 1)
    w = T.ones(4, requires_grad=True)
    saved = (w * c).sum()
    replay(program, [c, d])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.backward()


def test_running_statistics_and_modes():
    T.manual_seed(0)
    results = []
    for is_captured in (False, True):
        T.manual_seed(0)
        model = nn.Sequential(nn.Conv1d(2, 3, 3), nn.BatchNorm1d(3), nn.ReLU())
        known = [*model.parameters(), *model.buffers()]
        program, outputs = None, []
        for at in range(5):
            x = T.randn(4, 2, 8)
            with T.no_grad():
                if not is_captured or at == 0:
                    y = model(x)
                elif at == 1:
                    program, (y,) = capture(model, [x, *known], x)
                else:
                    (y,) = replay(program, [x, *known])
            outputs.append(y)
        results.append([*outputs, *known])
    assert all(T.equal(a, b) for a, b in zip(*results))


def test_what_a_replay_is_given_may_lie_elsewhere():
    data = T.randn(20, 3)

    def call(x, y):
        y.add_(x)
        return x * 2, x[1:]

    x, y = data[2:5], T.zeros(3, 3)
    program, _ = capture(call, [x, y], x, y)
    for a, b in ((data[7:10], T.zeros(3, 3)), (T.randn(3, 3), T.zeros(8, 3)[4:7]), (data[0:3], T.zeros(3, 3))):
        expected = b + a
        results = replay(program, [a, b])
        assert T.equal(b, expected) and T.equal(results[0], a * 2) and T.equal(results[1], a[1:])
        assert results[1].data_ptr() == a[1:].data_ptr()


def test_other_kinds_of_tensors_are_refused_before_anything_runs():
    x, y, w = T.zeros(3, 4), T.randn(3, 4), T.ones(4, requires_grad=True)

    def call(x, y):
        with T.no_grad():
            x.add_(y * w)

    program, _ = capture(call, [x, y, w], x, y)
    others = [
        (T.zeros(4, 4), y, w),
        (x.double(), y, w),
        (T.zeros(4, 3).t(), y, w),
        (x, T.randn(3, 1).expand(3, 4), w),
        (x, x, w),
        (x, y, T.ones(4)),
        (x, y, w * 2),
        (x, x.view(3, 4), w),
    ]
    x.zero_()
    for known in others:
        assert isinstance(program.replay(known, ()), str), known
        assert x.eq(0).all()
    hooked = T.ones(4, requires_grad=True)
    hooked.register_hook(lambda g: g)
    assert isinstance(program.replay((x, y, hooked), ()), str)
    replay(program, [x, y, w])
    with pytest.raises(ValueError, match="too few tensors"):
        program.replay((x, y), ())
    with pytest.raises(TypeError, match="needs tensors"):
        program.replay((x, y, 3), ())


def test_tensors_that_share_memory_must_share_it_again():
    x = T.arange(8.0)

    def call(a, b):
        a.mul_(2)
        b.add_(1)

    program, _ = capture(call, [x[:4], x[2:6]], x[:4], x[2:6])
    y, z = T.arange(10.0), T.arange(10.0)
    replay(program, [y[1:5], y[3:7]])
    call(z[1:5], z[3:7])
    assert T.equal(y, z)
    assert isinstance(program.replay((y[1:5], y[4:8]), ()), str)
    assert isinstance(program.replay((y[1:5], z[3:7]), ()), str)


def test_what_no_kernel_reaches_is_not_needed():
    x, y, z = T.randn(3), T.randn(3), T.randn(3)
    program, _ = capture(lambda: x + z, [x, y, z])
    assert program.used == (0, 2)
    assert T.equal(replay(program, [x, None, z])[0], x + z)


# Live numbers


class Live(float):
    """A number that knows its place among the live ones."""

    def __new__(cls, value, live_index):
        self = super().__new__(cls, value)
        self.live_index = live_index
        return self


def test_a_learning_rate_is_taken_anew():
    def trained(captured):
        model = network()
        optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        data, program = batches(6), None
        for at, (x, y) in enumerate(data):
            rate = 0.1 / (at + 1)

            def step():
                optimizer.zero_grad()
                F.mse_loss(model(x), y).backward()
                optimizer.step()

            optimizer.param_groups[0]["lr"] = Live(rate, 0) if captured and at == 1 else rate
            if not captured or at == 0:
                step()
            elif at == 1:
                program, _ = capture(step, tensors_of(model, optimizer, x, y))
            else:
                replay(program, tensors_of(model, optimizer, x, y), [rate])
        if captured:
            with pytest.raises(RuntimeError, match="too few tensors or numbers"):
                program.replay(tuple(tensors_of(model, optimizer, x, y)), ())
        return program, [p.detach() for p in model.parameters()]

    (_, eager), (program, replayed) = trained(False), trained(True)
    assert program.numbers == (0,)
    assert all(T.equal(a, b) for a, b in zip(eager, replayed))


# Reasons


def test_reading_elements_is_a_reason_and_the_call_goes_on():
    x = T.ones(3)
    for read in (lambda: x.sum().item(), lambda: x.tolist(), lambda: x.nonzero(), lambda: x[x > 0], lambda: bool(x.sum() > 0)):
        core.begin_capture(True)
        assert core.capture_reason() is None
        y = x + 1
        found = read()
        assert "reads or writes elements" in core.capture_reason()
        z = y * 2
        with pytest.raises(RuntimeError, match=r"reads or writes elements .* nonzero"):
            core.end_program([x], [z])
        assert z.tolist() == [4, 4, 4] and str(found) == str(read())
        assert not core.is_capturing() and core.capture_reason() is None


def test_reasons():
    x, y, w = T.ones(3), T.ones(3), T.ones(3, requires_grad=True)
    kept = []
    assert "neither was given nor read" in reason(lambda: x + y, [x])
    assert "outlives it" in reason(lambda: kept.append(x + y), [x, y])
    assert "the .grad of a tensor of shape [3]" in reason(lambda: backward(w, x), [x])
    assert "leads to a leaf" in reason(lambda: T.ones(3, requires_grad=True) * x, [x])
    assert "another memory or shape" in reason(lambda: setattr(x, "data", T.zeros(3)), [x])
    assert "another memory or shape" in reason(lambda: [x.unsqueeze_(0)] and None, [x])
    x.squeeze_(0)
    assert "another place in the graph" in reason(lambda: [x.mul_(w)] and None, [x, w])
    assert "require gradients" in reason(lambda: [y.requires_grad_()] and None, [y])
    assert "require no gradients" in reason(lambda: [y.requires_grad_(False)] and None, [y])
    assert "resized" in reason(lambda: (y + 1).resize_(9).add_(1), [y])
    z = w * 2
    assert "retain" in reason(lambda: z.retain_grad(), [z])
    assert "the hooks of a tensor" in reason(lambda: w.register_hook(abs) and None, [w])


def test_garbage_is_collected_before_a_tensor_counts_as_kept():
    x = T.ones(3)

    def call():
        cycle = [x + 1]
        cycle.append(cycle)
        return x * 2

    gc.disable()
    try:
        program, _ = capture(call, [x])
    finally:
        gc.enable()
    assert replay(program, [x])[0].tolist() == [2, 2, 2]


def test_an_exception_leaves_nothing_behind():
    x = T.ones(3)
    with pytest.raises(ZeroDivisionError):
        capture(lambda: 1 / 0, [x])
    assert not core.is_capturing()
    program, _ = capture(lambda: x + 1, [x])
    replay(program, [x])


def test_the_captured_call_computes_as_without_a_capture():
    """What operators ask of memory, such as whether others hold it, has the same answers."""
    addresses = []
    for is_captured in (False, True):
        model, optimizer, step = training(OPTIMIZERS["Adam"])
        (x, y), (a, b) = batches(2)
        step(x, y)
        gc.collect()
        if is_captured:
            capture(step, tensors_of(model, optimizer, a, b), a, b)
        else:
            step(a, b)
        addresses.append([(p.grad.is_contiguous(), p.grad._version, core.storage_holders(p.grad)) for p in model.parameters()])
    assert addresses[0] == addresses[1]


# Errors, threads and processes


def test_an_error_in_a_replay_is_that_of_the_operator_and_names_the_line():
    table, index = T.randn(4, 3), T.tensor([1, 2])
    counter = T.zeros(())

    def call():
        counter.add_(1)
        return F.embedding(index, table)

    program, _ = capture(call, [index, table, counter])
    with pytest.raises((IndexError, RuntimeError), match="out of range|out of bounds") as caught:
        program.replay((T.tensor([1, 9]), table, counter), ())
    if sys.version_info >= (3, 11):
        (note,) = caught.value.__notes__
        assert "captured at" in note and "test_captured_programs.py" in note and "F.embedding" in note
    assert counter.item() == 2 and counter._version == 2
    assert T.equal(replay(program, [T.tensor([0, 3]), table, counter])[0], table[[0, 3]])


def test_a_program_is_not_entered_twice():
    x = T.randn(512, 512)

    def call(x):
        for _ in range(6):
            x = x @ x * 0.01
        return x

    program, (expected,) = capture(call, [x], x)
    found = []

    def work():
        for _ in range(10):
            found.append(program.replay((x,), ()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    results = [r for r in found if isinstance(r, list)]
    assert len(found) == 40 and results and all(T.equal(r[0], expected) for r in results)
    assert {r for r in found if isinstance(r, str)} <= {"it is being replayed already"}


def test_other_threads_are_not_captured_and_capture_their_own():
    x, found = T.ones(1000), []

    def work(k):
        program, _ = capture(lambda: (x * k).sum(), [x])
        for _ in range(50):
            (y,) = replay(program, [x])
        found.append((k, y.item()))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(found) == [(k, 1000.0 * k) for k in range(4)]


def test_a_replay_inside_of_a_capture_is_refused():
    x = T.ones(3)
    program, _ = capture(lambda: x + 1, [x])
    core.begin_capture(True)
    assert "while another call is captured" in program.replay((x,), ())
    core.discard_capture()


def test_ctrl_c_ends_a_long_replay():
    x = T.randn(300, 300)

    def call(x):
        for _ in range(3000):
            x = x @ x * 0.001
        return x

    program, _ = capture(lambda: call(x), [x])
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(100):
            program.replay((x,), ())
    assert time.monotonic() - began < 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_forked_process_replays():
    x = T.randn(64, 64)
    program, (expected,) = capture(lambda: (x @ x).relu().sum(0), [x])
    child = os.fork()
    if child == 0:
        ok = T.equal(replay(program, [x])[0], expected)
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_program_outlives_what_it_was_captured_with():
    def make():
        x = T.randn(1000)
        return capture(lambda: (x + 1) * 2, [x])[0]

    program = make()
    gc.collect()
    y = T.randn(1000)
    assert T.equal(replay(program, [y])[0], (y + 1) * 2)


# Memory


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_many_replays_need_no_more_memory():
    model, optimizer, step = training(OPTIMIZERS["Adam"])
    x, y = batches(1)[0]
    step(x, y)
    known = tuple(tensors_of(model, optimizer, x, y))
    program, _ = capture(step, known, x, y)
    for _ in range(1000):
        program.replay(known, ())
    before = resident()
    for _ in range(100_000):
        program.replay(known, ())
    assert resident() - before < 1 << 20


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_programs_give_their_memory_back():
    x = T.ones(1 << 18)

    def make():
        return capture(lambda: ((x + 1) * 2).exp().sum(), [x])[0]

    for _ in range(5):
        replay(make(), [x])
    before = resident()
    for _ in range(200):
        replay(make(), [x])
    assert resident() - before < 8 << 20


def test_each_replay_checks_probabilities():
    @T.compile(fullgraph=True)
    def loss(x, target):
        return F.binary_cross_entropy(x, target), T.bernoulli(target)

    for _ in range(4):
        x, target = T.rand(3, 5), T.rand(3, 5)
        T.manual_seed(0)
        found = loss(x, target)
        T.manual_seed(0)
        assert T.equal(found[0], F.binary_cross_entropy(x, target)) and T.equal(found[1], T.bernoulli(target))
    assert T._dynamo.explain(loss).replays == 2
    for x, target, name in ((x - 1, target, "input"), (x, target + 1, "target"), (x, target * float("nan"), "target")):
        with pytest.raises(RuntimeError, match=f"all elements of {name} should be between 0 and 1"):
            loss(x, target)
    assert T._dynamo.explain(loss).replays >= 2
