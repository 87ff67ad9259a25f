"""Programs as graphs of calls: names that packages ask for when they are imported. Nothing is traced; who tries is told so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import graph, graph_module, interpreter, node, proxy
from ._refusal import _refuse, _Refused
from .graph import Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node
from .proxy import Proxy

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "graph",
    "graph_module",
    "interpreter",
    "node",
    "proxy",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]


class Tracer(_Refused):
    """Would write down what a module calls."""


def wrap(fn_or_name: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """Marks a function that a trace does not look into; it stays what it is."""
    if not (callable(fn_or_name) or isinstance(fn_or_name, str)):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    return fn_or_name


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None) -> Any:
    """Raises NotImplementedError: programs are not traced."""
    _refuse("symbolic_trace")


def replace_pattern(gm: Any, pattern: Any, replacement: Any, match_filters: Any = None) -> Any:
    """Raises NotImplementedError: there are no traced programs."""
    _refuse("replace_pattern")
