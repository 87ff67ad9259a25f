"""The base class of exponential families, whose entropy follows from the log normalizer."""

from __future__ import annotations

from typing import Any

import gradiron as torch

from .._core import Tensor
from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Base class of exponential families, with the density `exp(<t(x), theta> - F(theta) + k(x))`.

    A subclass gives the natural parameters `theta` and the log normalizer `F`, from which `entropy` is computed.

    Args:
        batch_shape: shape of the batch. Default: `torch.Size([])`
        event_shape: shape of one sample of one distribution. Default: `torch.Size([])`
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> isinstance(torch.distributions.Normal(0.0, 1.0), torch.distributions.ExponentialFamily)
        True
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        """The mean of `k`."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Compute the entropy from the log normalizer and its gradient."""
        natural = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*natural)
        gradients = torch.autograd.grad(normalizer.sum(), natural, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for parameter, gradient in zip(natural, gradients, strict=False):
            result = result - (parameter * gradient).reshape((*self._batch_shape, -1)).sum(-1)
        return result
