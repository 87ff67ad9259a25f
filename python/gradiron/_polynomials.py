"""Orthogonal polynomials of `special`, by their recurrences; each element may have an order of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _core
from ._core import Tensor
from ._creation import tensor

_First = Callable[[Tensor], Tensor]
# The next polynomial of the order, the argument, and the last two.
_Next = Callable[[int, Tensor, Tensor, Tensor], Tensor]

_LARGEST_ORDER = 2**20  # a step of the recurrence is several passes over the tensor


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
    wide = [t.to(dtype) if isinstance(t, Tensor) else tensor(t, dtype=dtype, device=device) for t in (x, n)]
    x, n = _core.broadcast_tensors(*wide)
    return x, n


def _polynomial(name: str, first: _First, following: _Next, doc: str, shifted: bool = False) -> Callable[..., Tensor]:
    def function(input: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
        x, order = _pair(name, input, n)
        order = order.detach().trunc()
        largest = float(_core.where(order == order, order, -1).max()) if order.numel() else 0.0
        if largest > _LARGEST_ORDER:
            raise NotImplementedError(f"special_{name}() of an order above {_LARGEST_ORDER:,}, but got {largest:g}")
        if shifted:
            x = 2 * x - 1
        last, made = _core.ones_like(x), first(x)
        found = _core.where(order == 0, last, _core.where(order == 1, made, _core.zeros_like(x)))
        for k in range(1, int(largest)):
            last, made = made, following(k, x, made, last)
            found = _core.where(order == k + 1, made, found)
        return found if out is None else _core.add(found, 0, out=out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _doubled(k: int, x: Tensor, made: Tensor, last: Tensor) -> Tensor:
    return 2 * x * made - last


_CHEBYSHEV: dict[str, tuple[str, _First]] = {
    "t": ("first", lambda x: x),
    "u": ("second", lambda x: 2 * x),
    "v": ("third", lambda x: 2 * x - 1),
    "w": ("fourth", lambda x: 2 * x + 1),
}
POLYNOMIALS: dict[str, Callable[..., Tensor]] = {}
for _kind, (_word, _first) in _CHEBYSHEV.items():
    for _shifted in (False, True):
        _name = f"{'shifted_' if _shifted else ''}chebyshev_polynomial_{_kind}"
        _doc = f"Chebyshev's polynomials of the {_word} kind{', of 2 x - 1' if _shifted else ''}."
        POLYNOMIALS[_name] = _polynomial(_name, _first, _doubled, _doc, _shifted)
POLYNOMIALS["hermite_polynomial_h"] = _polynomial(
    "hermite_polynomial_h",
    lambda x: 2 * x,
    lambda k, x, made, last: 2 * (x * made - k * last),
    "Hermite's polynomials, as physicists have them.",
)
POLYNOMIALS["hermite_polynomial_he"] = _polynomial(
    "hermite_polynomial_he",
    lambda x: x,
    lambda k, x, made, last: x * made - k * last,
    "Hermite's polynomials, as statisticians have them.",
)
POLYNOMIALS["laguerre_polynomial_l"] = _polynomial(
    "laguerre_polynomial_l",
    lambda x: 1 - x,
    lambda k, x, made, last: ((2 * k + 1 - x) * made - k * last) / (k + 1),
    "Laguerre's polynomials.",
)
POLYNOMIALS["legendre_polynomial_p"] = _polynomial(
    "legendre_polynomial_p",
    lambda x: x,
    lambda k, x, made, last: ((2 * k + 1) * x * made - k * last) / (k + 1),
    "Legendre's polynomials.",
)
