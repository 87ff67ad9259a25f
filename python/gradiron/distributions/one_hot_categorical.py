"""The categorical distribution over one-hot vectors."""

from __future__ import annotations

from typing import Any

import gradiron as torch

from .._core import Tensor
from .._types import Size
from ..nn import functional as F
from . import constraints
from .categorical import Categorical
from .distribution import NO_SHAPE, Distribution, _listed

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """Categorical distribution over one-hot vectors.

    Args:
        probs: probabilities or weights along the last dimension, normalized to sum to 1.
        logits: unnormalized log-probabilities; give either these or `probs`.
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> torch.distributions.OneHotCategorical(torch.tensor([0.0, 1.0])).sample()
        tensor([0., 1.])
    """

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support: Any = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(OneHotCategorical, _instance)
        batch_shape = _listed(batch_shape)
        new._categorical = self._categorical.expand(batch_shape)
        return self._grown(new, batch_shape)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

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
        return self.probs

    @property
    def mode(self) -> Tensor:
        return F.one_hot(self.probs.argmax(dim=-1), self.probs.shape[-1]).to(self.probs)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        return F.one_hot(self._categorical.sample(_listed(sample_shape)), self._categorical._num_events).to(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = torch.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n, *[1] * len(self.batch_shape), n))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot categorical distribution with straight-through gradients.

    `rsample` returns one-hot vectors whose gradient is passed to the probabilities.

    Args:
        probs: probabilities or weights along the last dimension, normalized to sum to 1.
        logits: unnormalized log-probabilities; give either these or `probs`.
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> logits = torch.zeros(2, requires_grad=True)
        >>> d = torch.distributions.OneHotCategoricalStraightThrough(logits=logits)
        >>> d.rsample().requires_grad
        True
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        samples = self.sample(sample_shape)
        return samples + (self.probs - self.probs.detach())
