"""The compiler's inner names: `explain` and `config` are what programs ask for."""

from __future__ import annotations

from typing import Any

from .._compile.entry import OptimizedModule, compile_with
from .._compile.explain import explain
from ..compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
    set_stance,
)
from . import config, exc

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "exc",
    "explain",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
    "set_stance",
]


def optimize(backend: Any = "inductor", *, nopython: bool = False, disable: bool = False, dynamic: bool | None = None) -> Any:
    """Return a decorator that compiles a function, as `torch.compile` does.

    Args:
        backend: as that of `torch.compile`. Default: `"inductor"`
        nopython: as `fullgraph` of `torch.compile`. Default: `False`
        disable, dynamic: as those of `torch.compile`.
    """
    return compile_with(None, fullgraph=nopython, dynamic=dynamic, backend=backend, disable=disable)


def graph_break(msg: str = "") -> None:
    """Let a compiled function that gets here run as it is.

    Args:
        msg: why, for `explain`.
    """


graph_break._gradiron_disabled = True  # type: ignore[attr-defined]


def mark_dynamic(t: Any, index: Any, **limits: Any) -> None:
    """Say that a size changes from call to call, which has no effect: each shape is captured on its own.

    Args:
        t: tensor.
        index: dimension, or several.
        limits: `min`, `max` and other hints.
    """


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Say that a size may change from call to call, which has no effect.

    Args:
        t: tensor.
        index: dimension, or several.
    """


def mark_static(t: Any, index: Any = None) -> None:
    """Say that a size stays as it is, which has no effect.

    Args:
        t: tensor.
        index: dimension, or several; all if `None`.
    """


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Say that a tensor stays where it is, which has no effect: its memory is looked up in each replay.

    Args:
        t: tensor.
        guard: ignored. Default: `False`
    """


from . import eval_frame as eval_frame  # noqa: E402 # they take names from here
from . import utils as utils  # noqa: E402
