"""The multivariate normal distribution with a covariance of low rank plus a diagonal."""

from __future__ import annotations

import math
from typing import Any

import gradiron as torch

from .._core import Tensor
from .._types import Size
from . import constraints
from .distribution import NO_SHAPE, Distribution, _listed
from .multivariate_normal import _batch_mv, _half_log_det, _mahalanobis
from .utils import (
    lazy_property,
    standard_normal,
)

__all__ = ["LowRankMultivariateNormal"]


def _capacitance_tril(factor: Tensor, diagonal: Tensor) -> Tensor:
    """The Cholesky factor of `I + W.T @ inv(D) @ W`."""
    small = torch.matmul(factor.mT / diagonal.unsqueeze(-2), factor)
    return torch.linalg.cholesky(small + torch.eye(small.shape[-1], dtype=small.dtype, device=small.device))


def _log_det(diagonal: Tensor, tril: Tensor) -> Tensor:
    """`log det(W @ W.T + D)`, by the matrix determinant lemma."""
    return 2 * _half_log_det(tril) + diagonal.log().sum(-1)


def _distance(factor: Tensor, diagonal: Tensor, x: Tensor, tril: Tensor) -> Tensor:
    """The squared length of `x`, by Woodbury's formula."""
    inner = _batch_mv(factor.mT / diagonal.unsqueeze(-2), x)
    return (x.pow(2) / diagonal).sum(-1) - _mahalanobis(tril, inner)


class LowRankMultivariateNormal(Distribution):
    """Multivariate normal distribution with a covariance of low rank plus a diagonal.

    The covariance is `cov_factor @ cov_factor.T + diag(cov_diag)`, which is never formed to compute `log_prob`.

    Args:
        loc: mean, of shape `(..., n)`.
        cov_factor: factor of the covariance, of shape `(..., n, rank)`.
        cov_diag: diagonal part of the covariance, of shape `(..., n)`.
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> d = torch.distributions.LowRankMultivariateNormal(torch.zeros(2), torch.ones(2, 1), torch.ones(2))
        >>> d.covariance_matrix
        tensor([[2., 1.],
                [1., 2.]])
    """

    arg_constraints: Any = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support: Any = constraints.real_vector
    has_rsample = True
    loc: Tensor
    cov_factor: Tensor
    cov_diag: Tensor

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        try:
            loc_, diagonal = torch.broadcast_tensors([loc.unsqueeze(-1), cov_diag.unsqueeze(-1)])
            batch = torch.broadcast_shapes(loc_.shape[:-2], cov_factor.shape[:-2])
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc_[..., 0].expand((*batch, -1))
        self.cov_factor = cov_factor.expand((*batch, -1, -1))
        self.cov_diag = diagonal[..., 0].expand((*batch, -1))
        super().__init__(Size(batch), event, validate_args=validate_args)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _capacitance_tril(cov_factor, cov_diag)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        batch_shape = _listed(batch_shape)
        new.loc = self.loc.expand(batch_shape + self.event_shape)
        new.cov_factor = self.cov_factor.expand(batch_shape + self.cov_factor.shape[-2:])
        new.cov_diag = self.cov_diag.expand(batch_shape + self.event_shape)
        new._unbroadcasted_cov_factor = self._unbroadcasted_cov_factor
        new._unbroadcasted_cov_diag = self._unbroadcasted_cov_diag
        new._capacitance_tril = self._capacitance_tril
        return self._grown(new, batch_shape)

    def _wide(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        factor, diagonal = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        root = diagonal.sqrt().unsqueeze(-1)
        n = self._event_shape[0]
        small = torch.matmul(factor / root, (factor / root).mT) + torch.eye(n, dtype=factor.dtype, device=factor.device)
        return self._wide(root * torch.linalg.cholesky(small))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        factor = self._unbroadcasted_cov_factor
        return self._wide(torch.matmul(factor, factor.mT) + torch.diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        inner = torch.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self._wide(torch.diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - torch.matmul(inner.mT, inner))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        total = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return total.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        factor = self._unbroadcasted_cov_factor
        along = standard_normal((*shape[:-1], factor.shape[-1]), self.loc.dtype, self.loc.device)
        noise = standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(factor, along) + self._unbroadcasted_cov_diag.sqrt() * noise

    def _parts(self) -> tuple[Tensor, Tensor]:
        return self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        distance = _distance(*self._parts(), value - self.loc, self._capacitance_tril)
        size = _log_det(self._unbroadcasted_cov_diag, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + size + distance)

    def entropy(self) -> Tensor:
        size = _log_det(self._unbroadcasted_cov_diag, self._capacitance_tril)
        return (0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + size)).expand(self._batch_shape)
