"""The relaxed one-hot categorical distribution, whose samples have gradients."""

from __future__ import annotations

from typing import Any

import gradiron as torch

from .._core import Tensor
from .._types import Size
from . import constraints
from .categorical import Categorical
from .distribution import NO_SHAPE, Distribution, _listed
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import (
    broadcast_all,
    clamp_probs,
)

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """Distribution of the logarithm of a `RelaxedOneHotCategorical` variable."""

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    # Vectors whose exponentials sum to 1; of these there is no constraint.
    support: Any = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        batch_shape = _listed(batch_shape)
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)
        return self._grown(new, batch_shape)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(torch.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-(u.log())).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        k = self._categorical._num_events
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        temperature = torch.full_like(torch.as_tensor(self.temperature), float(k))
        size = temperature.lgamma() - self.temperature.log().mul(-(k - 1))
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + size


class RelaxedOneHotCategorical(TransformedDistribution):
    """Relaxed one-hot categorical (Concrete, Gumbel-softmax) distribution, whose samples have gradients.

    Samples are vectors of probabilities, closer to one-hot the lower the temperature.

    Args:
        temperature: relaxation temperature, above 0.
        probs: probabilities or weights along the last dimension, normalized to sum to 1.
        logits: unnormalized log-probabilities; give either these or `probs`.
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> d = torch.distributions.RelaxedOneHotCategorical(torch.tensor(0.5), logits=torch.zeros(3))
        >>> d.rsample().sum()
        tensor(1.)
    """

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support: Any = constraints.simplex
    has_rsample: Any = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, self._get_checked_instance(RelaxedOneHotCategorical, _instance))

    @property
    def temperature(self) -> Tensor:
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        return self.base_dist.probs
