"""`functionalize` and `debug_unwrap`, which have little to do here as nothing is traced."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _core
from .._core import Tensor

REMOVABLE = ("mutations", "mutations_and_views")


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Return a function like `func`, with the same effects on its inputs.

    In PyTorch this removes in-place operators from traces; nothing is traced here.

    Args:
        func: function to transform.
        remove: `"mutations"` or `"mutations_and_views"`; makes no difference. Default: `"mutations"`

    Examples:
        >>> torch.func.functionalize(lambda x: x.clone().add_(1))(torch.ones(2))
        tensor([2., 2.])
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
    """Return the plain tensor inside of the wrappers of `grad`, `vmap` and other transforms, for debugging.

    Args:
        tensor: tensor that a transform has wrapped, or any other.
        recurse: remove the wrappers of all transforms, not only of the innermost. Default: `True`

    Examples:
        >>> torch.func.debug_unwrap(torch.ones(2))
        tensor([1., 1.])
    """
    layer = _core.layer(tensor)
    while layer is not None:
        depth, dim, tensor = layer
        if dim is None:
            tensor = _core.untracked(tensor)
        layer = _core.layer(tensor, depth) if recurse else None
    return tensor
