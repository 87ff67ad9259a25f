"""Names of PyTorch's compiler, which gradiron does not have."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from gradiron._functions.settings import compile

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
    """Return whether code is being compiled, which it never is.

    Examples:
        >>> torch.compiler.is_compiling()
        False
    """
    return False


def is_dynamo_compiling() -> bool:
    """Return whether Dynamo is compiling, which it never is.

    Examples:
        >>> torch.compiler.is_dynamo_compiling()
        False
    """
    return False


def is_exporting() -> bool:
    """Return whether a model is being exported, which it never is.

    Examples:
        >>> torch.compiler.is_exporting()
        False
    """
    return False


def reset() -> None:
    """Do nothing, as there are no compiled programs.

    Examples:
        >>> torch.compiler.reset()
    """


def cudagraph_mark_step_begin() -> None:
    """Do nothing, as there are no CUDA graphs.

    Examples:
        >>> torch.compiler.cudagraph_mark_step_begin()
    """


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return a function as it is, or a decorator that does.

    Args:
        fn: function.
        recursive: ignored. Default: `True`
        reason: ignored.

    Examples:
        >>> torch.compiler.disable(abs) is abs
        True
    """
    return (lambda given: given) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """Return a function as it is.

    Args:
        fn: function.

    Examples:
        >>> torch.compiler.allow_in_graph(abs) is abs
        True
    """
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Return a function as it is.

    Args:
        fn: function.

    Examples:
        >>> torch.compiler.assume_constant_result(abs) is abs
        True
    """
    return fn


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the names of compiler backends, of which there are none.

    Args:
        exclude_tags: ignored. Default: `("debug", "experimental")`

    Examples:
        >>> torch.compiler.list_backends()
        []
    """
    return []


@contextlib.contextmanager
def set_stance(stance: str = "default", **options: Any) -> Iterator[None]:
    """Do nothing in a `with` block.

    Args:
        stance: ignored. Default: `"default"`
        options: ignored.

    Examples:
        >>> with torch.compiler.set_stance("force_eager"):
        ...     x = torch.ones(1)
    """
    yield
