"""A few extreme eigenvalues, beside the whole decomposition."""

import pytest

from library import IS_GRADIRON, T


def symmetric(n, seed, dtype=None):
    T.manual_seed(seed)
    a = T.randn(n, n, dtype=dtype or T.float64)
    return a @ a.mT + T.eye(n, dtype=a.dtype)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [1, 3])
def test_beside_eigh(k, largest):
    a = symmetric(40, k)
    values, vectors = T.lobpcg(a, k=k, largest=largest, niter=300)
    whole = T.linalg.eigvalsh(a)
    expected = whole.flip(0)[:k] if largest else whole[:k]
    assert T.allclose(values, expected, rtol=1e-5)
    assert T.allclose(a @ vectors, vectors * values, atol=1e-3)


def test_with_a_second_matrix():
    a, b = symmetric(30, 1), symmetric(30, 2) / 30
    values, vectors = T.lobpcg(a, k=2, B=b, niter=500)
    assert T.allclose(a @ vectors, b @ vectors * values, rtol=1e-3, atol=1e-2)
    root = T.linalg.cholesky(b)
    inner = T.linalg.solve_triangular(root, T.linalg.solve_triangular(root, a, upper=False).mT, upper=False)
    assert T.allclose(values, T.linalg.eigvalsh(inner).flip(0)[:2], rtol=1e-5)


def test_sparse_and_batches():
    d = T.arange(1.0, 21.0, dtype=T.float64)
    sparse = T.diag(d).to_sparse()
    assert T.allclose(T.lobpcg(sparse, k=2)[0], T.tensor([20.0, 19.0], dtype=T.float64), rtol=1e-4)
    both = T.stack([T.diag(d), T.diag(2 * d)])
    values, vectors = T.lobpcg(both, k=2)
    assert values.shape == (2, 2) and vectors.shape == (2, 20, 2)
    assert T.allclose(values[1], T.tensor([40.0, 38.0], dtype=T.float64), rtol=1e-4)


def test_derivatives():
    a = symmetric(12, 3).requires_grad_()
    T.lobpcg(a, k=2)[0].sum().backward()
    by_lobpcg, a.grad = a.grad, None
    T.linalg.eigvalsh(a)[-2:].sum().backward()
    sym = lambda g: (g + g.mT) / 2
    assert T.allclose(sym(by_lobpcg), sym(a.grad), rtol=1e-3, atol=1e-3)


def test_what_it_refuses():
    with pytest.raises(ValueError, match="is not applicable when the number of A rows .=12. is smaller than 3 x"):
        T.lobpcg(T.eye(12), k=5)
    with pytest.raises(AssertionError, match="A must be square"):
        T.lobpcg(T.ones(3, 4), k=1)
    if IS_GRADIRON:
        with pytest.raises(ValueError, match="method must be"):
            T.lobpcg(T.eye(12), k=1, method="other")
