"""Names of TorchScript. There is no compiler: what is to be compiled is given back as it is, which is said once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from .._settings import tell_once
from ..nn import Module

__all__ = [
    "Attribute",
    "Final",
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


def _same(what: str, given: Any) -> Any:
    tell_once("jit", f"torch.jit.{what}: gradiron has no compiler; what it is given runs as it is")
    return given


def script(obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """The function, class or module itself."""
    return _same("script", obj)


def trace(func: Any, example_inputs: Any = None, optimize: Any = None, **options: Any) -> Any:
    """The function or module itself, which goes on to depend on its inputs' values where a trace would not."""
    return _same("trace", func)


def trace_module(mod: Any, inputs: Any, optimize: Any = None, **options: Any) -> Any:
    return _same("trace_module", mod)


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    return _same("freeze", mod)


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    return _same("optimize_for_inference", mod)


def run_frozen_optimizations(mod: Any, optimize_numerics: bool = True, preserved_methods: Any = None) -> None:
    """Nothing to optimise."""


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    return fn


_script_if_tracing = script_if_tracing


def script_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    return fn


def _overload_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a signature of a method that another follows."""
    return fn


_overload = _overload_method


def export(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a method; it stays what it is."""
    return fn


def unused(fn: Any) -> Any:
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Marks a function, with or without arguments; it stays what it is."""
    return drop if callable(drop) else lambda fn: fn


def interface(obj: Any) -> Any:
    """Marks a class that says what others have; it stays what it is."""
    return obj


def is_scripting() -> bool:
    return False


def is_tracing() -> bool:
    return False


def annotate(the_type: Any, the_value: Any) -> Any:
    return the_value


def Attribute(value: Any, type: Any) -> Any:
    """The value."""
    return value


def isinstance(obj: Any, target_type: Any) -> bool:
    """`isinstance`, also for types with parameters: those of containers are not looked at."""
    origin = getattr(target_type, "__origin__", None)
    return _isinstance(obj, target_type if origin is None else origin)


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Runs the function at once; `wait` gives its result."""
    return _Done(func(*args, **kwargs))


def wait(future: Any) -> Any:
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
    """Nothing to choose from."""
    return strategy


def onednn_fusion_enabled() -> bool:
    return False


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    yield


class TracerWarning(Warning):
    """What a tracer warns of, for filters that name it: nothing is traced."""


class ScriptModule(Module):
    """Class of compiled modules in TorchScript: nothing is compiled, so no module is an instance.

    Examples:
        >>> isinstance(nn.Linear(2, 1), torch.ScriptModule)
        False
    """


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Refused: there is no compiled program to write."""
    raise NotImplementedError("torch.jit.save: gradiron compiles nothing; torch.save writes a module or its state_dict")


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> Any:
    """Refused: such files hold programs in a language that gradiron does not speak."""
    raise NotImplementedError("torch.jit.load: gradiron reads no TorchScript; torch.load reads what torch.save wrote")
