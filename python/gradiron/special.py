"""Special functions of mathematics."""

from __future__ import annotations

from ._core import (
    Tensor,
    add,
    digamma,
    erf,
    erfc,
    erfinv,
    exp2,
    expm1,
    i0,
    isinf,
    log1p,
    log_softmax,
    logit,
    logsumexp,
    polygamma,
    round,
    sin,
    sinc,
    softmax,
    where,
    xlogy,
)
from ._core import digamma as psi
from ._core import igamma as gammainc
from ._core import igammac as gammaincc
from ._core import lgamma as gammaln
from ._core import mvlgamma as multigammaln
from ._core import sigmoid as expit
from ._core import special_airy_ai as airy_ai
from ._core import special_bessel_j0 as bessel_j0
from ._core import special_bessel_j1 as bessel_j1
from ._core import special_bessel_y0 as bessel_y0
from ._core import special_bessel_y1 as bessel_y1
from ._core import special_entr as entr
from ._core import special_erfcx as erfcx
from ._core import special_i0e as i0e
from ._core import special_i1 as i1
from ._core import special_i1e as i1e
from ._core import special_log_ndtr as log_ndtr
from ._core import special_modified_bessel_k0 as modified_bessel_k0
from ._core import special_modified_bessel_k1 as modified_bessel_k1
from ._core import special_ndtr as ndtr
from ._core import special_ndtri as ndtri
from ._core import special_scaled_modified_bessel_k0 as scaled_modified_bessel_k0
from ._core import special_scaled_modified_bessel_k1 as scaled_modified_bessel_k1
from ._core import special_xlog1py as xlog1py
from ._core import special_zeta as zeta
from ._polynomials import POLYNOMIALS

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "sinc",
    "softmax",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]

modified_bessel_i0, modified_bessel_i1 = i0, i1


def spherical_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the spherical Bessel function of the first kind of order 0, `sin(x) / x`.

    Args:
        input: tensor.
        out: tensor to write to.

    Examples:
        >>> torch.special.spherical_bessel_j0(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 0.8415])
    """
    zero = input == 0
    found = where(zero, 1.0, where(isinf(input), 0.0, sin(input) / where(zero, 1.0, input)))
    return found if out is None else add(found, 0, out=out)


chebyshev_polynomial_t = POLYNOMIALS["chebyshev_polynomial_t"]
chebyshev_polynomial_u = POLYNOMIALS["chebyshev_polynomial_u"]
chebyshev_polynomial_v = POLYNOMIALS["chebyshev_polynomial_v"]
chebyshev_polynomial_w = POLYNOMIALS["chebyshev_polynomial_w"]
hermite_polynomial_h = POLYNOMIALS["hermite_polynomial_h"]
hermite_polynomial_he = POLYNOMIALS["hermite_polynomial_he"]
laguerre_polynomial_l = POLYNOMIALS["laguerre_polynomial_l"]
legendre_polynomial_p = POLYNOMIALS["legendre_polynomial_p"]
shifted_chebyshev_polynomial_t = POLYNOMIALS["shifted_chebyshev_polynomial_t"]
shifted_chebyshev_polynomial_u = POLYNOMIALS["shifted_chebyshev_polynomial_u"]
shifted_chebyshev_polynomial_v = POLYNOMIALS["shifted_chebyshev_polynomial_v"]
shifted_chebyshev_polynomial_w = POLYNOMIALS["shifted_chebyshev_polynomial_w"]
