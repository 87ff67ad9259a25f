"""The Wishart distribution of covariance matrices."""

from __future__ import annotations

import math
import warnings
from typing import Any

import gradiron as torch

from .._core import Tensor
from .._types import Size
from . import constraints
from .chi2 import Chi2
from .distribution import NO_SHAPE, _listed
from .exp_family import ExponentialFamily
from .multivariate_normal import _half_log_det, _precision_to_scale_tril
from .utils import (
    lazy_property,
    mvlgamma,
)

__all__ = ["Wishart"]


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of the logarithm of the multivariate gamma function."""
    if not x.gt((p - 1) / 2).all():
        raise AssertionError("Wrong domain for multivariate digamma function.")
    return torch.digamma(x.unsqueeze(-1) - torch.arange(p, dtype=x.dtype, device=x.device).div(2)).sum(-1)


class Wishart(ExponentialFamily):
    """Wishart distribution, of positive definite matrices.

    For an integer `df` it is the sum of `x @ x.T` over `df` normal vectors `x`.

    Args:
        df: degrees of freedom, above the size of the matrices less 1.
        covariance_matrix: positive definite scale matrix.
        precision_matrix: inverse of the scale matrix.
        scale_tril: lower Cholesky factor of the scale matrix.
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> d = torch.distributions.Wishart(torch.tensor(3.0), torch.eye(2))
        >>> d.mean
        tensor([[3., 0.],
                [0., 3.]])
    """

    support: Any = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure: Any = 0
    df: Tensor

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        given = {"scale_tril": scale_tril, "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix}
        named = [(name, matrix) for name, matrix in given.items() if matrix is not None]
        if len(named) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = named
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        df = torch.as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = torch.broadcast_shapes(matrix.shape[:-2], df.shape)
        event = matrix.shape[-2:]
        self.df = df.expand(batch)
        if self.df.le(event[-1] - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}.")
        setattr(self, name, matrix.expand((*batch, -1, -1)))
        super().__init__(Size(batch), event, validate_args=validate_args)
        if self.df.lt(event[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.", stacklevel=2
            )
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = torch.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)
        self._dist_chi2 = self._diagonal_squares(batch)

    def _diagonal_squares(self, batch: Any) -> Chi2:
        """What the squares on the diagonal of Bartlett's factor are drawn from."""
        n = self._event_shape[-1]
        less = torch.arange(n, dtype=self.df.dtype, device=self.df.device).expand((*batch, -1))
        return Chi2(df=self.df.unsqueeze(-1) - less)

    @property
    def arg_constraints(self) -> Any:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = _listed(batch_shape)
        new.df = self.df.expand(batch_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(batch_shape + self.event_shape)
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in vars(self):
                setattr(new, name, vars(self)[name].expand(batch_shape + self.event_shape))
        new._event_shape = self._event_shape
        new._dist_chi2 = new._diagonal_squares(batch_shape)
        return self._grown(new, batch_shape)

    def _wide(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._wide(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        return self._wide(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        return self._wide(torch.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Tensor:
        return self.df.view((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        spare = self.df - self._event_shape[-1] - 1
        factor = spare.masked_fill(spare <= 0, torch.nan)
        return factor.view((*self._batch_shape, 1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view((*self._batch_shape, 1, 1)) * (v.pow(2) + outer)

    def _bartlett(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        p = self._event_shape[-1]
        noise = self._dist_chi2.rsample(sample_shape).sqrt().diag_embed(dim1=-2, dim2=-1)
        i, j = torch.tril_indices(p, p, offset=-1)
        noise[..., i, j] = torch.randn(
            (*_listed(sample_shape), *self._batch_shape, p * (p - 1) // 2), dtype=noise.dtype, device=noise.device
        )
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = NO_SHAPE, max_try_correction: int | None = None) -> Tensor:
        """Draw reparameterized samples; singular ones are drawn again."""
        tries = (3 if self._batch_shape else 10) if max_try_correction is None else max_try_correction
        sample_shape = _listed(sample_shape)
        sample = self._bartlett(sample_shape)
        singular = ~self.support.check(sample)
        if not singular.any():
            return sample
        warnings.warn("Singular sample detected.", stacklevel=2)
        for _ in range(tries):
            sample = torch.where(singular[..., None, None], self._bartlett(sample_shape), sample)
            singular = ~self.support.check(sample)
            if not singular.any():
                break
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        nu, p = self.df, self._event_shape[-1]
        tril = self._unbroadcasted_scale_tril
        trace = torch.cholesky_solve(value, tril).diagonal(dim1=-2, dim2=-1).sum(-1)
        size = nu * (0.5 * p * math.log(2.0) + _half_log_det(tril)) + mvlgamma(nu / 2, p=p)
        return -size + (nu - p - 1) / 2 * torch.linalg.slogdet(value).logabsdet - trace / 2

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        size = (p + 1) * (0.5 * p * math.log(2.0) + _half_log_det(self._unbroadcasted_scale_tril))
        return size + mvlgamma(nu / 2, p=p) - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p) + nu * p / 2

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Any, y: Any) -> Tensor:
        p = self._event_shape[-1]
        total = y + (p + 1) / 2
        return total * (-torch.linalg.slogdet(-2 * x).logabsdet + math.log(2.0) * p) + mvlgamma(total, p=p)
