"""Orthogonal polynomials, computed by their recurrences; each element may have its own degree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor
from .._creation import tensor

_LARGEST_ORDER = 2**20  # nothing interrupts the steps of an element


_DOC = """Compute the {doc}.

Args:
    input: tensor or number.
    n: degree, a tensor or number; a negative one gives 0.
    out: tensor to write to.

Examples:
    >>> torch.special.{name}(torch.tensor(0.5), 2).item()
    {value}
"""


def _pair(name: str, x: Any, n: Any) -> tuple[Tensor, Tensor]:
    if not isinstance(x, Tensor) and not isinstance(n, Tensor):
        got = f"({type(x).__name__}, {type(n).__name__})"
        raise TypeError(
            f"special_{name}() received an invalid combination of arguments - got {got}, but expected one of:\n"
            " * (Tensor x, Tensor n, *, Tensor out = None)\n * (Number x, Tensor n, *, Tensor out = None)\n"
            " * (Tensor x, Number n, *, Tensor out = None)\n"
        )
    dtype = _core.result_type(x, n)
    if dtype.is_complex:
        kind = str(_core.empty(0, dtype=dtype).type()).removeprefix("torch.").removesuffix("Tensor")
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{kind}'")
    dtype = dtype if dtype.is_floating_point else _core.get_default_dtype()
    device = x.device if isinstance(x, Tensor) else n.device
    x, n = (t.to(dtype) if isinstance(t, Tensor) else tensor(t, dtype=dtype, device=device) for t in (x, n))
    return x, n


def _polynomial(name: str, doc: str, example: float, shifted: bool = False) -> Callable[..., Tensor]:
    of = name.removeprefix("shifted_")

    def function(input: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
        x, given = _pair(name, input, n)
        given = given.detach()
        x, order = _core.broadcast_tensors(x, given)
        known = order.numel() > 0 and not order.is_meta
        largest = float(_core.where(given == given, given, -1).max()) if known else 0.0
        if largest > _LARGEST_ORDER:
            raise NotImplementedError(f"special_{name}() of an order above {_LARGEST_ORDER:,}, but got {largest:g}")
        x = 2 * x - 1 if shifted else x
        found = _core.special_polynomial(x, order, of) if x.is_cpu else _by_passes(of, x, order, int(largest))
        return found if out is None else _core.add(found, 0, out=out)

    function.__name__ = function.__qualname__ = name
    # Pickles find it there.
    function.__module__ = f"{__package__.partition('.')[0]}.special"
    function.__doc__ = _DOC.format(doc=doc, name=name, value=example)
    return function


# The polynomial of degree 1 as `a x + b`, and for each degree the `a, b, c` of the next one, `(a x + b) p - c q`.
_RECURRENCES: dict[str, tuple[tuple[int, int], Callable[[int], tuple[float, float, float]]]] = {
    **{
        f"chebyshev_polynomial_{kind}": (first, lambda k: (2, 0, 1))
        for kind, first in {"t": (1, 0), "u": (2, 0), "v": (2, -1), "w": (2, 1)}.items()
    },
    "hermite_polynomial_h": ((2, 0), lambda k: (2, 0, 2 * k)),
    "hermite_polynomial_he": ((1, 0), lambda k: (1, 0, k)),
    "laguerre_polynomial_l": ((-1, 1), lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1))),
    "legendre_polynomial_p": ((1, 0), lambda k: ((2 * k + 1) / (k + 1), 0, k / (k + 1))),
}


def _by_passes(of: str, x: Tensor, order: Tensor, largest: int) -> Tensor:
    """The polynomials by operators on whole tensors, for devices that have no kernel of their own."""
    (a, b), step = _RECURRENCES[of]
    order = order.trunc()
    last, made = _core.ones_like(x), a * x + b
    found = _core.where(order == 0, last, _core.where(order == 1, made, _core.zeros_like(x)))
    for k in range(1, largest):
        a, b, c = step(k)  # type: ignore[assignment]
        last, made = made, (a * x + b) * made - c * last
        found = _core.where(order == k + 1, made, found)
    return found


# What each one is, and its value of degree 2 at 0.5.
_KINDS = {
    "chebyshev_polynomial_t": ("Chebyshev polynomial of the first kind", -0.5),
    "shifted_chebyshev_polynomial_t": ("Chebyshev polynomial of the first kind at `2 * x - 1`", -1.0),
    "chebyshev_polynomial_u": ("Chebyshev polynomial of the second kind", 0.0),
    "shifted_chebyshev_polynomial_u": ("Chebyshev polynomial of the second kind at `2 * x - 1`", -1.0),
    "chebyshev_polynomial_v": ("Chebyshev polynomial of the third kind", -1.0),
    "shifted_chebyshev_polynomial_v": ("Chebyshev polynomial of the third kind at `2 * x - 1`", -1.0),
    "chebyshev_polynomial_w": ("Chebyshev polynomial of the fourth kind", 1.0),
    "shifted_chebyshev_polynomial_w": ("Chebyshev polynomial of the fourth kind at `2 * x - 1`", -1.0),
    "hermite_polynomial_h": ("physicist's Hermite polynomial", -1.0),
    "hermite_polynomial_he": ("probabilist's Hermite polynomial", -0.75),
    "laguerre_polynomial_l": ("Laguerre polynomial", 0.125),
    "legendre_polynomial_p": ("Legendre polynomial", -0.125),
}
POLYNOMIALS: dict[str, Callable[..., Tensor]] = {
    name: _polynomial(name, doc, value, name.startswith("shifted_")) for name, (doc, value) in _KINDS.items()
}
