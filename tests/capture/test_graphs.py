"""`torch.cuda.CUDAGraph` and `make_graphed_callables`: steps that were captured once and run again, on both devices."""

import threading

import pytest

from library import T

nn, F = T.nn, T.nn.functional


def capture(step):
    graph = T.cuda.CUDAGraph()
    with T.cuda.graph(graph):
        result = step()
    return graph, result


def network(device, *extra):
    T.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), *extra, nn.Tanh(), nn.Linear(16, 1)).to(device)


def values_equal(a, b):
    return T.allclose(a, b, rtol=1e-6, atol=1e-7)


OPTIMIZERS = {
    "SGD": lambda p: T.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda p: T.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: T.optim.AdamW(p, lr=0.01, amsgrad=True),
    "RMSprop": lambda p: T.optim.RMSprop(p, lr=0.01),
    "Adagrad": lambda p: T.optim.Adagrad(p, lr=0.01),
    "NAdam": lambda p: T.optim.NAdam(p, lr=0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_captured_training_step_trains_like_the_step(name, device):
    T.manual_seed(1)
    data = [(T.randn(4, 8).to(device), T.randn(4, 1).to(device)) for _ in range(8)]
    results = []
    for captured in (False, True):
        model = network(device)
        optimizer = OPTIMIZERS[name](model.parameters())
        x, y = data[0][0].clone(), data[0][1].clone()

        def step():
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        for _ in range(3):
            step()
        if captured:
            optimizer.zero_grad()
            graph, loss = capture(step)
        losses = []
        for new_x, new_y in data:
            x.copy_(new_x)
            y.copy_(new_y)
            if captured:
                graph.replay()
            else:
                loss = step()
            losses.append(loss.item())
        results.append((losses, [p.detach().cpu().clone() for p in model.parameters()]))
    (eager, weights), (replayed, own) = results
    assert eager == replayed
    assert all(T.equal(a, b) for a, b in zip(weights, own))


def test_a_capture_computes_nothing(device):
    x = T.zeros(3, device=device)
    graph, _ = capture(lambda: x.add_(1))
    assert x.tolist() == [0, 0, 0]
    graph.replay()
    graph.replay()
    assert x.tolist() == [2, 2, 2]


def test_random_numbers_go_on(device):
    x = T.ones(50, device=device)
    graph, y = capture(lambda: F.dropout(x, 0.5))
    T.manual_seed(5)
    expected = [F.dropout(x, 0.5).tolist() for _ in range(3)]
    T.manual_seed(5)
    got = []
    for _ in range(3):
        graph.replay()
        got.append(y.tolist())
    assert got == expected and got[0] != got[1]


def test_views_writes_and_several_outputs():
    x = T.arange(6.0).reshape(2, 3)

    def step():
        y = x.clone()
        y[0] *= 2
        y.t()[1].add_(10)
        return y, y.sum(0), y.cumsum(1)

    graph, outputs = capture(step)
    for shift in (0, 1, 2):
        x.add_(shift)
        graph.replay()
        for a, b in zip(outputs, step()):
            assert T.equal(a, b)


def test_a_tensor_that_went_away_is_kept_by_the_graph():
    x = T.ones(4)
    graph = T.cuda.CUDAGraph()
    with T.cuda.graph(graph):
        other = T.full((4,), 2.0)
        y = x * other
        del other
    big = T.full((4,), 3.0)
    with T.cuda.graph(second := T.cuda.CUDAGraph()):
        z = x + big
    del big
    T.full((4,), 9.0)
    graph.replay()
    second.replay()
    assert y.tolist() == [2, 2, 2, 2] and z.tolist() == [4, 4, 4, 4]


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.sum().item(),
        lambda x: x.tolist(),
        lambda x: bool(x.sum() > 0),
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
        lambda x: str(x),
        lambda x: T.tensor([1.0, 2.0]),
        lambda x: x.unique(),
    ],
)
def test_reading_elements_is_refused_and_leaves_nothing_behind(read):
    x = T.ones(3)
    with pytest.raises(RuntimeError, match="operation not permitted when stream is capturing"):
        capture(lambda: read(x))
    assert not T.cuda.is_current_stream_capturing()
    graph, y = capture(lambda: x + 1)
    graph.replay()
    assert y.tolist() == [2, 2, 2]


