"""Functions whose modules are loaded when they are first called."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])


def forward_to(path: str) -> Callable[[_Function], _Function]:
    """Decorate a signature, to call the function at `path` in this package, whose module the first call loads."""

    def decorate(signature: _Function) -> _Function:
        function: Any = None

        def forward(*args: Any, **kwargs: Any) -> Any:
            nonlocal function
            if function is None:
                from importlib import import_module

                module, _, target = path.rpartition(".")
                function = getattr(import_module(f"{__package__}.{module}"), target)
            return function(*args, **kwargs)

        # What `functools.wraps` does, which importing gradiron does not load.
        for name in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__"):
            setattr(forward, name, getattr(signature, name))
        forward.__wrapped__ = signature  # type: ignore[attr-defined]
        return forward  # type: ignore[return-value]

    return decorate
