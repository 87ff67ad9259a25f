"""What programs ask the compiler, and tell it: `torch.compile` is the compiler itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps as _wraps
from typing import Any

from ._compile.entry import check_options as _check_options
from ._compile.function import reset as _reset
from ._compile.notes import current as _current
from ._compile.settings import BACKENDS as _BACKENDS
from ._compile.settings import STANCES as _STANCES
from ._compile.settings import default_backend as _default_backend
from ._compile.settings import stance as _stance
from ._functions.settings import compile

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "cudagraph_mark_warmup_incomplete",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_default_backend",
    "set_stance",
]


def is_compiling() -> bool:
    """Return whether a call of a compiled function is being captured.

    Examples:
        >>> torch.compiler.is_compiling()
        False
    """
    return _current() is not None


def is_dynamo_compiling() -> bool:
    """Return what `is_compiling` does.

    Examples:
        >>> torch.compiler.is_dynamo_compiling()
        False
    """
    return is_compiling()


def is_exporting() -> bool:
    """Return whether `torch.onnx.export` runs a module.

    Examples:
        >>> torch.compiler.is_exporting()
        False
    """
    return False


def reset() -> None:
    """Forget all captures of all compiled functions.

    Examples:
        >>> torch.compiler.reset()
    """
    _reset()


def cudagraph_mark_step_begin() -> None:
    """Mark the begin of a step, which has no effect: results are never overwritten by the next replay.

    Examples:
        >>> torch.compiler.cudagraph_mark_step_begin()
    """


def cudagraph_mark_warmup_incomplete() -> None:
    """Ask for another warm-up call, which has no effect.

    Examples:
        >>> torch.compiler.cudagraph_mark_warmup_incomplete()
    """


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Never capture a function: a compiled function that calls it runs as it is.

    Args:
        fn: function or module; without one, the result is a decorator.
        recursive: ignored: what the function calls is not captured either. Default: `True`
        reason: why, for `torch._dynamo.explain`.

    Examples:
        >>> @torch.compiler.disable
        ... def show(x):
        ...     print(x)
        >>> show(3)
        3
    """
    if fn is None:
        return lambda given: disable(given, recursive, reason=reason)
    fn = getattr(fn, "_torchdynamo_orig_callable", fn)
    why = reason if reason is not None else True
    try:
        fn._gradiron_disabled = why
    except AttributeError:  # A bound method or a built-in function takes no attribute; a function around it does.
        taken = fn
        fn = _wraps(taken)(lambda *args, **kwargs: taken(*args, **kwargs))
        fn._gradiron_disabled = why
    return fn


def allow_in_graph(fn: Any) -> Any:
    """Return a function as it is: each function is captured with what it calls.

    Args:
        fn: function.

    Examples:
        >>> torch.compiler.allow_in_graph(abs) is abs
        True
    """
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Return a function as it is: what it reads is compared before each replay, so nothing need be assumed.

    Args:
        fn: function.

    Examples:
        >>> torch.compiler.assume_constant_result(abs) is abs
        True
    """
    return fn


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Return the names of the backends that `torch.compile` accepts.

    Args:
        exclude_tags: tags of backends to leave out. Default: `("debug", "experimental")`

    Examples:
        >>> torch.compiler.list_backends()
        ['cudagraphs', 'inductor']
    """
    debugging = ("aot_eager", "eager")
    return [name for name in _BACKENDS if "debug" not in (exclude_tags or ()) or name not in debugging]


def set_default_backend(backend: str | Callable[..., Any] | None) -> None:
    """Set the backend of calls of `torch.compile` that name none.

    Args:
        backend: name of a backend; `"inductor"` if `None`.

    Examples:
        >>> torch.compiler.set_default_backend("inductor")
    """
    _default_backend.name = _check_options(False, None, "inductor" if backend is None else backend, None, None)


def get_default_backend() -> str:
    """Return the backend of calls of `torch.compile` that name none.

    Examples:
        >>> torch.compiler.get_default_backend()
        'inductor'
    """
    return _default_backend.name


class set_stance:
    """Choose what compiled functions do, at once and until the end of a `with` block or a decorated function.

    Args:
        stance: `"default"`, `"force_eager"` (compiled functions run as they are), `"eager_on_recompile"` (a call that fits no
            capture runs as it is), or `"fail_on_recompile"` (it raises). Default: `"default"`
        skip_guard_eval_unsafe: compare arguments only before a replay. Default: `False`
        force_backend: accepted if it is a backend that captures.

    Examples:
        >>> double = torch.compile(lambda x: x * 2)
        >>> with torch.compiler.set_stance("force_eager"):
        ...     double(torch.ones(1))
        tensor([2.])
    """

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None) -> None:
        if stance not in _STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        self._former = (_stance.forced, _stance.trusts)
        self._wanted = ("force_eager" if force_backend == "eager" else stance, bool(skip_guard_eval_unsafe))
        _stance.set(*self._wanted)

    def __enter__(self) -> None:
        _stance.set(*self._wanted)

    def __exit__(self, *error: object) -> None:
        _stance.set(*self._former)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        _stance.set(*self._former)

        def with_stance(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self._wanted[0], skip_guard_eval_unsafe=self._wanted[1]):
                return function(*args, **kwargs)

        return with_stance
