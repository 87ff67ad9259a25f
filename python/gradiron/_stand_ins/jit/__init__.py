"""Names of TorchScript. There is no compiler: functions and modules are returned as they are, with one warning."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any, Final

from gradiron._as_torch.refused import refuse
from gradiron._functions.settings import tell_once
from gradiron.nn import Module

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "TracerWarning",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "run_frozen_optimizations",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

_isinstance = isinstance
_MARK = "_is_scripted"


def _same(what: str, given: Any) -> Any:
    tell_once("jit", f"torch.jit.{what}: gradiron has no compiler; what it is given runs as it is")
    return given


def _scripted(what: str, given: Any) -> Any:
    if _isinstance(given, Module):
        for module in given.modules():
            module.__dict__.update({_MARK: True, "original_name": type(module).__name__})
    elif _isinstance(given, types.FunctionType):
        given.__dict__[_MARK] = True
    return _same(what, given)


def script(obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """Return a function, class or module as it is; a function is a `ScriptFunction` from now on, a module a `ScriptModule`.

    Args:
        obj: function, class or module.
        optimize, example_inputs: ignored.

    Examples:
        >>> torch.jit.script(abs) is abs
        True
    """
    return _scripted("script", obj)


def trace(func: Any, example_inputs: Any = None, optimize: Any = None, **options: Any) -> Any:
    """Return a function or module as it is, so that it still depends on the values of its inputs.

    Args:
        func: function or module.
        example_inputs, optimize, options: ignored.

    Examples:
        >>> torch.jit.trace(abs, torch.ones(1)) is abs
        True
    """
    return _scripted("trace", func)


def trace_module(mod: Any, inputs: Any, optimize: Any = None, **options: Any) -> Any:
    """Return a module as it is.

    Args:
        mod: module.
        inputs, optimize, options: ignored.

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> torch.jit.trace_module(model, {}) is model
        True
    """
    return _scripted("trace_module", mod)


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """Return a module as it is.

    Args:
        mod: module.
        preserved_attrs, optimize_numerics: ignored. Default: `True` for the latter

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> torch.jit.freeze(model) is model
        True
    """
    return _same("freeze", mod)


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """Return a module as it is.

    Args:
        mod: module.
        other_methods: ignored.

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> torch.jit.optimize_for_inference(model) is model
        True
    """
    return _same("optimize_for_inference", mod)


def run_frozen_optimizations(mod: Any, optimize_numerics: bool = True, preserved_methods: Any = None) -> None:
    """Do nothing.

    Args:
        mod, optimize_numerics, preserved_methods: ignored. Default: `True` for the second

    Examples:
        >>> torch.jit.run_frozen_optimizations(nn.Linear(2, 1))
    """


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function as it is.

    Args:
        fn: function.

    Examples:
        >>> torch.jit.script_if_tracing(abs) is abs
        True
    """
    return fn


_script_if_tracing = script_if_tracing


def script_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method as it is.

    Args:
        fn: method.

    Examples:
        >>> torch.jit.script_method(abs) is abs
        True
    """
    return fn


def _overload_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a signature of a method that another follows."""
    return fn


_overload = _overload_method


