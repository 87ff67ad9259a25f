"""Switching recording on and off: as context managers and as decorators of functions, generators and classes."""

from __future__ import annotations

from _thread import _local

from .. import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])


class _Mode(_core.GradSwitch):
    """A context manager that can be used again, nested, and as a decorator."""

    def __call__(self, orig_func: Function) -> Function:
        # Imported here: `import gradiron` is not to wait for them.
        import functools
        import inspect

        if inspect.isclass(orig_func):
            import warnings

            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly decorate the "
                "`__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            cls: Any = orig_func
            cls.__init__ = self(cls.__init__)
            return cls
        if inspect.isgeneratorfunction(orig_func):
            return self._generator(orig_func)

        @functools.wraps(orig_func)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return orig_func(*args, **kwargs)

        return inside  # type: ignore[return-value]

    def _generator(self, target: Callable[..., Any]) -> Any:
        """The mode holds while the generator runs, not while it waits."""
        import functools

        @functools.wraps(target)
        def inside(*args: Any, **kwargs: Any) -> Any:
            running = target(*args, **kwargs)
            try:
                with self.clone():
                    out = running.send(None)
                while True:
                    try:
                        given = yield out
                    except GeneratorExit:
                        with self.clone():
                            running.close()
                        raise
                    except BaseException as error:
                        with self.clone():
                            out = running.throw(error)
                    else:
                        with self.clone():
                            out = running.send(given)
            except StopIteration as end:
                return end.value

        return inside

    def clone(self) -> Any:
        cls: Any = type(self)
        return cls()


__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

_new: Any = _core.GradSwitch.__new__


class no_grad(_Mode):
    """Nothing is recorded inside."""

    if TYPE_CHECKING:

        def __new__(cls, function: Callable[..., Any] | None = None) -> no_grad: ...
    else:
        __new__ = _core.new_no_grad


class enable_grad(_Mode):
    """Recording goes on inside, within `no_grad` too."""

    if TYPE_CHECKING:

        def __new__(cls, function: Callable[..., Any] | None = None) -> enable_grad: ...
    else:
        __new__ = _core.new_enable_grad


class set_grad_enabled(_Mode):
    """Switches recording at once; as a context manager, back at its end."""

    def __new__(cls, mode: bool) -> Any:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}")
        made = _new(cls, mode)
        _core.GradSwitch.__enter__(made)
        return made

    def __call__(self, orig_func: Function) -> Function:
        # As a decorator it switches only inside.
        self.__exit__()
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        _core.set_recording(self.to)

    def clone(self) -> Any:
        return set_grad_enabled(self.to)

    @property
    def mode(self) -> bool:
        return self.to

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.to})"


class inference_mode(_Mode):
    """Nothing is recorded inside, and the tensors made inside are never recorded later: they count no versions."""

    def __init__(self, mode: bool = True) -> None:
        self._outer: list[bool] = []
        self.mode = mode

    def __new__(cls, mode: Any = True) -> Any:
        made = _new(cls, mode is False)
        if isinstance(mode, bool):
            return made
        made.__init__()
        return made(mode)

    def __enter__(self) -> None:
        super().__enter__()
        self._outer.append(_core.swap_inference_mode(self.mode))

    def __exit__(self, *exception: object) -> None:
        _core.swap_inference_mode(self._outer.pop())
        super().__exit__(*exception)

    def clone(self) -> Any:
        return inference_mode(self.mode)


class _Kept(_local):
    """How this thread has set the switches of the engine."""

    multithreading = True
    layouts = True
    replay = False


_kept = _Kept()


class _Switch(_Mode):
    """A switch of the engine: set at once, and as a context manager set back at its end."""

    _name: str
    _called: str

    def __new__(cls, mode: bool = True) -> Any:
        return _new(cls, True)

    def __init__(self, mode: bool = True) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"{self._called}(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}")
        self.prev: bool = getattr(_kept, self._name)
        self.mode = mode
        self._set(mode)

    def _set(self, on: bool) -> None:
        setattr(_kept, self._name, on)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        self._set(self.prev)

    def clone(self) -> Any:
        return type(self)(self.mode)


class set_multithreading_enabled(_Switch):
    """Kept, and nothing depends on it: a backward runs in the thread that asks, deep inside others in one of its own."""

    _name, _called = "multithreading", "set_multithreading_enabled"

    def __new__(cls, mode: bool) -> Any:
        return _new(cls, True)

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)


class enforce_grad_layout_policy(_Switch):
    """Whether a leaf's first gradient is made to lie as the leaf does; if not, it is taken over as it comes."""

    _name, _called = "layouts", "set_grad_layout_enforcement_enabled"

    def __new__(cls, enable: bool = True) -> Any:
        return _new(cls, True)

    def __init__(self, enable: bool = True) -> None:
        super().__init__(enable)

    def __call__(self, orig_func: Function) -> Function:
        # As a decorator it switches only inside.
        self._set(self.prev)
        return super().__call__(orig_func)

    def _set(self, on: bool) -> None:
        super()._set(on)
        _core.enforce_layouts(on)


class _force_original_view_tracking(_Switch):
    """Kept, and nothing depends on it: views are renewed from their base in one step."""

    _name, _called = "replay", "set_view_replay_enabled"

    def __call__(self, orig_func: Function) -> Function:
        self._set(self.prev)
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        self._set(self.mode)


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` was told in this thread."""
    return _kept.multithreading


def is_view_replay_enabled() -> bool:
    """What `_force_original_view_tracking` was told in this thread."""
    return _kept.replay


class _unsafe_preserve_version_counter:
    """Writes inside leave the versions of `tensors` as they were: only for who restores what was saved."""

    def __init__(self, tensors: Any) -> None:
        self._tensors = (tensors,) if isinstance(tensors, _core.Tensor) else tuple(tensors)
        self._versions = [t._version for t in self._tensors]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        for tensor, version in zip(self._tensors, self._versions, strict=True):
            _core.set_version(tensor, version)
