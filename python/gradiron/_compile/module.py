"""Compiled modules."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from ..nn import Module
from .function import CompiledFunction

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """A compiled module: its calls are captured and replayed, all else is the module's. Hooks that are registered here run
    around the compiled call.

    Args:
        mod: the module.
        options: those of the `CompiledFunction` of its call.
    """

    _orig_mod: Module

    def __init__(self, mod: Module, **options: Any) -> None:
        super().__init__()
        self._orig_mod = mod
        self.__dict__["_options"] = options
        self._compile()

    def _has_module(self) -> bool:
        """Return whether there is a module already: not while this is made or unpickled."""
        return "_orig_mod" in self.__dict__.get("_modules", ())

    def _compile(self) -> None:
        self.__dict__["forward"] = CompiledFunction(self._orig_mod, **self.__dict__["_options"])

    @property
    def _compiled(self) -> CompiledFunction:
        found: CompiledFunction = self.__dict__["forward"]
        return found

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        return self._orig_mod.training

    @training.setter
    def training(self, mode: bool) -> None:
        # The base class sets it before there is a module.
        if self._has_module():
            self._orig_mod.training = mode

    def __getattr__(self, name: str) -> Any:
        if not self._has_module():
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        module = self._modules["_orig_mod"]
        return module if name == "_orig_mod" else getattr(module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_orig_mod" or not self._has_module():
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __len__(self) -> int:
        if isinstance(self._orig_mod, Sized):
            return len(self._orig_mod)
        raise TypeError(f"{type(self._orig_mod).__name__} does not support len()")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._orig_mod)})

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        del state["forward"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._compile()
