"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

import gradiron as torch

from .._core import Tensor
from ..autograd.grad_mode import no_grad
from ..nn import functional as F
from . import constraints
from .distribution import NO_SHAPE, Distribution
from .gamma import Gamma
from .utils import Odds, broadcast_all

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Odds, Distribution):
    """Negative binomial distribution: the number of successes before `total_count` failures.

    Args:
        total_count: number of failures at which the trials stop; need not be an integer.
        probs: probability of success; give either this or `logits`.
        logits: log-odds of success.
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> d = torch.distributions.NegativeBinomial(2.0, 0.5)
        >>> d.mean
        tensor(2.)
    """

    arg_constraints: Any = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support: Any = constraints.nonnegative_integer
    _held = ("total_count", "probs", "logits")
    total_count: Tensor

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        ((name, odds),) = self._odds(probs, logits).items()
        counts, odds = broadcast_all(total_count, odds)
        self._hold(validate_args, total_count=counts.type_as(odds), **{name: odds})

    @property
    def mean(self) -> Tensor:
        return self.total_count * torch.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / torch.sigmoid(-self.logits)

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        with no_grad():
            rates = Gamma(self.total_count, torch.exp(-self.logits), validate_args=False)
            return torch.poisson(rates.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        count = self.total_count
        chances = count * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        ways = torch.lgamma(count + value) - torch.lgamma(1.0 + value) - torch.lgamma(count)
        return chances + ways.masked_fill(count + value == 0.0, 0.0)
