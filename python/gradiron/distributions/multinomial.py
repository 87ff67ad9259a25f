"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

import gradiron as torch

from .._core import Tensor
from .._types import Size
from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import NO_SHAPE, Distribution, _listed
from .utils import (
    broadcast_all,
)

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """Multinomial distribution: how often each category comes up in `total_count` draws.

    Args:
        total_count: number of draws. Default: `1`
        probs: probabilities or weights along the last dimension, normalized to sum to 1.
        logits: unnormalized log-probabilities; give either these or `probs`.
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> d = torch.distributions.Multinomial(8, torch.tensor([1.0, 3.0]))
        >>> d.mean, d.sample().sum()
        (tensor([2., 6.]), tensor(8.))
    """

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Multinomial, _instance)
        batch_shape = _listed(batch_shape)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = self._binomial.expand((*batch_shape, self.event_shape[-1]))
        return self._grown(new, batch_shape)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        sample_shape = _listed(sample_shape)
        draws = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        counts = torch.zeros(self._extended_shape(sample_shape), dtype=torch.int64, device=draws.device)
        return counts.scatter_add_(-1, draws, torch.ones_like(draws)).type_as(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        ways = torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1)
        # What never comes and did not come has no part in it.
        logits = logits.masked_fill((value == 0) & (logits == -torch.inf), 0)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = torch.tensor(self.total_count)
        support = self._binomial.enumerate_support(expand=False)[1:]
        weighted = torch.exp(self._binomial.log_prob(support)) * torch.lgamma(support + 1)
        return n * self._categorical.entropy() - torch.lgamma(n + 1) + weighted.sum([0, -1])
