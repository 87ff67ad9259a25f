"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import gradiron as torch

from .._core import Tensor
from ..autograd.grad_mode import no_grad
from ..nn import functional as F
from . import constraints
from .distribution import NO_SHAPE
from .exp_family import ExponentialFamily
from .utils import Odds, broadcast_all

__all__ = ["Bernoulli"]


class Bernoulli(Odds, ExponentialFamily):
    """Bernoulli distribution: 1 with probability `probs`, otherwise 0.

    Args:
        probs: probability of 1; give either this or `logits`.
        logits: log-odds of 1.
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> d = torch.distributions.Bernoulli(0.25)
        >>> d.mean, d.log_prob(torch.tensor(1.0))
        (tensor(0.2500), tensor(-1.3863))
    """

    arg_constraints: Any = {"probs": constraints.unit_interval, "logits": constraints.real}
    support: Any = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure: Any = 0
    _held = ("probs", "logits")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._hold(validate_args, **self._odds(probs, logits))

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = torch.nan
        return mode

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        with no_grad():
            return torch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(torch.arange(2, dtype=self._param.dtype, device=self._param.device), expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (torch.logit(self.probs),)

    def _log_normalizer(self, x: Any) -> Tensor:
        return torch.log(1 + torch.exp(x))