def export(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method as it is.

    Args:
        fn: method.

    Examples:
        >>> torch.jit.export(abs) is abs
        True
    """
    return fn


def unused(fn: Any) -> Any:
    """Return a function as it is.

    Args:
        fn: function.

    Examples:
        >>> torch.jit.unused(abs) is abs
        True
    """
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return a function as it is, or a decorator that does.

    Args:
        drop: function, or an option that is ignored. Default: `False`

    Examples:
        >>> torch.jit.ignore(abs) is abs
        True
    """
    return drop if callable(drop) else lambda fn: fn


def interface(obj: Any) -> Any:
    """Return a class as it is.

    Args:
        obj: class.

    Examples:
        >>> torch.jit.interface(int) is int
        True
    """
    return obj


def is_scripting() -> bool:
    """Return whether code is being compiled, which it never is.

    Examples:
        >>> torch.jit.is_scripting()
        False
    """
    return False


def is_tracing() -> bool:
    """Return whether code is being traced, which it never is.

    Examples:
        >>> torch.jit.is_tracing()
        False
    """
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return a value as it is.

    Args:
        the_type: type, which is ignored.
        the_value: value.

    Examples:
        >>> torch.jit.annotate(int, 1)
        1
    """
    return the_value


def Attribute(value: Any, type: Any) -> Any:
    """Return a value as it is.

    Args:
        value: value.
        type: type, which is ignored.

    Examples:
        >>> torch.jit.Attribute(1, int)
        1
    """
    return value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return whether an object is of a type; the elements of containers are not checked.

    Args:
        obj: object.
        target_type: type, which may have parameters.

    Examples:
        >>> torch.jit.isinstance([1], list[int])
        True
    """
    origin = getattr(target_type, "__origin__", None)
    return _isinstance(obj, target_type if origin is None else origin)


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function at once and return a handle for `wait`.

    Args:
        func: function.
        args, kwargs: its arguments.

    Examples:
        >>> torch.jit.wait(torch.jit.fork(abs, -1))
        1
    """
    return _Done(func(*args, **kwargs))


def wait(future: Any) -> Any:
    """Return the result of a `fork`.

    Args:
        future: what `fork` returned.

    Examples:
        >>> torch.jit.wait(torch.jit.fork(abs, -1))
        1
    """
    return future.wait()


class _Done:
    def __init__(self, result: Any) -> None:
        self._result = result

    def wait(self) -> Any:
        return self._result

    def done(self) -> bool:
        return True

    value = wait


def set_fusion_strategy(strategy: Any) -> Any:
    """Return the strategy as it is.

    Args:
        strategy: ignored.

    Examples:
        >>> torch.jit.set_fusion_strategy([])
        []
    """
    return strategy


def onednn_fusion_enabled() -> bool:
    """Return whether oneDNN fuses operators, which it does not.

    Examples:
        >>> torch.jit.onednn_fusion_enabled()
        False
    """
    return False


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Do nothing in a `with` block.

    Args:
        should_optimize: ignored.

    Examples:
        >>> with torch.jit.optimized_execution(True):
        ...     x = torch.ones(1)
    """
    yield


class TracerWarning(Warning):
    """Warning of a tracer, which is never issued.

    Examples:
        >>> issubclass(torch.jit.TracerWarning, Warning)
        True
    """


class Error(Exception):
    """Error of a compiled function in TorchScript, which is never raised.

    Examples:
        >>> issubclass(torch.jit.Error, Exception)
        True
    """


class _Scripted(type):
    """What was given to `script` is what it was, and an instance of these classes, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return _isinstance(instance, cls._marked) and _MARK in instance.__dict__  # type: ignore[attr-defined]


class ScriptModule(Module, metaclass=_Scripted):
    """Class of the modules that were given to `script` or `trace`, which do not change.

    Examples:
        >>> isinstance(nn.Linear(2, 1), torch.ScriptModule)
        False
        >>> isinstance(torch.jit.script(nn.Linear(2, 1)), torch.ScriptModule)
        True
    """

    _marked = Module


class ScriptFunction(metaclass=_Scripted):
    """Class of the functions that were given to `script` or `trace`, which do not change.

    Examples:
        >>> isinstance(torch.jit.script(lambda x: x), torch.jit.ScriptFunction)
        True
    """

    _marked = types.FunctionType

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse("jit.ScriptFunction", "gradiron compiles nothing; torch.jit.script returns the function")


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Save a compiled module, which is not supported: use `torch.save`.

    Args:
        m, f: ignored.

    Examples:
        >>> torch.jit.save(nn.Linear(2, 1), "model.pt")
        Traceback (most recent call last):
        NotImplementedError: torch.jit.save: gradiron compiles nothing
    """
    refuse("jit.save", "gradiron compiles nothing; torch.save writes a module or its state_dict")


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Load a compiled module, which is not supported: use `torch.load`.

    Args:
        f, map_location: ignored.

    Examples:
        >>> torch.jit.load("model.pt")
        Traceback (most recent call last):
        NotImplementedError: torch.jit.load: gradiron reads no TorchScript
    """
    refuse("jit.load", "gradiron reads no TorchScript; torch.load reads what torch.save wrote")
