"""Rows longer than one invocation should walk: scans, softmax, dot products, reversals and repetitions of one long line."""

import pytest

from library import NO_GPU, T

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")]

LONG = 200_003
SHAPES = {"a line": ((LONG,), 0), "rows": ((3, 70_001), 1), "columns": ((70_001, 2), 0), "blocks": ((2, 1024), 1)}


def numbers(shape, kind="float32"):
    T.manual_seed(1)
    x = T.randn(shape) * 5
    x.reshape(-1)[2] = x.reshape(-1)[1]
    return x.to(getattr(T, kind))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["float32", "int64", "int32", "uint8", "float16"])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_running_extremes(name, kind, shape):
    size, dim = SHAPES[shape]
    x = numbers(size).abs().to(getattr(T, kind)) if kind == "uint8" else numbers(size, kind)
    for a, b in zip(getattr(x, name)(dim), getattr(x.cuda(), name)(dim)):
        assert T.equal(a, b.cpu())


def test_running_extremes_with_nan():
    x = numbers((LONG,))
    x[LONG // 2] = x[LONG // 2 + 5] = float("nan")
    values, places = x.cuda().cummax(0)
    assert T.equal(places.cpu(), x.cummax(0).indices)
    assert values[LONG // 2 - 1 :].isnan().tolist() == [False] + [True] * (LONG - LONG // 2)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["cumsum", "logcumsumexp"])
def test_running_sums(name, shape):
    size, dim = SHAPES[shape]
    x = numbers(size)
    x.reshape(-1)[:2] = float("-inf") if name == "logcumsumexp" else 0.0
    expected = getattr(x.double(), name)(dim)
    assert T.allclose(getattr(x.cuda(), name)(dim).cpu().double(), expected, rtol=1e-5, atol=2e-2 * (name == "cumsum"))
    y = numbers(size).abs().cuda().requires_grad_()
    getattr(y, name)(dim).sum().backward()
    z = y.detach().cpu().double().requires_grad_()
    getattr(z, name)(dim).sum().backward()
    assert T.allclose(y.grad.cpu().double(), z.grad, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("log", [False, True])
def test_softmax_of_millions(log):
    x = numbers((2**20 + 77,))
    call = T.log_softmax if log else T.softmax
    y, z = x.cuda().requires_grad_(), x.double().requires_grad_()
    got, expected = call(y, 0), call(z, 0)
    assert T.allclose(got.detach().cpu().double(), expected.detach(), rtol=1e-5, atol=0 if not log else 1e-5)
    weights = T.linspace(0, 1, x.numel())
    (got * weights.cuda()).sum().backward()
    (expected * weights).sum().backward()
    assert T.allclose(y.grad.cpu().double(), z.grad, rtol=1e-3, atol=1e-5 if log else 1e-12)
    columns = T.stack([x, -x], 1)
    assert T.allclose(call(columns.cuda(), 0)[:, 0].cpu().double(), expected.detach(), rtol=1e-5, atol=1e-5 * log)


def test_softmax_of_rows_from_two_to_the_24():
    x = T.zeros(2**24 + 3, device="cuda")
    x[-1] = 20.0
    y = x.softmax(0)
    last = 485165195.40979 / (485165195.40979 + 2**24 + 2)
    assert abs(y[-1].item() / last - 1) < 1e-5 and abs(y.sum().item() - 1) < 1e-5


@pytest.mark.parametrize(
    "a, b",
    [((1, 2**20 + 5), (2**20 + 5, 1)), ((3, 100_003), (100_003, 2)), ((30, 40_001), (40_001, 30)), ((64, 8192), (8192, 64))],
)
def test_products_over_a_long_dimension(a, b):
    x, y = numbers(a) / 5, numbers(b) / 5
    expected = x.double() @ y.double()
    error = 1e-6 * a[1] ** 0.5 * 40
    for left, right in ((x.cuda(), y.cuda()), (x.t().contiguous().cuda().t(), y.t().contiguous().cuda().t())):
        assert (left @ right - expected.float().cuda()).abs().max().item() < error
    start = T.ones(a[0], b[1])
    got = T.addmm(start.cuda(), x.cuda(), y.cuda(), beta=2, alpha=-0.5)
    assert (got.cpu() - (2 - 0.5 * expected)).abs().max().item() < error
    batch = T.stack([x, -x]).cuda() @ y.cuda()
    assert (batch[1].cpu() + expected).abs().max().item() < error


def test_dot_products_of_whole_numbers_are_exact():
    x = (numbers((300_001,)) * 100).long()
    assert T.dot(x.cuda(), x.cuda()).item() == T.dot(x, x).item()
    assert T.dot(x.int().cuda(), x.int().cuda()).item() == T.dot(x.int(), x.int()).item()


@pytest.mark.parametrize("kind", ["float32", "int64", "uint8", "float16", "bool", "complex64"])
@pytest.mark.parametrize(
    "shape, dims", [((1001,), (0,)), ((4, 8), (0,)), ((5, 7, 3), (0, 2)), ((4, 6, 8), (0, 1, 2)), ((1, 3), (0,))]
)
def test_reversals(kind, shape, dims):
    x = numbers(shape, kind)
    assert T.equal(x.cuda().flip(dims).cpu(), x.flip(dims))
    assert T.equal(x.cuda().transpose(0, -1).flip(dims).cpu(), x.transpose(0, -1).flip(dims))
    assert T.equal(x.cuda()[..., 1:].flip(dims).cpu(), x[..., 1:].flip(dims))
    assert T.equal(x.cuda().flip(()).cpu(), x)


def test_reversals_take_no_room_beside_the_result():
    x = T.zeros(5_000_000, dtype=T.uint8, device="cuda")
    T.cuda.synchronize()
    T.cuda.reset_peak_memory_stats()
    before = T.cuda.memory_allocated()
    y = x.flip(0)
    assert T.cuda.max_memory_allocated() - before <= 1.5 * y.numel()


@pytest.mark.parametrize("repeats", [[2, 0, 3], [0, 0, 0], [0, 1, 0], [1, 1, 1], [3, 0, 0]])
def test_repetitions(repeats):
    x, times = numbers((3, 2)), T.tensor(repeats)
    for dim, input in ((0, x), (1, x.t().contiguous()), (None, x[:, 0])):
        expected = T.repeat_interleave(input, times, dim)
        assert T.equal(T.repeat_interleave(input.cuda(), times.cuda(), dim).cpu(), expected)
        sized = T.repeat_interleave(input.cuda(), times.cuda(), dim, output_size=sum(repeats))
        assert T.equal(sized.cpu(), expected)
    assert T.repeat_interleave(times.cuda()).tolist() == T.repeat_interleave(times).tolist()
    y, z = x.cuda().requires_grad_(), x.clone().requires_grad_()
    T.repeat_interleave(y, times.cuda(), 0).square().sum().backward()
    T.repeat_interleave(z, times, 0).square().sum().backward()
    assert T.allclose(y.grad.cpu(), z.grad)


def test_repetitions_are_counted_on_the_device():
    x, times = T.ones(5000, device="cuda"), T.full((5000,), 3, device="cuda")
    T.cuda.synchronize()
    before = T.cuda.submits()
    assert T.repeat_interleave(x, times).shape == (15_000,)
    assert T.cuda.submits() - before == 1
    T.repeat_interleave(x, times, output_size=15_000)
    assert T.cuda.submits() - before == 1
    for wrong, what in (
        (T.tensor([1, -1]), "repeats can not be negative"),
        (T.tensor([1.0, 1.0]), "not implemented for 'Float'"),
    ):
        with pytest.raises(RuntimeError, match=what):
            T.repeat_interleave(x[:2], wrong.cuda())
    with pytest.raises(RuntimeError, match="repeats must have the same size as input along dim"):
        T.repeat_interleave(x, times[:3])
