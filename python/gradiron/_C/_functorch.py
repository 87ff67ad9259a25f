"""Questions about tensors inside of `torch.func`'s transforms, by the names that packages import.

Only `vmap` hides a dimension of a tensor here; the derivatives see the tensors themselves.
"""

from __future__ import annotations

from .. import _core
from .._core import Tensor


def is_batchedtensor(tensor: Tensor) -> bool:
    """Whether a `vmap` under way hides a dimension of the tensor."""
    return _core.is_batched(tensor)


def is_functorch_wrapped_tensor(tensor: Tensor) -> bool:
    """Whether a transform has wrapped the tensor, which only `vmap` does."""
    return is_batchedtensor(tensor)


def is_gradtrackingtensor(tensor: Tensor) -> bool:
    """`False`: derivatives wrap no tensors."""
    return False


def is_functionaltensor(tensor: Tensor) -> bool:
    """`False`: `functionalize` wraps no tensors."""
    return False


def is_legacy_batchedtensor(tensor: Tensor) -> bool:
    """`False`: there is one `vmap`."""
    return False


def maybe_get_level(tensor: Tensor) -> int:
    """The level of the innermost `vmap` that hides a dimension of the tensor, or -1."""
    parts = _core.batch_parts(tensor)
    return -1 if parts is None else max(parts[1])


def maybe_get_bdim(tensor: Tensor) -> int:
    """Where the innermost `vmap` put the dimension that it hides, or -1."""
    parts = _core.batch_parts(tensor)
    return -1 if parts is None else 0


def get_unwrapped(tensor: Tensor) -> Tensor:
    """The tensor with the dimension that the innermost `vmap` hides, as its first."""
    if not is_batchedtensor(tensor):
        raise RuntimeError("No wrappers present!")
    found: Tensor = _core.unwrap_batched(tensor, maybe_get_level(tensor))
    return found


def _add_batch_dim(tensor: Tensor, batch_dim: int, level: int) -> Tensor:
    """Hide a dimension, as the `vmap` of that level does."""
    found: Tensor = _core.add_batch_dim(tensor, batch_dim, level)
    return found


def _remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    """Put a dimension back where it is seen, or expand a tensor that has none of that level."""
    found: Tensor = _core.remove_batch_dim(tensor, level, batch_size, out_dim)
    return found


def get_dynamic_layer_stack_depth() -> int:
    """The number of `vmap`s under way."""
    return _core.vmap_depth()
