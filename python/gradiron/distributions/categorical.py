"""The categorical distribution."""

from __future__ import annotations

from typing import Any

import gradiron as torch

from .._core import Tensor
from .._types import Size
from . import constraints
from .distribution import NO_SHAPE, Distribution, _listed
from .utils import Odds

__all__ = ["Categorical"]


class Categorical(Odds, Distribution):
    """Categorical distribution over the indices `0` to `K - 1`.

    Args:
        probs: probabilities or weights along the last dimension, of size `K`.
        logits: unnormalized log-probabilities; give either these or `probs`.
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> d = torch.distributions.Categorical(torch.tensor([1.0, 3.0]))
        >>> d.probs
        tensor([0.2500, 0.7500])
        >>> d.log_prob(torch.tensor(1))
        tensor(-0.2877)
    """

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _binary = False

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        ((name, given),) = self._odds(probs, logits).items()
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if name == "probs":
            self.probs = given / given.sum(-1, keepdim=True)
        else:
            self.logits = given - given.logsumexp(dim=-1, keepdim=True)
        self._num_events = given.size()[-1]
        super().__init__(given.size()[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Categorical, _instance)
        batch_shape = _listed(batch_shape)
        for name in ("probs", "logits"):
            if name in vars(self):
                setattr(new, name, vars(self)[name].expand(batch_shape + Size((self._num_events,))))
        new._num_events = self._num_events
        return self._grown(new, batch_shape)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    # The last sample.
    _drawn: Tensor | None = None

    def _nan(self) -> Tensor:
        return torch.full(self._extended_shape(), torch.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mean(self) -> Tensor:
        return self._nan()

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return self._nan()

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        sample_shape = _listed(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        drawn = torch.multinomial(rows, sample_shape.numel(), True).T.reshape(self._extended_shape(sample_shape))
        self._drawn = drawn
        return drawn

    def log_prob(self, value: Tensor) -> Tensor:
        # What was drawn here is valid: a policy's step reads no elements, and can be captured.
        if value is not self._drawn:
            self._check_sample(value)
        value, weights = torch.broadcast_tensors([value.long().unsqueeze(-1), self.logits])
        return weights.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = torch.clamp(self.logits, min=torch.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(torch.arange(self._num_events, dtype=torch.long, device=self._param.device), expand)
