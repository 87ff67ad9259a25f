"""The von Mises distribution of angles."""

from __future__ import annotations

import math
from typing import Any

import gradiron as torch

from .._core import Tensor
from .._types import Size
from ..autograd.grad_mode import no_grad
from . import constraints
from .distribution import NO_SHAPE, Distribution
from .utils import (
    broadcast_all,
    lazy_property,
)

__all__ = ["VonMises"]


# Polynomials of Abramowitz and Stegun, 9.8.1 to 9.8.4, for the modified Bessel functions of order 0 and 1.
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411),
)
_LARGE = (
    (0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537, -0.01647633, 0.00392377),
    (0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312, 0.01787654, -0.00420059),
)


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    result: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        result = c + x * result
    return result


def _log_bessel(x: Tensor, order: int) -> Tensor:
    """The logarithm of the modified Bessel function of order 0 or 1, at positive numbers."""
    square = (x / 3.75) ** 2
    small = _polynomial(square, _SMALL[order])
    small = (x.abs() * small if order else small).log()
    large = x - 0.5 * x.log() + _polynomial(3.75 / x, _LARGE[order]).log()
    return torch.where(x < 3.75, small, large)


class VonMises(Distribution):
    """Von Mises distribution, the counterpart of the normal distribution for angles.

    Args:
        loc: mean angle in radians.
        concentration: concentration; the larger, the narrower.
        validate_args: check the parameters and samples; `Distribution`'s setting if `None`.

    Examples:
        >>> d = torch.distributions.VonMises(0.0, 2.0)
        >>> d.log_prob(torch.tensor(0.0))
        tensor(-0.6619)
    """

    arg_constraints: Any = {"loc": constraints.real, "concentration": constraints.positive}
    support: Any = constraints.real
    has_rsample = False
    _held = ("loc", "concentration")
    loc: Tensor
    concentration: Tensor

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, Size(()), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        if _instance is not None:
            return super().expand(batch_shape, _instance)
        return type(self)(self.loc.expand(batch_shape), self.concentration.expand(batch_shape), self._validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        return 1 - (_log_bessel(self.concentration, 1) - _log_bessel(self.concentration, 0)).exp()

    def _proposal(self) -> Tensor:
        """Best and Fisher's parameter of the wrapped Cauchy distribution that is drawn from, in double precision."""
        kappa = self.concentration.to(torch.double)
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        # Where nothing is left of the difference, its expansion.
        return torch.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = NO_SHAPE) -> Tensor:
        with no_grad():
            shape = self._extended_shape(sample_shape)
            loc, kappa, r = self.loc.double(), self.concentration.double(), self._proposal()
            x = torch.zeros(shape, dtype=loc.dtype, device=loc.device)
            kappa, r = kappa.expand(shape), r.expand(shape)
            # Nothing would ever be accepted where the parameter is out of bounds: all that is left is the middle.
            done = ~((r > 1) & (r < math.inf))
            while not done.all():
                u1, u2, u3 = torch.rand((3, *shape), dtype=loc.dtype, device=loc.device).unbind()
                z = torch.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                x = torch.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        cosine = self.concentration * torch.cos(value - self.loc)
        return cosine - math.log(2 * math.pi) - _log_bessel(self.concentration, 0)
