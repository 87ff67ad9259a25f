"""Histograms, slopes between points, combinations, and the points of Sobol sequences: numbers and refusals as PyTorch's."""

import re

import pytest

from library import T

x = T.tensor([1.0, 4.0, 9.0, 16.0, 25.0])
y = T.arange(12.0).reshape(3, 4) ** 2
points = T.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [2.0, 2.0]])


def close(got, expected):
    for a, b in zip(got, expected, strict=True):
        assert T.allclose(a, T.tensor(b), rtol=1e-4, atol=1e-5) and a.dtype == T.float32


def test_slopes():
    close(T.gradient(x), [[3.0, 4.0, 6.0, 8.0, 9.0]])
    close(T.gradient(x, edge_order=2), [[2.0, 4.0, 6.0, 8.0, 10.0]])
    close(T.gradient(x, spacing=2), [[1.5, 2.0, 3.0, 4.0, 4.5]])
    close(T.gradient(T.arange(4)), [[1.0, 1.0, 1.0, 1.0]])
    down, along = T.gradient(y, spacing=[2.0, 3.0])
    close([down], [[[8.0, 12.0, 16.0, 20.0], [16.0, 20.0, 24.0, 28.0], [24.0, 28.0, 32.0, 36.0]]])
    close([along[0]], [[1 / 3, 2 / 3, 4 / 3, 5 / 3]])
    assert all(T.equal(a, b) for a, b in zip(T.gradient(y, spacing=2.0, dim=(1, 0)), T.gradient(y, spacing=2.0)[::-1]))
    at = T.tensor([0.0, 1.0, 3.0, 4.0, 7.0])
    close(T.gradient(x, spacing=(at,)), [[3.0, 2.8333, 5.5, 6.0, 3.0]])
    close(T.gradient(x, spacing=[at], edge_order=2), [[3.1667, 2.8333, 5.5, 6.0, 0.0]])
    assert T.gradient(T.tensor(1.0)) == ()


def test_slopes_have_gradients():
    z = T.tensor([1.0, 2.0, 4.0, 8.0], dtype=T.float64, requires_grad=True)
    at = T.tensor([0.0, 1.0, 3.0, 4.0], dtype=T.float64)
    for options in ({}, {"edge_order": 2}, {"spacing": (at,)}, {"spacing": (at,), "edge_order": 2}):
        assert T.autograd.gradcheck(lambda t, options=options: T.gradient(t, **options), (z,))


def test_histograms():
    close(T.histogram(T.tensor([1.0, 2.0, 1.0, 4.0]), 4), [[2.0, 1.0, 0.0, 1.0], [1.0, 1.75, 2.5, 3.25, 4.0]])
    close(T.tensor([2.0, 2.0]).histogram(2), [[0.0, 2.0], [1.5, 2.0, 2.5]])
    close(T.histogram(T.tensor([1.0, 2.0, 1.0, 4.0]), T.tensor([0.0, 1.0, 2.0])), [[0.0, 3.0], [0.0, 1.0, 2.0]])
    close(T.histogram(T.tensor([0.0, 0.5, 1.0]), T.tensor([0.0, 0.5, 0.5, 1.0])).hist[None], [[1.0, 0.0, 2.0]])
    weighed = T.histogram(
        T.tensor([1.0, 2.0, 1.0, 4.0]), 4, range=(0.0, 3.0), weight=T.tensor([1.0, 2.0, 4.0, 8.0]), density=True
    )
    close(weighed, [[0.0, 0.952381, 0.380952, 0.0], [0.0, 0.75, 1.5, 2.25, 3.0]])
    assert repr(weighed).startswith("torch.return_types.histogram(\nhist=tensor(")
    out = (T.empty(0), T.empty(0))
    assert T.histogram(x, 3, out=out)[0] is out[0] and len(out[1]) == 4
    assert T.histogram(x).hist.shape == (100,)


def test_targets_of_histograms_are_looked_at_first():
    x, whole, parts = T.tensor([1.0, 2.0]), T.ones(2, dtype=T.int64), T.ones(2)
    refused = {
        "invalid combination of arguments": parts,
        "expected tuple of 2 elements but got 1": (parts,),
        "expected Tensor as element 1 in argument 5, but got int": (parts, 3),
        "torch.histogram: input tensor and bin_edges tensor should have the same dtype, but got input float": (parts, whole),
        "functions with out=... arguments don't support automatic differentiation": (parts, T.ones(2, requires_grad=True)),
    }
    for message, out in refused.items():
        with pytest.raises((TypeError, RuntimeError), match=re.escape(message)):
            T.histogram(x, 3, out=out)
    assert parts.tolist() == [1, 1] and whole.tolist() == [1, 1]


