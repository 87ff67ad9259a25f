"""Student's t-distribution."""

from __future__ import annotations

import math
from typing import Any

import gradiron as torch

from .._core import Tensor
from . import constraints
from .chi2 import Chi2
from .distribution import NO_SHAPE, Distribution, _listed
from .utils import broadcast_all, standard_normal

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t-distribution.

    Args:
        df: degrees of freedom.
        loc: mode, and mean for `df` above 1. Default: `0.0`
        scale: scale. Default: `1.0`
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> d = torch.distributions.StudentT(4.0)
        >>> d.mean, d.variance
        (tensor(0.), tensor(2.))
    """

    arg_constraints: Any = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.real
    has_rsample = True
    df: Tensor
    loc: Tensor
    scale: Tensor

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(StudentT, _instance)
        batch_shape = _listed(batch_shape)
        new.df, new.loc, new.scale = (p.expand(batch_shape) for p in (self.df, self.loc, self.scale))
        new._chi2 = self._chi2.expand(batch_shape)
        return self._grown(new, batch_shape)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, torch.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.scale.pow(2) * self.df / (self.df - 2)
        return finite.masked_fill(self.df <= 2, torch.inf).masked_fill(self.df <= 1, torch.nan)

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        x = standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * torch.rsqrt(z / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        y, half = (value - self.loc) / self.scale, 0.5 * (self.df + 1.0)
        size = self.scale.log() + 0.5 * (self.df.log() + math.log(math.pi))
        return -half * torch.log1p(y**2.0 / self.df) - (size + torch.lgamma(0.5 * self.df) - torch.lgamma(half))

    def entropy(self) -> Tensor:
        half = 0.5 * (self.df + 1)
        beta = torch.lgamma(0.5 * self.df) + math.lgamma(0.5) - torch.lgamma(half)
        digammas = torch.digamma(half) - torch.digamma(0.5 * self.df)
        return self.scale.log() + half * digammas + 0.5 * self.df.log() + beta
