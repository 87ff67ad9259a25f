"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

import gradiron as torch

from .._core import Tensor
from .._types import Size
from . import constraints
from .distribution import NO_SHAPE, Distribution, _listed
from .utils import (
    lazy_property,
    standard_normal,
)

__all__ = ["MultivariateNormal"]


def _batch_mv(matrix: Tensor, vector: Tensor) -> Tensor:
    """Matrices times vectors, over broadcast batches."""
    return torch.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def _mahalanobis(tril: Tensor, x: Tensor) -> Tensor:
    """The squared length of `x`, measured by the covariance with this Cholesky factor."""
    shape = torch.broadcast_shapes(tril.shape[:-2], x.shape[:-1])
    n = x.shape[-1]
    whitened = torch.linalg.solve_triangular(tril.expand((*shape, n, n)), x.expand((*shape, n)).unsqueeze(-1), upper=False)
    return whitened.squeeze(-1).pow(2).sum(-1)


def _half_log_det(tril: Tensor) -> Tensor:
    """The sum of the logarithms on the diagonal."""
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of a matrix that is given by its inverse."""
    # Turned by half, the inverse of a lower triangle's transpose is a lower triangle.
    flipped = torch.linalg.cholesky(torch.flip(precision, (-2, -1)))
    inverse = torch.transpose(torch.flip(flipped, (-2, -1)), -2, -1)
    eye = torch.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return torch.linalg.solve_triangular(inverse, eye, upper=False)


class MultivariateNormal(Distribution):
    """Multivariate normal (Gaussian) distribution.

    Give the covariance in one of three ways; the Cholesky factor is the fastest.

    Args:
        loc: mean, of shape `(..., n)`.
        covariance_matrix: positive definite covariance matrix.
        precision_matrix: inverse of the covariance matrix.
        scale_tril: lower Cholesky factor of the covariance matrix.
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> d = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
        >>> d.log_prob(torch.zeros(2))
        tensor(-1.8379)
    """

    arg_constraints: Any = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support: Any = constraints.real_vector
    has_rsample = True
    loc: Tensor

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {"scale_tril": scale_tril, "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix}
        named = [(name, matrix) for name, matrix in given.items() if matrix is not None]
        if len(named) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = named
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = torch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch, -1, -1)))
        self.loc = loc.expand((*batch, -1))
        super().__init__(Size(batch), self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = torch.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(MultivariateNormal, _instance)
        batch_shape = _listed(batch_shape)
        new.loc = self.loc.expand(batch_shape + self.event_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in vars(self):
                setattr(new, name, vars(self)[name].expand(batch_shape + self.event_shape + self.event_shape))
        return self._grown(new, batch_shape)

    def _wide(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._wide(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        return self._wide(torch.matmul(self._unbroadcasted_scale_tril, self._unbroadcasted_scale_tril.mT))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        return self._wide(torch.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        noise = standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        tril = self._unbroadcasted_scale_tril
        distance = _mahalanobis(tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - _half_log_det(tril)

    def entropy(self) -> Tensor:
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + _half_log_det(self._unbroadcasted_scale_tril)
        return entropy.expand(self._batch_shape)
