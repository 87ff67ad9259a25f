"""Traces of functions that were changed first, so that their assertions become nodes."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ...nn import Module
from .._tracer import Tracer
from ..graph import Graph

__all__ = ["AST_Rewriter", "RewritingTracer"]


class AST_Rewriter(ast.NodeTransformer):
    """Changes the source of a function into one that can be traced.

    `assert` becomes `torch._assert`, and an annotated assignment a call of `annotate`. A subclass changes other statements.
    """

    def rewrite(self, fn: FunctionType) -> FunctionType:
        """Return the changed function.

        Args:
            fn: function.
        """
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn)))
        names: dict[str, Any] = dict(fn.__globals__)
        exec(compile(ast.fix_missing_locations(self.visit(tree)), "", "exec"), names)
        made = names[fn.__name__]
        changed = FunctionType(made.__code__, fn.__globals__, made.__name__, made.__defaults__, made.__closure__)
        functools.update_wrapper(changed, made)
        changed.__kwdefaults__ = copy.copy(made.__kwdefaults__)
        return changed

    def visit_Assert(self, node: ast.Assert) -> ast.Expr:
        """Change an assertion into a call.

        Args:
            node: assertion.
        """
        call = ast.parse("torch._assert()", mode="eval").body
        assert isinstance(call, ast.Call)
        call.args = [node.test, node.msg or ast.Constant("")]
        return ast.copy_location(ast.Expr(call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Change an annotated assignment into one of an annotated value.

        Args:
            node: assignment.
        """
        if node.value is None:
            return node
        call = ast.Call(ast.Name("annotate", ast.Load()), [node.value, node.annotation], [])
        return ast.copy_location(ast.Assign([node.target], call), node)


class RewritingTracer(Tracer):
    """A tracer whose graphs contain assertions.

    Examples:
        >>> RewritingTracer = torch.fx.experimental.rewriter.RewritingTracer
        >>> RewritingTracer().is_leaf_module(torch.nn.ReLU(), "relu")
        True
    """

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """Return the graph of a module or function.

        Args:
            root: module or function.
            concrete_args: inputs that are not proxies but have these values.
        """
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn: Any) -> Any:
    if not isinstance(fn, Module):
        return AST_Rewriter().rewrite(fn)

    class RewrittenModule(Module):
        def __init__(self, original: Module) -> None:
            super().__init__()
            for name, value in vars(original).items():
                vars(self)[name] = copy.copy(_rewrite(value) if isinstance(value, Module) else value)

    RewrittenModule.forward = AST_Rewriter().rewrite(type(fn).forward)  # type: ignore[arg-type]
    return RewrittenModule(fn)
