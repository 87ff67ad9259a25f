"""Classes of tensors that see every call of the dispatcher. There are none (`__torch_dispatch__` is never called)."""

from __future__ import annotations

__all__: list[str] = []


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a tensor wraps others that a tracer could look into: none does."""
    return False


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class is one of such tensors: none is."""
    return False
