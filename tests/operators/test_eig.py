"""Eigenvalues of any square matrix: what they must fulfil, pairs and single values of real matrices, refusals."""

import pytest

from library import T

DTYPES = [T.float32, T.float64, T.complex64, T.complex128]
KINDS = {
    "random": lambda x: x,
    "a triangle": lambda x: x.triu(),
    "zeros": lambda x: x * 0,
    "symmetric": lambda x: x + x.mH,
    "ones": T.ones_like,
    "a cycle": lambda x: T.eye(x.shape[-1], dtype=x.dtype).roll(1, 0).expand_as(x).contiguous(),
    "one block": lambda x: T.eye(x.shape[-1], dtype=x.dtype).roll(1, 1).triu().expand_as(x).contiguous(),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_turned_by_values_alone(kind, dtype):
    exact = 1e-12 if dtype in (T.float64, T.complex128) else 2e-5
    for n in (1, 2, 3, 4, 7, 12):
        T.manual_seed(n)
        x = KINDS[kind](T.randn(2, n, n, dtype=dtype))
        values, vectors = T.linalg.eig(x)
        assert values.dtype == vectors.dtype == dtype.to_complex() and (values.shape, vectors.shape) == ((2, n), (2, n, n))
        assert (x.to(values.dtype) @ vectors - vectors * values[:, None]).abs().max() < exact * n
        assert (vectors.abs().square().sum(-2) - 1).abs().max() < exact
        assert (T.linalg.eigvals(x) - values).abs().max() < exact
        assert (values.sum(-1) - x.diagonal(0, -2, -1).sum(-1)).abs().max() < exact * n


def test_real_matrices_have_pairs_and_real_values():
    T.manual_seed(2)
    x = T.randn(6, 9, 9, dtype=T.float64)
    for values, vectors in zip(*T.linalg.eig(x)):
        k = 0
        while k < 9:
            if values[k].imag == 0:
                assert not vectors[:, k].imag.any()
                k += 1
                continue
            assert values[k].imag > 0 and values[k + 1] == values[k].conj()
            assert T.equal(vectors[:, k + 1], vectors[:, k].conj().resolve_conj())
            k += 2


def test_a_rotation():
    values, vectors = T.linalg.eig(T.tensor([[0.0, 1.0], [-1.0, 0.0]]))
    assert T.allclose(values, T.tensor([1j, -1j]))
    assert T.allclose(vectors.abs(), T.full((2, 2), 0.5**0.5))


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: T.linalg.eig(T.full((2, 2), float("nan"))), RuntimeError, "torch.linalg.eig: input tensor should not contain"),
        (
            lambda: T.linalg.eig(T.ones(2, 3)),
            RuntimeError,
            "linalg.eig: A must be batches of square matrices, but they are 2 by",
        ),
        (lambda: T.linalg.eigvals(T.ones(2, 3)), RuntimeError, "linalg.eigvals: A must be batches of square matrices"),
        (lambda: T.linalg.eig(T.ones(2)), RuntimeError, "linalg.eig: The input tensor A must have at least 2 dimensions."),
        (lambda: T.linalg.eig(T.ones(2, 2, dtype=T.int64)), RuntimeError, "Unknown Complex ScalarType for Long"),
        (lambda: T.linalg.eig(T.ones(2, 2, dtype=T.float16)), NotImplementedError, '"linalg_eig_out_cpu" not implemented for'),
    ],
)
def test_refused(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(text)


def test_a_loss_that_depends_on_the_phase_has_no_gradient():
    T.manual_seed(4)
    x = T.randn(3, 3, dtype=T.complex128, requires_grad=True)
    with pytest.raises(RuntimeError, match="linalg_eig_backward: The eigenvectors in the complex case are specified up to"):
        T.linalg.eig(x)[1].real.sum().backward()
    assert type(T.linalg.eigvals(x).grad_fn).__name__ == "LinalgEigBackward0"
