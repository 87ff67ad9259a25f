"""The generalized Pareto distribution."""

from __future__ import annotations

from typing import Any

import gradiron as torch

from .._core import Tensor
from . import constraints
from .distribution import NO_SHAPE, Distribution

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Generalized Pareto distribution: values above a threshold.

    The tail is heavy for a positive `concentration` and bounded for a negative one.

    Args:
        loc: threshold.
        scale: scale.
        concentration: shape parameter of the tail; 0 gives an exponential distribution.
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> d = torch.distributions.GeneralizedPareto(0.0, 1.0, 0.0)
        >>> d.mean
        tensor(1.)
    """

    arg_constraints: Any = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True
    _held = ("loc", "scale", "concentration")
    loc: Tensor
    scale: Tensor
    concentration: Tensor

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self._hold(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        ends = torch.where(self.concentration < 0, self.loc - self.scale / self.concentration, torch.inf)
        return constraints.interval(self.loc, ends)

    def _is_exponential(self) -> Tensor:
        return torch.isclose(self.concentration, torch.zeros_like(self.concentration))

    def _safe(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is zero, and it with a 1 there."""
        zero = self._is_exponential()
        return zero, torch.where(zero, torch.ones_like(self.concentration), self.concentration)

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        return self.icdf(torch.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        zero, k = self._safe()
        y = (value - self.loc) / self.scale
        where = torch.where(zero, y, (k + 1) / k * torch.log1p(k * y))
        return torch.where(y >= 0, -where - self.scale.log(), -torch.inf)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the probability of exceeding `value`."""
        self._check_sample(value)
        zero, k = self._safe()
        y = (value - self.loc) / self.scale
        return torch.where(zero, -y, -torch.log1p(k * y) / k)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Compute the logarithm of the cumulative distribution function."""
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return torch.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        zero, k = self._safe()
        left = torch.log1p(-value)
        return torch.where(zero, self.loc - self.scale * left, self.loc + self.scale * torch.expm1(-k * left) / k)

    @property
    def mean(self) -> Tensor:
        k = self.concentration
        return torch.where(k < 1, self.loc + self.scale / (1 - k), torch.nan)

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        return torch.where(k < 0.5, self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k)), torch.nan)

    def entropy(self) -> Tensor:
        return torch.broadcast_to(self.scale.log() + self.concentration + 1, self._batch_shape)

    @property
    def mode(self) -> Tensor:
        return self.loc
