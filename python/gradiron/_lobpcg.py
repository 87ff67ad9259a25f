"""`lobpcg`: extreme eigenvalues of symmetric matrices by products with them."""

from __future__ import annotations

from typing import Any

from . import _core
from ._core import Tensor
from .autograd.grad_mode import no_grad

__all__ = ["lobpcg"]


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute the largest or smallest eigenvalues of `A x = lambda B x` by the LOBPCG method.

    Differentiating with respect to `A` uses the whole eigendecomposition instead; `B` is not differentiated.

    Args:
        A: symmetric matrix, dense or sparse, or a batch of dense ones.
        k: number of eigenvalues; the number of columns of `X`, or 1, if `None`.
        B: positive definite matrix; the identity if `None`.
        X: initial approximations of eigenvectors; random if `None`.
        n: number of initial vectors, if `X` is not given; `k` if `None`.
        iK: preconditioner.
        niter: maximal number of iterations; 1000 if `None`.
        tol: tolerance of the residuals.
        largest: compute the largest eigenvalues; true if `None`.
        method: `"basic"` or `"ortho"`, which give the same here.
        tracker: not supported.
        ortho_iparams, ortho_fparams, ortho_bparams: accepted for compatibility.

    Returns:
        The eigenvalues and a matrix with the eigenvectors as columns.

    Examples:
        >>> values, vectors = torch.lobpcg(torch.diag(torch.arange(1.0, 10.0)), k=2)
        >>> values.round(decimals=2), vectors.shape
        (tensor([9., 8.]), torch.Size([9, 2]))
    """
    if A.shape[-1] != A.shape[-2]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: method must be 'basic' or 'ortho', but got {method!r}")
    if tracker is not None:
        raise NotImplementedError("lobpcg: gradiron calls no tracker")
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if X is None else X.shape[-1]) if n is None else n
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested "
            f"eigenpairs (={n})"
        )
    largest = True if largest is None else largest
    if _core.is_grad_enabled() and (A.requires_grad or (B is not None and B.requires_grad)):
        return _differentiable(A, k, B, largest)
    if A.dim() > 2:
        batch = A.shape[:-2]
        parts = [
            lobpcg(a, k, _part(B, at, m), _part(X, at, m), n, _part(iK, at, m), niter, tol, largest)
            for at, a in enumerate(A.reshape(-1, m, m))
        ]
        values, vectors = (_core.stack([part[which] for part in parts]) for which in (0, 1))
        return values.reshape(*batch, k), vectors.reshape(*batch, m, k)
    with no_grad():
        start = _core.randn(m, n, dtype=A.dtype, device=A.device) if X is None else X
        return _iterate(
            A, k, B, start, iK, 1000 if niter is None else niter, _tolerance(A.dtype) if tol is None else tol, largest
        )


def _tolerance(dtype: Any) -> float:
    """The root of the dtype's precision, as PyTorch has it."""
    return {_core.float32: 1.2e-07, _core.float64: 2.23e-16}[dtype] ** 0.5


def _part(x: Tensor | None, at: int, m: int) -> Tensor | None:
    return x if x is None or x.dim() == 2 else x.reshape(-1, m, x.shape[-1])[at]


def _differentiable(A: Tensor, k: int, B: Tensor | None, largest: bool) -> tuple[Tensor, Tensor]:
    """By the whole decomposition, which has derivatives."""
    if B is not None:
        raise ValueError("lobpcg.backward: backward for B is not implemented: detach A and B, or leave B out")
    values, vectors = _core.linalg_eigh(A)
    chosen = _core.arange(A.shape[-1] - 1, A.shape[-1] - 1 - k, -1) if largest else _core.arange(k)
    chosen = chosen.to(A.device)
    return values.index_select(-1, chosen), vectors.index_select(-1, chosen)


def _iterate(
    A: Tensor, k: int, B: Tensor | None, X: Tensor, iK: Tensor | None, niter: int, tol: float, largest: bool
) -> tuple[Tensor, Tensor]:
    def by_b(x: Tensor) -> Tensor:
        return x if B is None else B @ x

    def improve(space: Tensor) -> tuple[Tensor, Tensor]:
        """The best vectors in a space, and their coordinates in its basis."""
        basis = _orthonormal(space, by_b)
        values, turned = _core.linalg_eigh(basis.mT @ (A @ basis))
        turned = turned.flip(-1) if largest else turned
        values = values.flip(-1) if largest else values
        count = X.shape[-1]
        return values[:count], basis @ turned[:, :count]

    values, X = improve(X)
    scale = A.abs().sum(-1).max() if not A.is_sparse else values.abs().max()
    moves = None
    for _ in range(max(niter, 0)):
        residual = A @ X - by_b(X) * values
        if bool((residual.norm(dim=0)[:k] <= tol * scale).all()):
            break
        step = residual if iK is None else iK @ residual
        space = _core.cat([X, step] if moves is None else [X, step, moves], -1)
        values, best = improve(space)
        moves = best - X @ (X.mT @ by_b(best))
        X = best
    return values[:k], X[:, :k]


def _orthonormal(space: Tensor, by_b: Any) -> Tensor:
    """A basis of a space, orthonormal by `B`; directions that others span already fall out."""
    for _ in range(2):
        space = space / space.norm(dim=0).clamp_min(1e-30)
        gram = space.mT @ by_b(space)
        values, vectors = _core.linalg_eigh((gram + gram.mT) / 2)
        kept = values > values[-1] * _tolerance(space.dtype) ** 2 * 10
        space = (space @ vectors)[:, kept] / values[kept].sqrt()
    return space
