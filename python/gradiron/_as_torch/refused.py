"""What PyTorch has and gradiron has not: programs name it and ask `isinstance` of it; a call says what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def refuse(name: str, instead: str) -> NoReturn:
    """Raise the error of a call of `torch.{name}`."""
    raise NotImplementedError(f"torch.{name}: {instead}")


def refused(name: str, instead: str) -> Callable[..., Any]:
    """Return a function that refuses every call."""

    def call(*args: Any, **options: Any) -> NoReturn:
        refuse(name, instead)

    parent, _, call.__name__ = name.rpartition(".")
    call.__qualname__ = call.__name__
    call.__module__ = f"gradiron.{parent}" if parent else "gradiron"
    call.__doc__ = f"Raises NotImplementedError: {instead}."
    return call
