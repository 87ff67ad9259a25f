"""The same program gives the same bits, on any number of threads."""

import pytest

from library import T

THREADS = (1, 2, 3, 4, 7, 16)
F = T.nn.functional
# PyTorch promises this for none of them.
pytestmark = pytest.mark.gradiron


@pytest.fixture(autouse=True)
def threads():
    before = T.get_num_threads()
    yield
    T.set_num_threads(before)


LEAVES = []


def wild(*shape, dtype=None):
    """Numbers of very different sizes: any other order of a sum shows."""
    x = T.randn(*shape, dtype=dtype or T.float32) * T.exp(3 * T.randn(*shape, dtype=dtype or T.float32))
    LEAVES.append(x.requires_grad_())
    return x


def indices(n, below):
    return T.randint(0, below, (n,))


N = 300_000
PROGRAMS = {
    "sum": lambda: [wild(N).sum()],
    "sum of rows": lambda: [wild(600, 700).sum(1)],
    "sum of columns": lambda: [wild(700, 600).sum(0)],
    "sum of the middle": lambda: [wild(60, 100, 70).sum(1)],
    "sum of a transpose": lambda: [wild(600, 700).t().sum(0), wild(600, 700).t().sum()],
    "sum of doubles": lambda: [wild(N, dtype=T.float64).sum()],
    "sum of bfloat16": lambda: [wild(N).to(T.bfloat16).sum()],
    "mean, var, std": lambda: [wild(N).mean(), wild(500, 600).var(1), wild(N).std()],
    "norm": lambda: [wild(N).norm(), wild(500, 600).norm(dim=1), wild(N).norm(3)],
    "logsumexp": lambda: [wild(500, 600).logsumexp(1), wild(500, 600).logsumexp(0)],
    "prod": lambda: [(1 + 1e-6 * wild(N)).prod()],
    "cumsum": lambda: [wild(N).cumsum(0), wild(300, 1000).cumsum(1), wild(1000, 300).cumsum(0)],
    "broadcast": lambda: [wild(1000, 1) * wild(300), wild(300) + wild(1000, 300)],
    "dot": lambda: [wild(N) @ wild(N)],
    "matrix times vector": lambda: [wild(500, 700) @ wild(700)],
    "matrix product": lambda: [wild(300, 400) @ wild(400, 200)],
    "thin matrix product": lambda: [wild(3, 30_000) @ wild(30_000, 5)],
    "matrix products of few rows": lambda: [
        wild(128, 128) @ wild(128, 128),
        wild(97, 130) @ wild(130, 150),
        wild(150, 257).t() @ wild(90, 150).t(),
        wild(130, 130, dtype=T.float64) @ wild(130, 131, dtype=T.float64),
    ],
    "deep matrix products": lambda: [
        wild(64, 784) @ wild(784, 256),
        wild(70, 2000) @ wild(2000, 66),
        wild(300, 600).t() @ wild(100, 300).t(),
    ],
    "recurrent layer": lambda: [
        T.lstm(
            wild(6, 13, 20),
            [T.zeros(1, 13, 40)] * 2,
            [wild(160, 20), wild(160, 40), wild(160), wild(160)],
            True,
            1,
            0.0,
            True,
            False,
            False,
        )[0]
    ],
    "product of transposes": lambda: [wild(400, 300).t() @ wild(200, 400).t()],
    "batches of products": lambda: [wild(6, 100, 120) @ wild(6, 120, 80), wild(50, 20, 30) @ wild(30, 40)],
    "matrix product of halves": lambda: [wild(200, 300).half() @ wild(300, 100).half()],
    "linear": lambda: [F.linear(wild(256, 300), wild(128, 300), wild(128))],
    "softmax": lambda: [wild(400, 700).softmax(1), wild(700, 400).softmax(0), wild(500, 600).log_softmax(1)],
    "cross_entropy": lambda: [F.cross_entropy(wild(1000, 300), indices(1000, 300))],
    "mse_loss": lambda: [F.mse_loss(wild(N), wild(N))],
    "index_select": lambda: [wild(100, 50).index_select(0, indices(20_000, 100))],
    "index": lambda: [wild(1000)[indices(200_000, 1000)]],
    "gather": lambda: [wild(500, 40).gather(1, T.randint(0, 40, (500, 300)))],
    "index_add": lambda: [wild(100, 50).index_add(0, indices(20_000, 100), wild(20_000, 50))],
    "scatter_add": lambda: [wild(100).scatter_add(0, indices(N, 100), wild(N))],
    "index_put": lambda: [wild(100).index_put((indices(N, 100),), wild(N), accumulate=True)],
    "take_along_dim": lambda: [wild(300, 40).take_along_dim(T.randint(0, 40, (300, 400)), 1)],
    "cat and split": lambda: [T.cat([wild(300, 400), wild(300, 100)], 1).split(50, 1)[3]],
    "amax with ties": lambda: [wild(500, 600).round().amax(1), wild(500, 600).round().max()],
    "sort": lambda: [wild(200, 1000).sort(1)[0]],
    "a layer used often": lambda: [(lambda w, x: ((x @ w).tanh() @ w).tanh() @ w)(wild(200, 200), T.randn(300, 200))],
}
LATER = {
    "layer_norm": lambda: [F.layer_norm(wild(500, 300), (300,), wild(300), wild(300))],
    "conv2d": lambda: [F.conv2d(wild(4, 3, 40, 40), wild(8, 3, 3, 3), wild(8))],
    "batch_norm": lambda: [F.batch_norm(wild(64, 32, 10), None, None, wild(32), wild(32), True)],
}
PROGRAMS.update((name, program) for name, program in LATER.items() if hasattr(F, name.split()[0]))


