"""Graphs of the operators that a function executes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ...nn import Module
from ...utils import _pytree as pytree
from .._tracer import PH
from ..graph import Graph
from ..graph_module import GraphModule
from ._operator_vjp import operator_vjp as operator_vjp
from ._recording import MakeTracer, run_recorded, signature_of

__all__ = ["get_proxy_mode", "make_fx", "operator_vjp"]

_going: list[MakeTracer] = []


def get_proxy_mode() -> MakeTracer | None:
    """Return the tracer of the `make_fx` that goes on, or None.

    Examples:
        >>> torch.fx.experimental.proxy_tensor.get_proxy_mode() is None
        True
    """
    return _going[-1] if _going else None


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Any = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    **options: Any,
) -> Callable[..., GraphModule]:
    """Return a function that runs another one and returns the graph of the operators that it executed.

    The function runs on the tensors it is given: conditions may depend on shapes, and numbers that are not tensors are
    constants of the graph. Derivatives by `torch.autograd.grad` and `torch.func` are traced, too: each operator's is one call
    of `operator_vjp`.

    Args:
        f: function or module.
        decomposition_table: not supported: pass None.
        tracing_mode: `"real"`; there are no fake tensors and no symbolic shapes. Default: `"real"`
        pre_dispatch, record_module_stack, options: ignored. Default: `False`

    Examples:
        >>> make_fx = torch.fx.experimental.proxy_tensor.make_fx
        >>> traced = make_fx(lambda x: torch.tanh(x) * 2)(torch.ones(2))
        >>> print(traced.code.strip())
        def forward(self, x_1):
            tanh = torch.tanh(x_1);  x_1 = None
            mul = torch.mul(tanh, 2);  tanh = None
            return mul
        >>> slope = make_fx(torch.func.grad(lambda x: (x**3).sum()))(torch.ones(2))
        >>> slope(torch.tensor([1.0, 2.0]))
        tensor([ 3., 12.])
    """
    if decomposition_table:
        raise NotImplementedError("make_fx: decomposition_table: operators are not decomposed; pass None")
    if tracing_mode != "real":
        if tracing_mode not in ("fake", "symbolic"):
            raise AssertionError(f'tracing_mode should be "real", "fake", or "symbolic", got {tracing_mode}')
        raise NotImplementedError(f'make_fx: tracing_mode="{tracing_mode}": there are no fake tensors; use "real"')

    @wraps(f)
    def traced(*args: Any) -> GraphModule:
        function = signature_of(f, len(args))
        tracer = MakeTracer()
        tracer.root, tracer.tensor_attrs = Module(), {}
        tracer.graph = Graph(tracer_cls=type(tracer))
        function, proxies = tracer.create_args_for_root(function, False, pytree.tree_map(lambda _: PH, args))
        _going.append(tracer)
        try:
            run_recorded(function, pytree.tree_leaves(args), proxies, tracer)
        finally:
            _going.pop()
        return GraphModule(tracer.root, tracer.graph, getattr(f, "__name__", type(f).__name__))

    return traced