def test_histograms_of_points():
    found = T.histogramdd(points, bins=3)
    close([found.hist], [[[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 1.0]]])
    weight = T.tensor([1.0, 2.0, 4.0, 8.0])
    found = T.histogramdd(points, bins=[2, 3], range=[0.0, 1.0, 0.0, 2.0], weight=weight, density=True)
    close([found.hist], [[[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]]])
    close(found.bin_edges, [[0.0, 0.5, 1.0], [0.0, 0.6667, 1.3333, 2.0]])
    edges = [T.tensor([0.0, 1.0, 2.0]), T.tensor([0.0, 2.0])]
    close([T.histogramdd(points, edges).hist], [[[1.0], [3.0]]])


def test_combinations():
    a = T.arange(3)
    assert T.combinations(a).tolist() == [[0, 1], [0, 2], [1, 2]]
    assert T.combinations(a, 2, True).tolist() == [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]]
    assert T.combinations(T.arange(5), 3).shape == (10, 3) and T.combinations(a, 4).shape == (0, 4)
    assert T.combinations(a, 0).shape == (0,) and T.combinations(a, 3, with_replacement=True).shape == (10, 3)


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (
            lambda: T.gradient(T.ones(1)),
            RuntimeError,
            "torch.gradient expected each dimension size to be at least edge_order+1",
        ),
        (lambda: T.gradient(x, edge_order=3), RuntimeError, "torch.gradient only supports edge_order=1 and edge_order=2."),
        (
            lambda: T.gradient(y, spacing=[1.0] * 3),
            RuntimeError,
            "torch.gradient expected spacing to be unspecified, a scalar, or a",
        ),
        (lambda: T.gradient(y, dim=(0, 0)), RuntimeError, "dim 0 appears multiple times in the list of dims"),
        (lambda: T.gradient(y.to(T.uint8)), NotImplementedError, "torch.gradient does not support uint8 input."),
        (lambda: T.histogram(x, 0), RuntimeError, "torch.histogram(): bins must be > 0, but got 0 for dimension 0"),
        (lambda: T.histogram(x.long(), 2), NotImplementedError, "\"histogramdd\" not implemented for 'Long'"),
        (
            lambda: T.histogram(x, 2, range=(2.0, 1.0)),
            RuntimeError,
            "torch.histogramdd: min should not exceed max, but got min 2",
        ),
        (
            lambda: T.histogram(x * float("nan"), 2),
            RuntimeError,
            "torch.histogramdd: dimension 0's range [nan, nan] is not finite",
        ),
        (lambda: T.histc(x, 2, 0, float("nan")), RuntimeError, "torch.histc: range of [0, nan] is not finite"),
        (lambda: T.histogramdd(points, [2]), RuntimeError, "histogramdd: The size of bins must be equal to the innermost"),
        (
            lambda: T.histogramdd(points, [2, 2], [0.0, 1.0]),
            RuntimeError,
            "torch.histogramdd: for a 2-dimensional histogram range",
        ),
        (
            lambda: T.histogramdd(points, [2, 2], weight=x),
            RuntimeError,
            "torch.histogramdd: if weight tensor is provided it should",
        ),
        (lambda: T.combinations(y), RuntimeError, "Expect a 1D vector, but got shape [3, 4]"),
        (lambda: T.combinations(x, -1), RuntimeError, "Expect a non-negative number, but got -1"),
        (lambda: T.quasirandom.SobolEngine(0), ValueError, "Supported range of dimensionality for SobolEngine is [1, 21201]"),
        (lambda: T.quasirandom.SobolEngine(2).draw(-1), ValueError, "n must be non-negative, but got -2"),
    ],
)
def test_refused(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(text)


def test_sobol_points():
    engine = T.quasirandom.SobolEngine(3)
    assert engine.draw(4).tolist() == [[0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]]
    assert engine.fast_forward(2).draw(1).tolist() == [[0.625, 0.125, 0.875]] and engine.num_generated == 7
    assert engine.reset().draw(1, dtype=T.float64).dtype == T.float64
    with pytest.raises(ValueError, match="The balance properties of Sobol' points require n to be a power of 2. 1 points"):
        engine.draw_base2(2)
    assert repr(T.quasirandom.SobolEngine(2, scramble=True, seed=3)) == "SobolEngine(dimension=2, scramble=True, seed=3)"


def test_scrambled_sobol_points():
    engine = T.quasirandom.SobolEngine(2, scramble=True, seed=3)
    expected = [[0.0685, 0.2245], [0.6215, 0.7231], [0.9612, 0.4931], [0.4709, 0.9936], [0.2637, 0.3616], [0.8012, 0.8629]]
    assert T.allclose(engine.draw(6), T.tensor(expected), atol=1e-4)
    first = T.quasirandom.SobolEngine(2, scramble=True, seed=3).fast_forward(5)
    assert T.allclose(first.draw(1), T.tensor([[0.8012, 0.8629]]), atol=1e-4)
    T.manual_seed(3)
    assert T.allclose(T.quasirandom.SobolEngine(2, True).draw(1), T.tensor([[0.0685, 0.2245]]), atol=1e-4)
    wide = T.quasirandom.SobolEngine(1000).draw(256)
    assert wide.sort(0).values.equal((T.arange(256) / 256)[:, None].expand(-1, 1000))  # Each line is filled evenly.
