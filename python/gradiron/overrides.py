"""Overriding of functions by classes and modes with `__torch_function__`.

As long as there are none, nothing is checked. The core checks the arguments of its operators; other methods and
attributes of tensors are wrapped when a subclass is defined.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, NoReturn

import gradiron

from . import _core
from ._core import Tensor

__all__ = [
    "get_ignored_functions",
    "get_overridable_functions",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

_disabled = _core._disabled_torch_function_impl
_SUBCLASSES, _ALL = 1, 2

# What PyTorch names an operator of Python's by.
_SLOTS = _core.slot_methods()
# What belongs to the object itself.
_OWN = frozenset(
    """__new__ __init__ __dict__ __weakref__ __doc__ __module__ __hash__ __init_subclass__ __torch_function__ __class__
    __reduce_ex__ __getattribute__ __setattr__ __delattr__ __slots__ __array_priority__ __subclasshook__
    __annotations__ as_subclass""".split()
)


def _overrides(value: Any) -> bool:
    kind = type(value)
    return kind is not Tensor and getattr(kind, "__torch_function__", _disabled) is not _disabled


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return whether an argument is of a class that overrides functions.

    Args:
        relevant_args: arguments to test.

    Examples:
        >>> torch.overrides.has_torch_function((torch.ones(1),))
        False
    """
    off = _core.overrides_off()
    return off < _ALL and (bool(_modes.stack) or (not off and any(map(_overrides, relevant_args))))


