"""Grad modes: context managers and decorators that switch the recording of operators on and off."""

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
        # Imported here to keep `import gradiron` fast.
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
    """Disable the recording of operators, so that results do not require gradients.

    Use it as a context manager or as a decorator of functions and generators.

    Examples:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    if TYPE_CHECKING:

        def __new__(cls, function: Callable[..., Any] | None = None) -> no_grad: ...
    else:
        __new__ = _core.new_no_grad


class enable_grad(_Mode):
    """Enable the recording of operators, also within `no_grad`.

    Use it as a context manager or as a decorator of functions and generators.

    Examples:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad(), torch.enable_grad():
        ...     y = x * 2
        >>> y.requires_grad
        True
    """

    if TYPE_CHECKING:

        def __new__(cls, function: Callable[..., Any] | None = None) -> enable_grad: ...
    else:
        __new__ = _core.new_enable_grad


class set_grad_enabled(_Mode):
    """Switch the recording of operators on or off, at once or for a `with` block.

    As a context manager it restores the former mode on exit; as a decorator it holds during each call.

    Args:
        mode: whether operators are recorded.

    Examples:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.set_grad_enabled(False):
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    def __new__(cls, mode: bool) -> Any:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}")
        made = _new(cls, mode)
        _core.GradSwitch.__enter__(made)
        return made

    def __call__(self, orig_func: Function) -> Function:
        # A decorator switches the mode during calls only.
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
    """Disable the recording of operators and the version counters of new tensors.

    It is `no_grad` with less overhead; but tensors made inside cannot enter the graph later.

    Args:
        mode: whether inference mode is on. Default: `True`

    Examples:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.inference_mode():
        ...     y = x * 2
        >>> y.is_inference()
        True
    """

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
    """Set the flag that `is_multithreading_enabled` returns; it has no other effect.

    A backward pass runs in the calling thread. As a context manager it restores the former value on exit.

    Args:
        mode: value of the flag.

    Examples:
        >>> with torch.autograd.set_multithreading_enabled(False):
        ...     torch.autograd.is_multithreading_enabled()
        False
    """

    _name, _called = "multithreading", "set_multithreading_enabled"

    def __new__(cls, mode: bool) -> Any:
        return _new(cls, True)

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)


class enforce_grad_layout_policy(_Switch):
    """Set whether the first gradient of a leaf is given the strides of the leaf.

    Otherwise it keeps the strides that it arrives with. As a context manager it restores the former value on exit.

    Args:
        enable: whether to match the strides. Default: `True`

    Examples:
        >>> x = torch.ones(2, 3, requires_grad=True)
        >>> with torch.autograd.enforce_grad_layout_policy(False):
        ...     (x * torch.ones(3, 2).t()).sum().backward()
        >>> x.grad.stride()
        (1, 2)
    """

    _name, _called = "layouts", "set_grad_layout_enforcement_enabled"

    def __new__(cls, enable: bool = True) -> Any:
        return _new(cls, True)

    def __init__(self, enable: bool = True) -> None:
        super().__init__(enable)

    def __call__(self, orig_func: Function) -> Function:
        # A decorator switches the mode during calls only.
        self._set(self.prev)
        return super().__call__(orig_func)

    def _set(self, on: bool) -> None:
        super()._set(on)
        _core.enforce_layouts(on)


class _force_original_view_tracking(_Switch):
    """Set the flag that `is_view_replay_enabled` returns; it has no other effect."""

    _name, _called = "replay", "set_view_replay_enabled"

    def __call__(self, orig_func: Function) -> Function:
        self._set(self.prev)
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        self._set(self.mode)


def is_multithreading_enabled() -> bool:
    """Return the flag that `set_multithreading_enabled` sets for this thread.

    Examples:
        >>> torch.autograd.is_multithreading_enabled()
        True
    """
    return _kept.multithreading


def is_view_replay_enabled() -> bool:
    """Return the flag that `_force_original_view_tracking` sets for this thread.

    Examples:
        >>> torch.autograd.is_view_replay_enabled()
        False
    """
    return _kept.replay


class _unsafe_preserve_version_counter:
    """Restore the version counters of `tensors` on exit, so that writes inside go unnoticed."""

    def __init__(self, tensors: Any) -> None:
        self._tensors = (tensors,) if isinstance(tensors, _core.Tensor) else tuple(tensors)
        self._versions = [t._version for t in self._tensors]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        for tensor, version in zip(self._tensors, self._versions, strict=True):
            _core.set_version(tensor, version)
