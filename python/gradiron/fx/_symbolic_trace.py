"""`symbolic_trace`, and PyTorch's other names of traces."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..nn import Module
from ._compatibility import compatibility
from ._patching import Patcher, _maybe_revert_all_patches, autowrap, patch_functions, wrapped_functions, wrapped_methods
from ._tracer import (
    PH,
    PHBase,
    PHWithMeta,
    ProxyableClassMeta,
    Tracer,
    _assert_is_none,
    _orig_module_call,
    _orig_module_getattr,
    is_fx_symbolic_tracing,
    is_fx_tracing,
)
from ._wrap import wrap
from .graph_module import GraphModule
from .proxy import Proxy

__all__ = [
    "PH",
    "FunctionType",
    "PHBase",
    "PHWithMeta",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "_assert_is_none",
    "_maybe_revert_all_patches",
    "_orig_module_call",
    "_orig_module_getattr",
    "compatibility",
    "functools",
    "is_fx_symbolic_tracing",
    "is_fx_tracing",
    "symbolic_trace",
    "wrap",
]

# Packages that trace in a way of their own use these.
_Patcher, _autowrap_check, _patch_wrapped_functions = Patcher, autowrap, patch_functions
_wrapped_fns_to_patch, _wrapped_methods_to_patch = wrapped_functions, wrapped_methods


class ScriptObject:
    """An object of TorchScript's. There are none."""


@compatibility(is_backward_compatible=True)
def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Return a module that does what a module or function does, as a graph that programs can read and change.

    The module runs once, on proxies: what depends on the values of its inputs raises `TraceError`.

    Args:
        root: module or function.
        concrete_args: inputs that are not proxies but have these values, for functions whose conditions depend on them.

    Examples:
        >>> def f(x, double):
        ...     return torch.relu(x) * 2 if double else torch.relu(x)
        >>> traced = torch.fx.symbolic_trace(f, concrete_args={"double": True})
        >>> traced(torch.ones(1), True)
        tensor([2.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else getattr(root, "__name__", type(root).__name__)
    return GraphModule(tracer.root, graph, name)
