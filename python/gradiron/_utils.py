"""What programs and checkpoints know from PyTorch's module of this name."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any, NoReturn

from . import _core
from ._core import Tensor, dtype
from ._pickling import rebuild as _rebuild
from ._pickling.state import _get_obj_state as _get_obj_state
from ._pickling.state import _set_obj_state as _set_obj_state

# Checkpoints call these by this module's name.
globals().update({name: function for name, function in vars(_rebuild).items() if name.startswith("_rebuild_")})


class KeyErrorMessage(str):
    """A message that KeyError prints as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return self


class ExceptionWrapper:
    """An exception on its way from another process, with its traceback as text."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        exc_info = exc_info or sys.exc_info()
        # Not the exception itself: its frames hold what they hold.
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raises an exception of the same type, which tells the traceback."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)
        try:
            exception = self.exc_type(message)
        except Exception:
            # It takes other arguments than one.
            raise RuntimeError(message) from None
        raise exception


def _element_size(dtype: dtype) -> int:
    """How many bytes an element takes."""
    if not isinstance(dtype, _core.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def cpu_count() -> int | None:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _flatten_dense_tensors(tensors: Any) -> Tensor:
    """All elements one after the other."""
    return _core.cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Any) -> tuple[Tensor, ...]:
    """Views of such a row, shaped as the tensors that it came of."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.view(t.shape) for part, t in zip(parts, tensors, strict=True))
