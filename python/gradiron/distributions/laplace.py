"""The Laplace distribution."""

from __future__ import annotations

from typing import Any

import gradiron as torch

from .._core import Tensor
from . import constraints
from .distribution import NO_SHAPE, Distribution

__all__ = ["Laplace"]


class Laplace(Distribution):
    """Laplace distribution, with the density `exp(-abs(x - loc) / scale) / (2 * scale)`.

    Args:
        loc: mean.
        scale: scale.
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> d = torch.distributions.Laplace(0.0, 1.0)
        >>> d.log_prob(torch.tensor(0.0)), d.variance
        (tensor(-0.6931), tensor(2.))
    """

    arg_constraints: Any = {"loc": constraints.real, "scale": constraints.positive}
    support: Any = constraints.real
    has_rsample = True
    _held = ("loc", "scale")
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        u = self._room(self.loc, sample_shape).uniform_(torch.finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * torch.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return -torch.log(2 * self.scale) - torch.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * torch.expm1(-away.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        half = value - 0.5
        return self.loc - self.scale * half.sign() * torch.log1p(-2 * half.abs())

    def entropy(self) -> Tensor:
        return 1 + torch.log(2 * self.scale)
