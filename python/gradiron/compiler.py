"""What programs tell the compiler, which is not there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ._settings import compile

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
]


def is_compiling() -> bool:
    return False


def is_dynamo_compiling() -> bool:
    return False


def is_exporting() -> bool:
    return False


def reset() -> None:
    """Nothing to forget."""


def cudagraph_mark_step_begin() -> None:
    """Nothing to mark."""


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself; without one, what gives it back."""
    return (lambda given: given) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    return fn


def assume_constant_result(fn: Any) -> Any:
    return fn


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    return []


@contextlib.contextmanager
def set_stance(stance: str = "default", **options: Any) -> Iterator[None]:
    yield
