"""Runs passes in an order that fits their constraints."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable
from functools import wraps
from typing import Any

from ....nn import Module
from ..._compatibility import compatibility
from ...graph_module import GraphModule
from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]


def _name(each: Any) -> str:
    return str(each.__name__) if inspect.isfunction(each) else type(each).__name__


@compatibility(is_backward_compatible=False)
def pass_result_wrapper(fn: Callable[..., Any]) -> Any:
    """Return a pass that returns a `PassResult`, of one that returns a module, or nothing after it has changed one.

    Args:
        fn: pass.

    Examples:
        >>> torch.fx.passes.infra.pass_manager.pass_result_wrapper(lambda module: None)(torch.nn.ReLU()).modified
        True
    """
    if fn is None:
        return None

    @wraps(fn)
    def wrapped(module: Module) -> PassResult:
        result = fn(module)
        return result if isinstance(result, PassResult) else PassResult(module if result is None else result, True)

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


@compatibility(is_backward_compatible=False)
def this_before_that_pass_constraint(this: Callable[..., Any], that: Callable[..., Any]) -> Callable[..., bool]:
    """Return the constraint that one pass runs before another: a function of two passes, whether they may run in this order.

    Args:
        this: pass that runs first.
        that: pass that runs later.

    Examples:
        >>> torch.fx.passes.infra.pass_manager.this_before_that_pass_constraint(len, abs)(abs, len)
        False
    """

    def fits(first: Callable[..., Any], later: Callable[..., Any]) -> bool:
        return first is not that or later is not this

    return fits


def _topological_sort_passes(passes: list[Any], constraints: list[Any]) -> list[Any]:
    """The passes in an order that fits, those that were first earlier."""
    if not constraints:
        return passes
    later: dict[Any, list[Any]] = {each: [] for each in passes}
    waiting = dict.fromkeys(passes, 0)
    for a in passes:
        for b in passes:
            for constraint in constraints:
                if a is not b and not constraint(a, b):  # b must run before a
                    later[b].append(a)
                    waiting[a] += 1
    ready = deque(each for each in passes if not waiting[each])
    ordered = []
    while ready:
        ordered.append(ready.popleft())
        for each in later[ordered[-1]]:
            waiting[each] -= 1
            if not waiting[each]:
                ready.append(each)
    circle = [each for each in passes if waiting[each]]
    if circle:
        raise RuntimeError(f"Circular dependency detected within the following passes: {circle}")
    return ordered


@compatibility(is_backward_compatible=False)
class PassManager:
    """Runs passes over a module.

    Args:
        passes: passes, each a function of a module that returns a `PassResult`.
        constraints: constraints of their order.
        steps: how often all of them run at most; they stop when none changes anything.
        run_checks_after_each_pass: whether the check runs after each pass, too, not only at the beginning. Default:
            `False`
        suppress_check_failures: ignored, as in PyTorch. Default: `False`

    Examples:
        >>> PassManager = torch.fx.passes.infra.pass_manager.PassManager
        >>> pass_result_wrapper = torch.fx.passes.infra.pass_manager.pass_result_wrapper
        >>> manager = PassManager([pass_result_wrapper(lambda module: module.graph.lint())])
        >>> manager(torch.fx.symbolic_trace(torch.nn.ReLU())).modified
        True
    """

    def __init__(
        self,
        passes: list[Callable[..., Any]] | None = None,
        constraints: list[Callable[..., bool]] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes, self.constraints, self.steps = passes or [], constraints or [], steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False
        self.check: Callable[[Module], Any] = lambda module: None

    def add_pass(self, _pass: Callable[..., Any]) -> None:
        """Add a pass at the end.

        Args:
            _pass: pass.
        """
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable[..., bool]) -> None:
        """Add a constraint of the order.

        Args:
            constraint: function of two passes, whether they may run in this order.
        """
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """Raise RuntimeError if the order of the passes does not fit the constraints."""
        if self._validated:
            return
        for at, a in enumerate(self.passes):
            for further, b in enumerate(self.passes[at + 1 :], at + 1):
                if not all(constraint(a, b) for constraint in self.constraints):
                    raise RuntimeError(
                        f"pass schedule constraint violated. Expected {b} before {a} but found {a} at index {at} and {b} at "
                        f"index {further} in pass list."
                    )
        self._validated = True

    def solve_constraints(self) -> None:
        """Bring the passes into an order that fits the constraints."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[[Module], Any]) -> None:
        """Set a function that raises an error if a module is not as it should be.

        Args:
            check: function of the module.
        """
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check

    def __call__(self, module: Module) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        modified = False
        for _ in range(self.steps):
            module, changed = self._step(module)
            modified = modified or changed
            if not changed:
                break
        return PassResult(module, modified)

    def _step(self, module: Module) -> PassResult:
        """Runs each pass once."""
        modified = False
        for number, each in enumerate(self.passes):
            try:
                result = each(module)
                if not hasattr(result, "graph_module"):
                    raise TypeError(
                        f"The result of the pass {_name(each)} should be type PassResult. Please wrap it with "
                        "pass_result_wrapper()"
                    )
                module, modified = result.graph_module, modified or result.modified
                if isinstance(module, GraphModule):
                    module.recompile()
                if self.run_checks_after_each_pass:
                    self.check(module)
            except Exception as error:
                before = [_name(earlier) for earlier in self.passes[:number]]
                raise Exception(
                    f"An error occurred when running the '{_name(each)}' pass after the following passes: {before}"
                ) from error
        return PassResult(module, modified)
