"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import gradiron as torch

from .._core import Tensor
from ..autograd.grad_mode import no_grad
from ..nn import functional as F
from . import constraints
from .distribution import NO_SHAPE
from .exp_family import ExponentialFamily
from .utils import (
    Odds,
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Odds, ExponentialFamily):
    """Continuous Bernoulli distribution on [0, 1].

    The density is proportional to `probs**x * (1 - probs)**(1 - x)`.

    Args:
        probs: parameter between 0 and 1; give either this or `logits`.
        logits: log-odds of `probs`.
        lims: range of `probs` around 1/2 in which a Taylor expansion is used for stability. Default: `(0.499, 0.501)`
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> d = torch.distributions.ContinuousBernoulli(0.5)
        >>> d.mean
        tensor(0.5000)
    """

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}
    support: Any = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure: Any = 0
    _held = ("probs", "logits")

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._lims = lims
        ((name, given),) = self._odds(probs, logits).items()
        (given,) = broadcast_all(given)
        if name == "probs":
            if validate_args is not None and not self.arg_constraints["probs"].check(given).all():
                raise ValueError("The parameter probs has invalid values")
            given = clamp_probs(given)
        self._hold(validate_args, **{name: given})

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(ContinuousBernoulli, _instance)
        new._lims = self._lims
        return super().expand(batch_shape, new)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside(self) -> Tensor:
        """Where the formulas are stable."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> Tensor:
        """The probabilities, moved to where the formulas are stable."""
        return torch.where(self._outside(), self.probs, self._lims[0] * torch.ones_like(self.probs))

    def _log_constant(self) -> Tensor:
        """The logarithm of what the density is multiplied by."""
        cut = self._cut()
        half = cut <= 0.5
        low = torch.where(half, cut, torch.zeros_like(cut))
        high = torch.where(half, torch.ones_like(cut), cut)
        ends = torch.where(half, torch.log1p(-2.0 * low), torch.log(2.0 * high - 1.0))
        exact = torch.log(torch.abs(torch.log1p(-cut) - torch.log(cut))) - ends
        x = (self.probs - 0.5).pow(2)
        return torch.where(self._outside(), exact, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        cut = self._cut()
        exact = cut / (2.0 * cut - 1.0) + 1.0 / (torch.log1p(-cut) - torch.log(cut))
        x = self.probs - 0.5
        return torch.where(self._outside(), exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def stddev(self) -> Tensor:
        return torch.sqrt(self.variance)

    @property
    def variance(self) -> Tensor:
        cut = self._cut()
        ends = cut * (cut - 1.0) / (1.0 - 2.0 * cut).pow(2)
        exact = ends + 1.0 / (torch.log1p(-cut) - torch.log(cut)).pow(2)
        x = (self.probs - 0.5).pow(2)
        return torch.where(self._outside(), exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        return self.icdf(torch.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none") + self._log_constant()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        cut = self._cut()
        powers = torch.pow(cut, value) * torch.pow(1.0 - cut, 1.0 - value)
        inside = torch.where(self._outside(), (powers + cut - 1.0) / (2.0 * cut - 1.0), value)
        above = torch.where(torch.ge(value, 1.0), torch.ones_like(inside), inside)
        return torch.where(torch.le(value, 0.0), torch.zeros_like(inside), above)

    def icdf(self, value: Tensor) -> Tensor:
        cut = self._cut()
        exact = torch.log1p(-cut + value * (2.0 * cut - 1.0)) - torch.log1p(-cut)
        return torch.where(self._outside(), exact / (torch.log(cut) - torch.log1p(-cut)), value)

    def entropy(self) -> Tensor:
        no, yes = torch.log1p(-self.probs), torch.log(self.probs)
        return self.mean * (no - yes) - self._log_constant() - no

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Any) -> Tensor:
        stable = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = torch.where(stable, x, (self._lims[0] - 0.5) * torch.ones_like(x))
        exact = torch.log(torch.abs(torch.special.expm1(cut))) - torch.log(torch.abs(cut))
        return torch.where(stable, exact, 0.5 * x + torch.pow(x, 2) / 24.0 - torch.pow(x, 4) / 2880.0)
