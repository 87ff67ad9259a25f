"""The LKJ distribution of the Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

import gradiron as torch

from .._core import Tensor
from .._types import Size
from ..autograd.grad_mode import no_grad
from . import constraints
from .beta import Beta
from .distribution import NO_SHAPE, Distribution, _listed
from .utils import (
    broadcast_all,
    mvlgamma,
)

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """LKJ distribution of the lower Cholesky factors of correlation matrices.

    The density of a correlation matrix is proportional to `det(matrix)**(concentration - 1)`; 1 is uniform.

    Args:
        dim: size of the matrices, at least 2.
        concentration: concentration parameter. Default: `1.0`
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> factor = torch.distributions.LKJCholesky(3, 1.0).sample()
        >>> (factor @ factor.T).shape
        torch.Size([3, 3])
    """

    arg_constraints: Any = {"concentration": constraints.positive}
    support: Any = constraints.corr_cholesky
    concentration: Tensor

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        batch = self.concentration.size()
        # The onion method: a row's squared length in front of the diagonal is Beta distributed.
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = torch.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = torch.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(batch, Size((dim, dim)), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(LKJCholesky, _instance)
        batch_shape = _listed(batch_shape)
        new.dim = self.dim
        new.concentration = self.concentration.expand(batch_shape)
        new._beta = self._beta.expand((*batch_shape, self.dim))
        return self._grown(new, batch_shape)

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        with no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            normal = torch.randn(self._extended_shape(sample_shape), dtype=y.dtype, device=y.device).tril(-1)
            sphere = normal / normal.norm(dim=-1, keepdim=True)
            sphere[..., 0, :].fill_(0.0)
            w = torch.sqrt(y) * sphere
            diagonal = torch.clamp(1 - torch.sum(w**2, dim=-1), min=torch.finfo(w.dtype).tiny).sqrt()
            return w + torch.diag_embed(diagonal)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        n = self.dim - 1
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - torch.arange(2, self.dim + 1, device=value.device)
        density = torch.sum(order * diagonal.log(), dim=-1)
        alpha = self.concentration + 0.5 * n
        below = mvlgamma(alpha - 0.5, n)
        return density - (0.5 * n * math.log(math.pi) + below - torch.lgamma(alpha) * n)