def test_states_and_errors():
    graph = T.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="Called CUDAGraph::replay without a preceding successful capture"):
        graph.replay()
    with T.cuda.graph(graph):
        assert T.cuda.is_current_stream_capturing()
        with pytest.raises(RuntimeError, match="capturing already"):
            T.cuda.CUDAGraph().capture_begin()
    assert not T.cuda.is_current_stream_capturing()
    with pytest.raises(RuntimeError, match="already owns a captured graph"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match="Unknown capture error mode"):
        T.cuda.CUDAGraph().capture_begin(capture_error_mode="sometimes")
    with pytest.raises(ZeroDivisionError):
        capture(lambda: 1 / 0)
    assert not T.cuda.is_current_stream_capturing()
    graph.reset()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()


def test_resizing_is_refused():
    x = T.ones(3)

    def grow():
        y = x + 1
        y.resize_(100)
        return y.fill_(1)

    with pytest.raises(RuntimeError, match="not permitted when stream is capturing"):
        capture(grow)


def test_graphs_in_several_threads():
    x = T.ones(1000)
    found = []

    def work(k):
        graph, y = capture(lambda: (x * k).sum())
        for _ in range(50):
            graph.replay()
        found.append((k, y.item()))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(found) == [(k, 1000.0 * k) for k in range(4)]


def test_other_threads_are_not_captured():
    x, seen = T.ones(3), []
    with T.cuda.graph(T.cuda.CUDAGraph()):
        thread = threading.Thread(target=lambda: seen.append((x + 1).tolist()))
        thread.start()
        thread.join()
    assert seen == [[2, 2, 2]]


def test_a_graphed_module_is_a_drop_in_replacement(device):
    plain, graphed = network(device), network(device)
    sample = T.randn(4, 8, device=device, requires_grad=True)
    graphed = T.cuda.make_graphed_callables(graphed, (sample,))
    for _ in range(3):
        x = T.randn(4, 8, device=device)
        a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
        for model, own in ((plain, a), (graphed, b)):
            model.zero_grad()
            model(own).square().sum().backward()
        assert values_equal(a.grad, b.grad)
        for p, q in zip(plain.parameters(), graphed.parameters()):
            assert values_equal(p.grad, q.grad)
    assert values_equal(plain(x), graphed(x))
    plain.eval(), graphed.eval()
    assert values_equal(plain(T.ones(7, 8, device=device)), graphed(T.ones(7, 8, device=device)))


def test_several_graphed_callables():
    one, two = T.cuda.make_graphed_callables(
        (lambda x: (x.sin(), x * 2), nn.Linear(3, 2)),
        ((T.ones(2, 3, requires_grad=True),), (T.ones(2, 3, requires_grad=True),)),
    )
    x = T.randn(2, 3, requires_grad=True)
    a, b = one(x)
    two(a + b).sum().backward()
    expected = T.autograd.grad(F.linear(x.sin() + x * 2, two.weight, two.bias).sum(), x)[0]
    assert T.allclose(x.grad, expected)


def test_bad_arguments_of_graphed_callables():
    with pytest.raises(TypeError, match="must contain only Tensors"):
        T.cuda.make_graphed_callables(lambda x: x, (3,))
    hooked = nn.Linear(2, 2)
    hooked.register_forward_hook(lambda *args: None)
    with pytest.raises(RuntimeError, match="Modules must not have hooks registered"):
        T.cuda.make_graphed_callables(hooked, (T.ones(2),))


def test_graphs_give_their_memory_back():
    if not hasattr(T, "_core"):
        pytest.skip("counts gradiron's own memory")
    x = T.ones(1 << 16)
    for _ in range(3):
        graph, y = capture(lambda: ((x + 1) * 2).exp().sum())
        graph.replay()
    bytes_inside = graph._captured.bytes
    assert 0 < bytes_inside <= 3 * x.nbytes
    import resource

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = peak()
    for _ in range(200):
        graph, y = capture(lambda: ((x + 1) * 2).exp().sum())
        graph.replay()
    assert peak() - before < 20_000
