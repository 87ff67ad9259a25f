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

    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    call.__doc__ = f"Raises NotImplementedError: {instead}."
    return call
