"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

import gradiron as torch

from .._core import Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from .categorical import Categorical
from .distribution import NO_SHAPE, Distribution, _listed

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Mixture of distributions of one family.

    Args:
        mixture_distribution: `Categorical` that selects the component.
        component_distribution: distributions whose last batch dimension runs over the components.
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> weights = torch.distributions.Categorical(torch.tensor([0.25, 0.75]))
        >>> parts = torch.distributions.Normal(torch.tensor([0.0, 4.0]), torch.ones(2))
        >>> torch.distributions.MixtureSameFamily(weights, parts).mean
        tensor(3.)
    """

    arg_constraints: Any = {}

    def __init__(self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        batch = component_distribution.batch_shape[:-1]
        for mine, theirs in zip(reversed(mixture_distribution.batch_shape), reversed(batch), strict=False):
            if mine != 1 and theirs != 1 and mine != theirs:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_distribution.batch_shape}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch})"
                )
        weights, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if weights is not None and components is not None and weights != components:
            raise ValueError(
                f"`mixture_distribution component` ({weights}) does not equal `component_distribution.batch_shape[-1]` "
                f"({components})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = components
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(batch, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = _listed(batch_shape)
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        new._num_component = self._num_component
        new._event_ndims = len(new._component_distribution.event_shape)
        return self._grown(new, batch_shape, new._component_distribution.event_shape)

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Any:
        """The distribution that selects the component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Any:
        """The distributions of the components."""
        return self._component_distribution

    def _weights(self) -> Tensor:
        """The probabilities, with dimensions for the event."""
        probs = self._mixture_distribution.probs
        return probs.reshape((*probs.shape, *[1] * self._event_ndims))

    @property
    def mean(self) -> Tensor:
        return torch.sum(self._weights() * self._component_distribution.mean, dim=-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        # The mean variance, and the variance of the means.
        weights, place = self._weights(), -1 - self._event_ndims
        within = torch.sum(weights * self._component_distribution.variance, dim=place)
        away = (self._component_distribution.mean - self.mean.unsqueeze(place)).pow(2.0)
        return within + torch.sum(weights * away, dim=place)

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        with no_grad():
            sample_shape = _listed(sample_shape)
            place, events = len(sample_shape) + len(self.batch_shape), tuple(self._event_shape)
            chosen = self._mixture_distribution.sample(sample_shape)
            samples = self._component_distribution.sample(sample_shape)
            index = chosen.reshape((*chosen.shape, *[1] * (len(events) + 1)))
            index = index.expand((*chosen.shape, 1, *events))
            return torch.gather(samples, place, index).squeeze(place)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        of_each = self._component_distribution.log_prob(value.unsqueeze(-1 - self._event_ndims))
        weights = torch.log_softmax(self._mixture_distribution.logits, dim=-1)
        return torch.logsumexp(of_each + weights, dim=-1)

    def cdf(self, value: Tensor) -> Tensor:
        of_each = self._component_distribution.cdf(value.unsqueeze(-1 - self._event_ndims))
        return torch.sum(of_each * self._mixture_distribution.probs, dim=-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
