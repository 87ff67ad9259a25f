"""`symbolic_trace`, and PyTorch's other names of traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..nn import Module
from ._compatibility import compatibility
from ._patching import wrapped_functions as _wrapped_fns_to_patch  # noqa: F401
from ._patching import wrapped_methods as _wrapped_methods_to_patch  # noqa: F401
from ._tracer import PH as PH
from ._tracer import PHBase as PHBase
from ._tracer import PHWithMeta as PHWithMeta
from ._tracer import ProxyableClassMeta as ProxyableClassMeta
from ._tracer import Tracer
from ._tracer import _assert_is_none as _assert_is_none
from ._tracer import _maybe_revert_all_patches as _maybe_revert_all_patches
from ._tracer import is_fx_symbolic_tracing as is_fx_symbolic_tracing
from ._tracer import is_fx_tracing as is_fx_tracing
from ._wrap import wrap as wrap
from .graph_module import GraphModule

__all__ = ["symbolic_trace"]


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