def has_torch_function_unary(value: Any) -> bool:
    return has_torch_function((value,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    return has_torch_function(relevant_args)


def _ordered(arguments: Iterable[Any], asked: Callable[[Any], bool]) -> list[Any]:
    """One argument of each class, from left to right, but subclasses before what they come from."""
    chosen: list[Any] = []
    for value in arguments:
        kind = type(value)
        if any(kind is type(other) for other in chosen) or not asked(value):
            continue
        at = next((i for i, other in enumerate(chosen) if issubclass(kind, type(other))), len(chosen))
        chosen.insert(at, value)
    return chosen


def _offer(func: Any, types: tuple[type, ...], chosen: list[Any], args: Any, kwargs: Any) -> Any:
    """The first answer: of the innermost mode, then of the classes."""
    if _modes.stack:
        with _Without() as mode:
            done = mode.__torch_function__(func, types, args, kwargs)
        if done is not NotImplemented:
            return done
    for value in chosen:
        done = value.__torch_function__(func, types, args, kwargs)
        if done is not NotImplemented:
            return done
    return NotImplemented


def _dispatch(func: Any, found: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """The core asks: what those who override make of a call."""
    slot = isinstance(func, str)
    if slot:
        func = getattr(Tensor, _SLOTS.get(func, func))
    chosen = _ordered(found, lambda value: True)
    if any(_is_of_pytorch(type(value)) for value in chosen):
        raise TypeError(
            f"{getattr(func, '__name__', func)}: gradiron was given a tensor of PyTorch's: gradiron.from_dlpack(tensor) makes "
            "one of gradiron's over the same memory"
        )
    done = _offer(func, tuple(map(type, chosen)), chosen, args, kwargs)
    if done is NotImplemented and not slot:
        lines = "".join(f"\n  - tensor subclass {type(value)}" for value in chosen)
        raise TypeError(
            f"Multiple dispatch failed for '{resolve_name(func)}'; all __torch_function__ handlers returned "
            f"NotImplemented:\n{lines}"
        )
    return done


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Call `__torch_function__` of the arguments that define it, and return the first result.

    Args:
        public_api: function that was called.
        relevant_args: arguments that may override it.
        args, kwargs: arguments of the call.

    Examples:
        >>> def f(x):
        ...     if torch.overrides.has_torch_function((x,)):
        ...         return torch.overrides.handle_torch_function(f, (x,), x)
        ...     return x + 1
        >>> f(torch.ones(1))
        tensor([2.])
    """
    known = [value for value in relevant_args if hasattr(type(value), "__torch_function__")]
    chosen = _ordered(known, lambda value: getattr(type(value), "__torch_function__", _disabled) is not _disabled)
    types = tuple(map(type, chosen))
    done = _offer(public_api, types, chosen, args, kwargs)
    if done is NotImplemented:
        name = f"{public_api.__module__}.{public_api.__name__}"
        raise TypeError(f"no implementation found for '{name}' on types that implement __torch_function__: {list(types)}")
    return done


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Any], Any]:
    """Decorate a function so that classes can override it.

    Args:
        dispatcher: function of the same arguments that returns those that may override it.

    Examples:
        >>> @torch.overrides.wrap_torch_function(lambda x: (x,))
        ... def f(x):
        ...     return x + 1
        >>> f(torch.ones(1))
        tensor([2.])
    """

    def inner(func: Any) -> Any:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return inner


def _convert(value: Any, cls: type) -> Any:
    """Tensors in a result, as instances of a class."""
    if isinstance(value, Tensor):
        return value if isinstance(value, cls) else _core.as_subclass(value, cls, True)
    if isinstance(value, (tuple, list)):
        made = [_convert(item, cls) for item in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value


def _as_itself(value: Tensor) -> Any:
    """A view of what a Function hands out as it was given, made by its class."""
    return value.view_as(value)


@functools.lru_cache(None)
def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Return the functions whose results are not converted to the subclass."""
    descriptors = (getattr(Tensor, name).__get__ for name in ("_base", "grad", "_grad") if hasattr(Tensor, name))
    return set(descriptors)


def _is_of_pytorch(kind: type) -> bool:
    """Tells whether a class is that of a tensor of a PyTorch that is loaded beside gradiron."""
    return any(base.__name__ == "TensorBase" and base.__module__ == "torch._C" for base in kind.__mro__)


def _refuse_pytorch(func: Any) -> NoReturn:
    raise TypeError(
        f"{getattr(func, '__name__', func)}: PyTorch was given a tensor of gradiron's: torch.from_dlpack(tensor) makes one of "
        "PyTorch's over the same memory"
    )


def default(cls: type, func: Any, types: Iterable[type], args: Any = (), kwargs: Any = None) -> Any:
    """`Tensor.__torch_function__`: carries the call out as ever, and gives results the class."""
    if not all(issubclass(cls, kind) for kind in types):
        if any(map(_is_of_pytorch, types)):
            _refuse_pytorch(func)
        return NotImplemented
    if _core.overrides_off() and _running.function is func:
        # Nothing of gradiron's asks while overrides are off: the function is another library's, which asks again and again.
        _refuse_pytorch(func)
    before, _running.function = _running.function, func
    try:
        with DisableTorchFunctionSubclass():
            done = func(*args, **(kwargs or {}))
    finally:
        _running.function = before
    if func in get_default_nowrap_functions():
        return done
    return _convert(done, cls)


class _Off:
    """Nobody overrides inside."""

    _level = _SUBCLASSES

    def __init__(self) -> None:
        self._before: list[int] = []

    def __enter__(self) -> None:
        self._before.append(_core.overrides_off())
        _core.swap_overrides_off(max(self._level, self._before[-1]))

    def __exit__(self, *exception: object) -> None:
        _core.swap_overrides_off(self._before.pop())


class DisableTorchFunctionSubclass(_Off):
    """Disable overrides of classes by `__torch_function__` in a `with` block; modes still apply.

    Examples:
        >>> with torch.DisableTorchFunctionSubclass():
        ...     y = torch.ones(1) + 1
    """


class DisableTorchFunction(_Off):
    """Disable all overrides by `__torch_function__`, of classes and modes, in a `with` block.

    Examples:
        >>> class Loud(torch.Tensor):
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         return "loud"
        >>> x = torch.ones(1).as_subclass(Loud)
        >>> with torch.DisableTorchFunction():
        ...     y = torch.add(x, 1)
        >>> torch.add(x, 1), type(y).__name__
        ('loud', 'Tensor')
    """

    _level = _ALL


class _Running(threading.local):
    """The function that `default` carries out."""

    function: Any = None


_running = _Running()


class _Modes(threading.local):
    def __init__(self) -> None:
        self.stack: list[TorchFunctionMode] = []


_modes = _Modes()


class _Without:
    """Takes the innermost mode off while it is at work, so that it does not meet itself."""

    def __enter__(self) -> TorchFunctionMode:
        self._mode = _modes.stack.pop()
        _core.set_override_modes(len(_modes.stack))
        return self._mode

    def __exit__(self, *exception: object) -> None:
        _modes.stack.append(self._mode)
        _core.set_override_modes(len(_modes.stack))


class TorchFunctionMode:
    """A mode whose `__torch_function__` gets all operators that are called in a `with` block.

    Functions written in Python are not overridden themselves, but the operators that they call.

    Examples:
        >>> class Log(torch.overrides.TorchFunctionMode):
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         return func(*args, **(kwargs or {}))
        >>> with Log():
        ...     x = torch.exp(torch.tensor(0.0))
        exp
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        _modes.stack.append(self)
        _core.set_override_modes(len(_modes.stack))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        _modes.stack.pop()
        _core.set_override_modes(len(_modes.stack))


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def is_tensor_like(inp: Any) -> bool:
    """Return whether an object is a tensor or of a class with `__torch_function__`.

    Args:
        inp: object to test.

    Examples:
        >>> torch.overrides.is_tensor_like(torch.ones(1)), torch.overrides.is_tensor_like(1)
        (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


@functools.lru_cache(None)
def _names() -> dict[Any, str]:
    functional = gradiron.nn.functional
    found: dict[Any, str] = {}
    for prefix, holder in (("torch.Tensor", Tensor), ("torch.nn.functional", functional), ("torch", gradiron)):
        for name in dir(holder):
            thing = getattr(holder, name, None)
            if callable(thing) and not isinstance(thing, type) and not name.startswith("_"):
                found[thing] = f"{prefix}.{name}"
    return found


def resolve_name(f: Any) -> str | None:
    """Return the public name of a function.

    Args:
        f: function.

    Examples:
        >>> torch.overrides.resolve_name(torch.exp)
        'torch.exp'
    """
    try:
        known = _names().get(f)
    except TypeError:
        return None
    name: str | None = getattr(f, "__name__", None)
    return known or (f"torch.Tensor.{name}" if getattr(f, "__objclass__", None) is Tensor else name)


@functools.lru_cache(None)
def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Return a dict from namespaces to the functions that classes can override."""
    functional = gradiron.nn.functional
    found: dict[Any, list[Callable[..., Any]]] = {}
    for holder in (gradiron, functional, Tensor):
        named = ((name, getattr(holder, name, None)) for name in dir(holder))
        found[holder] = [f for name, f in named if callable(f) and not name.startswith("_") and not isinstance(f, type)]
    return found


@functools.lru_cache(None)
def get_ignored_functions() -> set[Callable[..., Any]]:
    """Return functions that classes cannot override, as none of their arguments is a tensor."""
    names = "is_tensor is_storage set_default_dtype get_default_dtype manual_seed seed initial_seed set_printoptions typename"
    more = "set_num_threads get_num_threads promote_types can_cast from_numpy save load"
    return {getattr(gradiron, name) for name in f"{names} {more}".split()}


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Return whether a function is a method or property of `Tensor`.

    Args:
        func: function.

    Examples:
        >>> torch.overrides.is_tensor_method_or_property(torch.Tensor.exp)
        True
    """
    return func in get_overridable_functions()[Tensor] or getattr(func, "__name__", "") == "__get__"


def _through(func: Any, named: Any) -> Any:
    """A method of an overriding class that asks first."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _core.overrides_off() or not _overrides(self):
            return func(self, *args, **kwargs)
        found = tuple(filter(_overrides, (self, *args)))
        return _dispatch(named, found, (self, *args), kwargs or None)

    method.__name__ = getattr(func, "__name__", "method")
    method.__doc__ = getattr(func, "__doc__", None)
    return method


def prepare(cls: type[Tensor]) -> None:
    """Has an overriding class asked for what the core does not ask it: attributes, and methods that are no operators."""
    operators = set(_core.method_names())
    # One that comes from another overriding class has it all.
    if any(vars(base).get("_gradiron_asks") for base in cls.__mro__):
        return
    cls._gradiron_asks = True  # type: ignore[attr-defined]
    for name, thing in vars(Tensor).items():
        if name in _OWN or name in operators or getattr(cls, name, None) is not getattr(Tensor, name):
            continue
        if hasattr(type(thing), "__set__"):
            getter, setter = thing.__get__, thing.__set__
            setattr(cls, name, property(_through(getter, getter), _through(setter, setter), doc=thing.__doc__))
        elif callable(thing):
            func = getattr(Tensor, name)
            setattr(cls, name, _through(func, getattr(Tensor, _SLOTS.get(name, name))))
