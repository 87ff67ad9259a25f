"""Modules that were made of graphs."""

from __future__ import annotations

from typing import Any

from gradiron.nn import Module

from ._refusal import _refuse

__all__ = ["GraphModule"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


class GraphModule(Module):
    """Would be such a module; no module is one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        _refuse("GraphModule")


class _CodeOnlyModule(Module):
    """A module of given attributes."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Gives a module the attribute of another, by its path, which is made where it is not there."""
    *path, name = target.split(".")
    for part in path:
        from_module = getattr(from_module, part)
        if not hasattr(to_module, part):
            setattr(to_module, part, Module())
        to_module = getattr(to_module, part)
    setattr(to_module, name, getattr(from_module, name))
