"""Rprop: resilient backpropagation, which uses the signs of gradients only."""

from __future__ import annotations

from typing import Any, ClassVar

import gradiron as torch

from .._core import Tensor
from ._declared import DeclaredOptimizer, Options, check_options, count, zeros
from ._rule import Rule, Trace
from .optimizer import ParamsT, _to_scalar

__all__ = ["Rprop", "rprop"]


@Rule
def _update(x: Trace, *, maximize: bool) -> None:
    x.step = x.step + 1
    grad = -x.grad if maximize else x.grad
    turn = grad * x.prev
    back = turn < 0
    factor = (turn > 0).where(x.etaplus, back.where(x.etaminus, 1.0))
    x.step_size = (x.step_size * factor).maximum(x.step_size_min).minimum(x.step_size_max)
    # An element whose gradient changed sign skips this step, and its gradient counts as 0 in the next.
    grad = back.where(0.0, grad)
    x.param = x.param.addcmul(grad.sign(), x.step_size, value=-1)
    x.prev = grad


def _first_step_size(p: Tensor, group: Options) -> Tensor:
    lr = _to_scalar(group["lr"])
    # The real and the imaginary part have step sizes of their own.
    size: Any = complex(lr, lr) if p.is_complex() else lr
    grad: Any = p.grad
    return torch.full_like(grad, size)


class Rprop(DeclaredOptimizer):
    """Rprop: resilient backpropagation, with one adaptive step size per element.

    Each element moves against the sign of its gradient. Its step size grows while the sign stays the same and shrinks
    when it changes. Meant for full batches.

    Args:
        params: parameters, pairs of names and parameters, or dicts that define parameter groups.
        lr: initial step size. Default: `1e-2`
        etas: factors by which a step size shrinks and grows. Default: `(0.5, 1.2)`
        step_sizes: smallest and largest step size. Default: `(1e-6, 50)`
        capturable: keep step counts on the parameters' device, so that a step can be captured. Default: `False`
        foreach: update all parameters in one call; chosen automatically if `None`.
        maximize: maximize the objective instead of minimizing it. Default: `False`
        differentiable: let gradients flow through `step`. Default: `False`

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> optimizer = torch.optim.Rprop(model.parameters())
        >>> model(torch.ones(4, 2)).mean().backward()
        >>> optimizer.step()
    """

    _RULE = _update
    _STATE: ClassVar = {"step": count, "prev": zeros, "step_size": _first_step_size}
    _NUMBERS = "step_size_min step_size_max etaminus etaplus".split()
    _OPTIONS = "lr etas step_sizes foreach maximize differentiable capturable".split()
    _ADDED: ClassVar = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _PAIRS: ClassVar = {"etas": ("etaminus", "etaplus"), "step_sizes": ("step_size_min", "step_size_max")}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, self._chosen_options(locals()))

    @staticmethod
    def _rule_flags(options: Options) -> dict[str, Any]:
        return {"maximize": options["maximize"]}


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """Perform one `Rprop` step over lists of tensors."""
    Rprop._functional(locals())
