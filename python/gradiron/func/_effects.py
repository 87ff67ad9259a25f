"""What PyTorch's tracers need and programs that use them call: here operators run at once, with their effects."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor

REMOVABLE = ("mutations", "mutations_and_views")


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function that returns what `func` does, with the same effects on its inputs.

    Nothing traces the operators in between, so that which of them write in place or return views is nobody's concern.
    """
    if remove not in REMOVABLE:
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are: "
            f"{' and '.join(map(repr, REMOVABLE))}."
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapped


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The values without what transforms put around them (without `recurse`, without the innermost transform's)."""
    layer = _core.layer(tensor)
    while layer is not None:
        depth, dim, tensor = layer
        if dim is None:
            tensor = _core.untracked(tensor)
        layer = _core.layer(tensor, depth) if recurse else None
    return tensor
