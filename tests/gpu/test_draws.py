"""Random numbers on the GPU: what is refused, and that the distributions are right."""

import pytest

from library import NO_GPU, T

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")]

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("weights", [[NAN, 1.0], [-1.0, 2.0], [INF, 1.0], [[1.0, 1.0], [1.0, -1.0]]])
@pytest.mark.parametrize("replacement", [False, True])
def test_weights_that_are_none(device, weights, replacement):
    alone = "probability tensor contains either `inf`, `nan` or element < 0"
    told = "invalid multinomial distribution .encountering probability entry" if replacement else alone
    with pytest.raises(RuntimeError, match=told):
        T.multinomial(T.tensor(weights, device=device), 2, replacement)


@pytest.mark.parametrize("weights", [[0.0, 0.0], [[1.0, 1.0], [0.0, 0.0]]])
def test_weights_of_nothing(device, weights):
    with pytest.raises(RuntimeError, match="invalid multinomial distribution .sum of probabilities <= 0."):
        T.multinomial(T.tensor(weights, device=device), 1)


def test_weights_are_looked_at_once():
    weights = T.ones(3, 4, device="cuda")
    T.cuda.synchronize()
    before = T.cuda.submits()
    T.multinomial(weights, 2, True)
    assert T.cuda.submits() - before == 1


def test_deviations_are_not_negative():
    with pytest.raises(RuntimeError, match="normal expects all elements of std >= 0.0"):
        T.normal(T.zeros(2, device="cuda"), T.tensor([1.0, -1.0], device="cuda"))


def drawn(fill, kind="float32", n=100_000):
    x = T.zeros(n, dtype=getattr(T, kind), device="cuda")
    T.manual_seed(3)
    first = fill(x).clone()
    T.manual_seed(3)
    again = fill(x)
    assert T.equal(first, again)
    fill(x)
    assert not T.equal(first, x)
    return first.cpu().double()


def share(condition):
    return condition.double().mean().item()


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_cauchy(kind):
    x = drawn(lambda x: x.cauchy_(2.0, 3.0), kind)
    # The quantiles of the distribution function 1/2 + atan((x - median) / sigma) / pi.
    for quantile, at in ((0.05, -6.3137515), (0.25, -1.0), (0.5, 0.0), (0.75, 1.0), (0.95, 6.3137515), (0.999, 318.3)):
        assert abs(share(x < 2.0 + 3.0 * at) - quantile) < 0.006
    assert T.isfinite(x).all() or kind == "float16"


@pytest.mark.parametrize("kind", ["float32", "float16", "float64"])
def test_log_normal(kind):
    if kind == "float64" and not T._core._gpu.properties()["has_float64"]:
        pytest.skip("no float64 here")
    x = drawn(lambda x: x.log_normal_(0.5, 0.25), kind).log()
    assert abs(x.mean().item() - 0.5) < 0.005 and abs(x.std().item() - 0.25) < 0.005
    assert abs(share(x < 0.75) - 0.8413) < 0.006 and abs(share(x < 0.0) - 0.0228) < 0.003


@pytest.mark.parametrize("kind", ["float32", "int64", "int32", "uint8", "bfloat16"])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_geometric(kind, p):
    x = drawn(lambda x: x.geometric_(p), kind)
    assert x.min().item() == 1.0 and (x == x.round()).all()
    for k in (1, 2, 3, 7):
        assert abs(share(x == k) - p * (1 - p) ** (k - 1)) < 0.006
    assert abs(share(x > 10) - (1 - p) ** 10) < 0.006


def test_what_distributions_refuse():
    x = T.zeros(2, device="cuda")
    for fill in (lambda: x.cauchy_(0.0, 0.0), lambda: x.log_normal_(0.0, 0.0), lambda: x.geometric_(1.0)):
        with pytest.raises(RuntimeError, match="expects"):
            fill()


@pytest.mark.parametrize("fill", ["uniform_", "normal_", "exponential_", "cauchy_", "log_normal_"])
def test_float64_has_all_its_digits(fill):
    if not T._core._gpu.properties()["has_float64"]:
        pytest.skip("no float64 here")
    T.manual_seed(1)
    x = getattr(T.zeros(20_000, dtype=T.float64, device="cuda"), fill)().cpu()
    # Of so many numbers of float32's digits, some would be equal.
    assert x.unique().numel() == x.numel() and (x.float().double() == x).sum().item() < 10
    if fill in ("normal_", "uniform_"):
        centre, spread = (0.0, 1.0) if fill == "normal_" else (0.5, 12**-0.5)
        assert abs(x.mean().item() - centre) < 0.02 and abs(x.std().item() - spread) < 0.02
        assert abs((x[1:] * x[:-1]).mean().item() - centre**2) < 0.02
