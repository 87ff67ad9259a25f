"""Sums, products and extremes at places that indices name: the CPU's numbers, and the same bits every time."""

import pytest

from library import NO_GPU, T

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")]

FLOATS = ["float32", "float16", "bfloat16", "float64"]
WHOLE = ["int64", "int32", "int16", "uint8"]


def close(got, expected):
    loose = {T.float32: 2e-5, T.float16: 2e-2, T.bfloat16: 1e-1, T.float64: 1e-12}.get(expected.dtype)
    if loose is None:
        return T.equal(got.cpu(), expected)
    return T.allclose(got.cpu().double(), expected.double(), rtol=loose, atol=loose)


def values(*shape, kind="float32", seed=0):
    T.manual_seed(seed)
    x = T.rand(*shape) + 0.5 if kind in FLOATS else T.randint(1, 4, shape)
    return x.to(getattr(T, kind))


def picks(n, size, seed=1):
    T.manual_seed(seed)
    return T.randint(0, size, (n,))


@pytest.mark.parametrize("kind", FLOATS + WHOLE)
@pytest.mark.parametrize(
    "n, size, width", [(1, 3, 1), (5, 2, 3), (64, 7, 1), (65, 1, 2), (300, 5, 4), (5000, 3, 1), (5000, 4000, 2)]
)
def test_added_slices(kind, n, size, width):
    x, y, index = values(size, width, kind=kind), values(n, width, kind=kind, seed=2), picks(n, size)
    if kind in ("float16", "bfloat16"):
        y = (y / 64).to(y.dtype)
    got = x.cuda().index_add(0, index.cuda(), y.cuda())
    wide = x.double().index_add(0, index, y.double()).to(x.dtype) if kind in FLOATS else x.index_add(0, index, y)
    assert got.dtype is x.dtype and close(got, wide)
    turned = x.t().contiguous().cuda().index_add(1, index.cuda(), y.t().contiguous().cuda(), alpha=2)
    twice = x + (wide.double() - x.double()).to(x.dtype) * 2 if kind in FLOATS else x.index_add(0, index, y, alpha=2)
    assert close(turned, twice.t())


@pytest.mark.parametrize("kind", FLOATS + WHOLE)
@pytest.mark.parametrize("how", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("own", [False, True])
def test_scattered(kind, how, own):
    x, y = values(4, 5, kind=kind), values(30, 5, kind=kind, seed=3)
    if how == "prod" and kind in FLOATS:
        y = (y * 0.2 + 0.8).to(y.dtype)
    index = picks(150, 3).reshape(30, 5)
    got = x.cuda().scatter_reduce(0, index.cuda(), y.cuda(), how, include_self=own)
    wide = x.double().scatter_reduce(0, index, y.double(), how, include_self=own).to(x.dtype)
    assert close(got, wide if kind in FLOATS else x.scatter_reduce(0, index, y, how, include_self=own))


@pytest.mark.parametrize("how", ["prod", "amax", "amin"])
def test_large_whole_numbers(how):
    x, y = T.tensor([2**40, 3, -(2**62)]), T.tensor([5, -7, 2**62, 3, 11])
    index = T.tensor([0, 1, 2, 0, 1])
    assert T.equal(x.cuda().scatter_reduce(0, index.cuda(), y.cuda(), how).cpu(), x.scatter_reduce(0, index, y, how))


def test_what_is_not_finite():
    inf, nan = float("inf"), float("nan")
    x, y = T.zeros(4), T.tensor([inf, -inf, nan, 1.0, inf, -0.0])
    index = T.tensor([0, 0, 1, 1, 2, 3])
    for how in ("sum", "prod", "amax", "amin"):
        expected = x.scatter_reduce(0, index, y, how)
        assert str(x.cuda().scatter_reduce(0, index.cuda(), y.cuda(), how).tolist()) == str(expected.tolist())


def gradients(device):
    T.manual_seed(5)
    x = T.randn(50, 6).to(device).requires_grad_()
    at = T.randint(0, 50, (4000,)).to(device)
    along = T.randint(0, 50, (700, 6)).to(device)
    columns = T.randint(-6, 6, (4000,)).to(device)
    T.manual_seed(6)
    weights = [T.randn(*shape).to(device) for shape in ((4000, 6), (4000,), (700, 6), (4000, 6), (8, 6, 43), (4000,))]
    made = [x[at], x[at, columns], x.gather(0, along), x.index_select(0, at), x.unfold(0, 43, 1), x.take(at * 6 % 300)]
    found = []
    for y, w in zip(made, weights):
        x.grad = None
        (y * w).sum().backward()
        found.append(x.grad.clone())
    return found


def test_gradients_are_the_same_every_time():
    first = gradients("cuda")
    for a, b in zip(first, gradients("cpu")):
        assert T.allclose(a.cpu(), b, rtol=1e-4, atol=1e-4)
    for _ in range(3):
        assert all(T.equal(a, b) for a, b in zip(first, gradients("cuda")))


def test_sums_are_the_same_every_time():
    T.manual_seed(7)
    x, index = T.randn(200_000, device="cuda") * 1000, T.randint(0, 10, (200_000,), device="cuda")
    expected = T.zeros(10, dtype=T.float64).index_add(0, index.cpu(), x.cpu().double())
    made = [T.zeros(10, device="cuda").index_add(0, index, x) for _ in range(4)]
    made += [T.zeros(10, device="cuda").scatter_add(0, index, x) for _ in range(4)]
    made += [T.zeros(10, device="cuda").index_put((index,), x, accumulate=True) for _ in range(4)]
    assert all(T.equal(made[0], other) for other in made[1:])
    assert T.allclose(made[0].cpu().double(), expected, rtol=1e-4, atol=1.0)


def test_bad_places_are_left_out_and_told():
    x = T.zeros(3, device="cuda")
    with pytest.raises((IndexError, RuntimeError), match="index 7 is out of bounds for dimension 0 with size 3"):
        x.index_add_(0, T.tensor([0, 7, 2, 0], device="cuda"), T.ones(4, device="cuda"))
        x.tolist()
    assert x.tolist() == [2.0, 0.0, 1.0]


def test_added_to_what_it_came_from():
    x = T.arange(6.0, device="cuda").reshape(3, 2)
    y = x.index_add(0, T.tensor([2, 0], device="cuda"), x[:2])
    assert y.tolist() == [[2.0, 4.0], [2.0, 3.0], [4.0, 6.0]]
