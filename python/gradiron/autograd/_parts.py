"""Functions of complex tensors as functions of their parts, whose Jacobians are real: so `gradcheck` reads them.

A gradient that follows PyTorch's convention, dL/dre + i dL/dim, is right exactly where those of the parts are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradiron


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

    leaves = tuple(
        gradiron.view_as_real(x.detach()).clone().requires_grad_() if i in places else x for i, x in enumerate(inputs)
    )
    return apart, leaves


def _parts(value: Any) -> Any:
    return gradiron.view_as_real(value) if is_complex(value) else value
