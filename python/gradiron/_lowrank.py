"""Randomized low-rank decompositions."""

from __future__ import annotations

from . import _core
from ._core import Tensor


def _basis(A: Tensor, q: int, niter: int, M: Tensor | None) -> Tensor:
    """Orthonormal columns that span most of what `A - M` reaches."""

    def moved(x: Tensor, turned: bool) -> Tensor:
        whole = A.mH if turned else A
        found = whole @ x
        return found if M is None else found - (M.mH if turned else M) @ x

    Q = _core.linalg_qr(moved(_core.randn(A.shape[-1], q, dtype=A.dtype, device=A.device), False)).Q
    for _ in range(niter):
        Q = _core.linalg_qr(moved(Q, True)).Q
        Q = _core.linalg_qr(moved(Q, False)).Q
    return Q


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the largest singular values and vectors of a matrix approximately, by a randomized algorithm.

    `A` is close to `U @ diag(S) @ V.mH`.

    Args:
        A: matrix, or a batch of matrices, of shape `(..., m, n)`.
        q: number of singular values. Default: `6`
        niter: number of power iterations. Default: `2`
        M: matrix that is subtracted from `A`.

    Returns:
        A tuple `(U, S, V)`.

    Examples:
        >>> U, S, V = torch.svd_lowrank(torch.randn(8, 5), q=2)
        >>> U.shape, S.shape, V.shape
        (torch.Size([8, 2]), torch.Size([2]), torch.Size([5, 2]))
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    if M is not None:
        M = M.broadcast_to(A.shape)
    # The longer side is the one that is reduced.
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A, M = A.mH, None if M is None else M.mH
    Q = _basis(A, q, niter, M)
    B = Q.mH @ A if M is None else Q.mH @ (A - M)
    U, S, Vh = _core.linalg_svd(B, full_matrices=False)
    left, right = Q @ U, Vh.mH
    return (right, S, left) if wide else (left, S, right)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Perform a principal component analysis (PCA) by a randomized low-rank SVD.

    The rows of `A` are samples. The columns of `V` are the principal directions.

    Args:
        A: matrix, or a batch of matrices, of shape `(..., m, n)`.
        q: number of components; `min(6, m, n)` if `None`.
        center: subtract the mean of the rows first. Default: `True`
        niter: number of power iterations. Default: `2`

    Returns:
        A tuple `(U, S, V)`, as from `svd_lowrank`.

    Examples:
        >>> U, S, V = torch.pca_lowrank(torch.randn(8, 5), q=2)
        >>> V.shape
        torch.Size([5, 2])
    """
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not (A.is_floating_point() or A.is_complex()):
        raise ValueError(f"pca_lowrank expected a floating-point or complex matrix, but got {A.dtype}")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
