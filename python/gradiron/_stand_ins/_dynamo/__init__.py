"""The compiler's inner name, which programs set options by."""

from __future__ import annotations

from gradiron.nn import Module

from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, reset
from . import config

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "eval_frame",
    "is_compiling",
    "mark_static_address",
    "reset",
]


class OptimizedModule(Module):
    """What `compile` makes of a module elsewhere; here it gives back the module itself, and no module is one."""


def mark_static_address(t: object, guard: bool = False) -> None:
    """Accept a promise about a tensor's address; there is no compiler that uses it."""


from . import eval_frame  # noqa: E402 # it takes the class from here
