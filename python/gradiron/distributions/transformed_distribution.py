"""Distributions of transformed random variables."""

from __future__ import annotations

from typing import Any

from .._core import Tensor
from ..autograd.grad_mode import no_grad
from . import constraints
from .distribution import NO_SHAPE, Distribution, _listed
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """Distribution of a random variable after one or several transforms.

    Args:
        base_distribution: distribution of the variable.
        transforms: transform, or a list of transforms that apply one after the other.
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> base = torch.distributions.Normal(0.0, 1.0)
        >>> d = torch.distributions.TransformedDistribution(base, torch.distributions.ExpTransform())
        >>> d.log_prob(torch.tensor(1.0))
        tensor(-0.9189)
    """

    arg_constraints: Any = {}
    base_dist: Any

    def __init__(self, base_distribution: Any, transforms: Any, validate_args: bool | None = None) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        whole = ComposeTransform(self.transforms)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        if len(base_shape) < whole.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got {base_shape}."
            )
        shape = whole.forward_shape(base_shape)
        # A scale or a shift may be of a larger batch than the base.
        expanded = whole.inverse_shape(shape)
        if base_shape != expanded:
            base_distribution = base_distribution.expand(expanded[: len(expanded) - base_event_dim])
        missing = whole.domain.event_dim - base_event_dim
        self.base_dist = Independent(base_distribution, missing) if missing > 0 else base_distribution
        event_dim = whole.codomain.event_dim + max(-missing, 0)
        cut = len(shape) - event_dim
        super().__init__(_listed(shape[:cut]), _listed(shape[cut:]), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = _listed(batch_shape)
        whole = ComposeTransform(self.transforms)
        base = whole.inverse_shape(batch_shape + self.event_shape)
        new.base_dist = self.base_dist.expand(base[: len(base) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        return self._grown(new, batch_shape)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        with no_grad():
            value = self.base_dist.sample(sample_shape)
            for transform in self.transforms:
                value = transform(value)
            return value

    def rsample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        value = self.base_dist.rsample(sample_shape)
        for transform in self.transforms:
            value = transform(value)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        event_dim = len(self.event_shape)
        total: Any = 0.0
        for transform in reversed(self.transforms):
            before = transform.inv(value)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            total = total - sum_rightmost(transform.log_abs_det_jacobian(before, value), event_dim - transform.domain.event_dim)
            value = before
        return total + sum_rightmost(self.base_dist.log_prob(value), event_dim - len(self.base_dist.event_shape))

    def _mirrored(self, value: Tensor) -> Tensor:
        """Probabilities, seen from the other end where the transforms decrease."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in self.transforms[::-1]:
            value = transform.inv(value)
        if self._validate_args:  # Whether the base does is its own affair.
            self.base_dist._validate_sample(value)
        return self._mirrored(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        value = self.base_dist.icdf(self._mirrored(value))
        for transform in self.transforms:
            value = transform(value)
        return value
