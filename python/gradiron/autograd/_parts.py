"""Functions of complex tensors as functions of their parts, whose Jacobians are real: so `gradcheck` reads them.

A gradient that follows PyTorch's convention, dL/dre + i dL/dim, is right exactly where those of the parts are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gradiron

if TYPE_CHECKING:
    from gradiron import Tensor


def is_complex(value: Any) -> bool:
    return isinstance(value, gradiron.Tensor) and value.dtype.is_complex


def in_parts(func: Callable[..., Any], inputs: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """`func` and `inputs` with complex tensors taken apart, the results too; those that want a gradient become leaves."""
    places = {i for i, x in enumerate(inputs) if is_complex(x) and x.requires_grad}

    def apart(*given: Any) -> Any:
        whole = (gradiron.view_as_complex(x) if i in places else x for i, x in enumerate(given))
        result = func(*whole)
        if isinstance(result, (tuple, list)):
            return tuple(map(_parts, result))
        return _parts(result)

    # A tensor that is given twice stays one.
    leaves = {id(inputs[i]): _parts(inputs[i].detach()).clone().requires_grad_() for i in places}
    for leaf in leaves.values():
        leaf._of_complex = True
    return apart, tuple(leaves[id(x)] if i in places else x for i, x in enumerate(inputs))


def _parts(value: Any) -> Any:
    if not is_complex(value):
        return value
    parts = gradiron.view_as_real(value.resolve_conj())
    parts._of_complex = True  # type: ignore[attr-defined]
    return parts


def of_complex(parts: Any) -> bool:
    """Whether these are the parts of complex numbers."""
    return getattr(parts, "_of_complex", False)


def looks(jacobian: Tensor, inner: bool, outer: bool, forward: bool) -> list[tuple[str, Tensor]]:
    """What PyTorch compares of a Jacobian between parts: that of the outputs' imaginary, then of their real parts as complex
    numbers over the inputs; in forward mode, that of the outputs over the inputs' parts. Each with what messages say of it."""

    def joined(jacobian: Tensor, along: int, wanted: bool) -> Tensor:
        if not wanted:
            return jacobian
        re, im = (jacobian[start::2] if along == 0 else jacobian[:, start::2] for start in (0, 1))
        return gradiron.complex(re, im)

    split, side = (inner, 0) if forward else (outer, 1)
    if not split:
        return [("", joined(jacobian, 1 - side, outer if forward else inner))]
    found = []
    for start, name in ((1, "imaginary"), (0, "real")):
        part = jacobian[start::2] if side == 0 else jacobian[:, start::2]
        prefix = f"While considering the {name} part of complex {'inputs' if forward else 'outputs'} only, "
        found.append((prefix, joined(part, 1 - side, outer if forward else inner)))
    return found
