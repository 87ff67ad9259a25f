"""`ExponentialFamily`: distributions whose entropy follows from the gradient of their log-normaliser."""

from __future__ import annotations

from typing import Any

import gradiron as torch

from .._core import Tensor
from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A density `exp(<t(x), θ> - F(θ) + k(x))`, told by its natural parameters and `F`."""

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
        """The entropy, by the Bregman divergence of the log-normaliser."""
        natural = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*natural)
        gradients = torch.autograd.grad(normalizer.sum(), natural, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for parameter, gradient in zip(natural, gradients, strict=False):
            result = result - (parameter * gradient).reshape((*self._batch_shape, -1)).sum(-1)
        return result