def bits(t):
    whole = {1: T.uint8, 2: T.int16, 4: T.int32, 8: T.int64}[t.element_size()]
    return t.detach().contiguous().view(whole)


def run(program):
    """Everything that the program computes: its results, and the gradients of all that it starts from."""
    LEAVES.clear()
    T.manual_seed(7)
    outputs = [y for y in program() if y.is_floating_point()]
    gradients = [T.randn(y.shape, dtype=y.dtype) for y in outputs]
    return [bits(t) for t in (*outputs, *T.autograd.grad(outputs, LEAVES, gradients))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_bits_on_any_number_of_threads(name):
    T.set_num_threads(THREADS[0])
    expected = run(PROGRAMS[name])
    for threads in THREADS[1:]:
        T.set_num_threads(threads)
        assert T.get_num_threads() == threads
        for number, (a, b) in enumerate(zip(run(PROGRAMS[name]), expected)):
            assert T.equal(a, b), f"{threads} threads, tensor {number} of shape {tuple(a.shape)}"


def test_the_numbers_are_wild_enough():
    T.manual_seed(7)
    x = wild(N, dtype=T.float64)
    assert x.sum().item() != x.flip(0).sum().item()


def test_training_is_repeatable():
    def train():
        T.manual_seed(3)
        w = [T.randn(64, 128, requires_grad=True), T.randn(128, 10, requires_grad=True)]
        x, target = T.randn(700, 64), indices(700, 10)
        for _ in range(3):
            loss = F.cross_entropy(F.relu(x @ w[0]) @ w[1], target)
            loss.backward()
            with T.no_grad():
                for p in w:
                    p -= 0.05 * p.grad
                    p.grad = None
        return [bits(t) for t in (*w, loss)]

    T.set_num_threads(1)
    expected = train()
    for threads in (2, 5, 2):
        T.set_num_threads(threads)
        assert all(T.equal(a, b) for a, b in zip(train(), expected))


def test_the_number_of_threads_is_checked():
    T.set_num_threads(3)
    assert T.get_num_threads() == 3
    for wrong in (0, -1, "2", 2.0, None, True):
        with pytest.raises(RuntimeError, match="set_num_threads expects"):
            T.set_num_threads(wrong)
    assert T.get_num_threads() == 3
