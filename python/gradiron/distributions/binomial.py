"""The binomial distribution."""

from __future__ import annotations

from typing import Any

import gradiron as torch

from .._core import Tensor
from ..autograd.grad_mode import no_grad
from ..nn import functional as F
from . import constraints
from .distribution import NO_SHAPE, Distribution
from .utils import Odds, broadcast_all

__all__ = ["Binomial"]


class Binomial(Odds, Distribution):
    """Binomial distribution: the number of successes in `total_count` independent trials.

    Args:
        total_count: number of trials. Default: `1`
        probs: probability of success; give either this or `logits`.
        logits: log-odds of success.
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> d = torch.distributions.Binomial(10, probs=torch.tensor([0.5, 0.1]))
        >>> d.mean
        tensor([5., 1.])
    """

    arg_constraints: Any = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _held = ("total_count", "probs", "logits")
    total_count: Tensor

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        ((name, odds),) = self._odds(probs, logits).items()
        counts, odds = broadcast_all(total_count, odds)
        self._hold(validate_args, total_count=counts.type_as(odds), **{name: odds})

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        n, logits = self.total_count, self.logits
        ways = torch.lgamma(n + 1) - torch.lgamma(value + 1) - torch.lgamma(n - value + 1)
        return value * logits + ways - n * F.softplus(logits)

    def _one_count(self, purpose: str) -> int:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{purpose}`.")
        return count

    def entropy(self) -> Tensor:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(torch.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._one_count("enumerate_support")
        return self._enumerated(torch.arange(1 + count, dtype=self._param.dtype, device=self._param.device), expand)
