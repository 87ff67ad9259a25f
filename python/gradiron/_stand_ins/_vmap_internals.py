"""The old place of `vmap`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from gradiron.func import vmap as _new

__all__ = ["vmap"]


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """`func.vmap`; with `allow_none_pass_through`, `None` among the results is returned as it is."""
    if not allow_none_pass_through:
        return _new(func, in_dims, out_dims)

    def call(*args: Any) -> Any:
        found: dict[str, Any] = {}

        def tensors(*samples: Any) -> Any:
            outputs = func(*samples)
            found["tuple"] = isinstance(outputs, tuple)
            found["outputs"] = outputs if found["tuple"] else (outputs,)
            return tuple(out for out in found["outputs"] if out is not None)

        # The call tells first whether a result is missing, so that the dimensions are moved afterwards.
        made = iter(_new(tensors, in_dims, 0)(*args))
        dims = out_dims if isinstance(out_dims, tuple) else (out_dims,) * len(found["outputs"])
        outputs = tuple(
            None if out is None else next(made).movedim(0, dim) for out, dim in zip(found["outputs"], dims, strict=True)
        )
        return outputs if found["tuple"] else outputs[0]

    return call


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """Map a function over a batch; deprecated in favour of `torch.vmap`.

    Args:
        func: function of tensors.
        in_dims, out_dims: as in `torch.vmap`. Default: `0`

    Examples:
        >>> import gradiron._vmap_internals
        >>> gradiron._vmap_internals.vmap(torch.sum)(torch.ones(2, 3))
        tensor([3., 3.])
    """
    warnings.warn("Please use torch.vmap instead of torch._vmap_internals.vmap.", FutureWarning, stacklevel=2)
    return _vmap(func, in_dims, out_dims)
