"""The attributes that users set on tensors, and what a thread that saves or loads has to know."""

from __future__ import annotations

import copyreg
import threading
from typing import Any

from .._core import Tensor


class _Thread(threading.local):
    """The options of the `save` or `load` that runs in this thread."""

    # Then `super().__reduce_ex__` of a subclass gives PyTorch's call, too.
    saves = False
    skip_data = False
    map_location: Any = None


thread = _Thread()


def restored(made: Any, state: Any) -> Any:
    """A tensor with what hung on it, put back by its class if that has its own way."""
    own = getattr(type(made), "__setstate__", None)
    if own is not None and own is not getattr(Tensor, "__setstate__", None):
        made.__setstate__(state)
        return made
    return _set_obj_state(made, state)


def _set_obj_state(obj: Any, state: Any) -> Any:
    slots = None
    if isinstance(state, tuple):
        if len(state) != 2:
            raise RuntimeError(f"Invalid serialized state: {state}")
        state, slots = state
    if state:
        obj.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(obj, name, value)
    return obj


def _get_obj_state(obj: Any) -> Any:
    """What hangs on an object, told by its class if that has its own way."""
    own = getattr(type(obj), "__getstate__", None)
    if own is not None and own is not getattr(object, "__getstate__", None):
        return obj.__getstate__()
    return attributes(obj)


def attributes(obj: Any) -> Any:
    """What the user hung on an object: its dictionary, or that and its slots."""
    names = getattr(copyreg, "_slotnames")(type(obj))  # noqa: B009 (pickle's own, without a public name)
    slots = {name: getattr(obj, name) for name in names if hasattr(obj, name)}
    return (obj.__dict__, slots) if slots else obj.__dict__
