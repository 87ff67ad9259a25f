"""Special functions of mathematics."""

from __future__ import annotations

from . import _core
from ._core import Tensor
from ._functions.polynomials import POLYNOMIALS as _POLYNOMIALS

_ROWS = {name.removeprefix("special_"): function for name, function in vars(_core).items() if name.startswith("special_")}
# Functions that are in the top-level namespace, too.
_SHARED = (
    *(_core.digamma, _core.erf, _core.erfc, _core.erfinv, _core.exp2, _core.expm1, _core.i0, _core.log1p, _core.log_softmax),
    *(_core.logit, _core.logsumexp, _core.polygamma, _core.round, _core.sinc, _core.softmax, _core.xlogy),
)
# Those that have other names there.
_RENAMED = {
    "expit": _core.sigmoid,
    "gammainc": _core.igamma,
    "gammaincc": _core.igammac,
    "gammaln": _core.lgamma,
    "modified_bessel_i0": _core.i0,
    "modified_bessel_i1": _core.special_i1,
    "multigammaln": _core.mvlgamma,
    "psi": _core.digamma,
}
_FUNCTIONS = {**_ROWS, **{function.__name__: function for function in _SHARED}, **_RENAMED, **_POLYNOMIALS}
# A polynomial that only its kinds share.
del _FUNCTIONS["polynomial"]
globals().update(_FUNCTIONS)

__all__ = sorted(["spherical_bessel_j0", *_FUNCTIONS])


def spherical_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Compute the spherical Bessel function of the first kind of order 0, `_core.sin(x) / x`.

    Args:
        input: tensor.
        out: tensor to write to.

    Examples:
        >>> torch.special.spherical_bessel_j0(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 0.8415])
    """
    zero = input == 0
    found = _core.where(zero, 1.0, _core.where(_core.isinf(input), 0.0, _core.sin(input) / _core.where(zero, 1.0, input)))
    return found if out is None else _core.add(found, 0, out=out)
