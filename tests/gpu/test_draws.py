"""Random numbers on the GPU: what is refused, and that the distributions are right."""

import pytest

from library import NO_GPU, T

pytestmark = [pytest.mark.gradiron, pytest.mark.skipif(NO_GPU, reason="GRADIRON_TEST_NO_GPU is set")]

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("weights", [[NAN, 1.0], [-1.0, 2.0], [INF, 1.0], [[1.0, 1.0], [1.0, -1.0]]])
@pytest.mark.parametrize("replacement", [False, True])
def test_weights_that_are_none(device, weights, replacement):
    with pytest.raises(RuntimeError, match="probability tensor contains either `inf`, `nan` or element < 0"):
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
