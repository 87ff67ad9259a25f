"""Adamax: Adam with the infinity norm in place of the second moment estimate."""

from __future__ import annotations

from typing import ClassVar

from .._core import Tensor
from ._declared import DeclaredOptimizer, check_options, count, zeros
from ._rule import Rule, Trace
from .optimizer import ParamsT

__all__ = ["Adamax", "adamax"]


@Rule
def _update(x: Trace, *, maximize: bool, decay: bool) -> None:
    x.step = x.step + 1
    grad = -x.grad if maximize else x.grad
    if decay:
        grad = grad.add(x.param, alpha=x.weight_decay)
    x.exp_avg = x.exp_avg.lerp(grad, 1 - x.beta1)
    x.exp_inf = (x.exp_inf * x.beta2).maximum(grad.abs() + x.eps)
    bias = 1 - x.beta1 ** x.step.item()
    x.param = x.param.addcdiv(x.exp_avg, x.exp_inf, value=-(x.lr / bias))


class Adamax(DeclaredOptimizer):
    """Adamax: Adam with a decaying maximum of gradients in place of the second moment estimate.

    For the gradient `g` at step `t`::

        m = beta1 * m + (1 - beta1) * g
        u = max(beta2 * u, abs(g) + eps)
        param -= lr / (1 - beta1**t) * m / u

    Args:
        params: parameters, pairs of names and parameters, or dicts that define parameter groups.
        lr: learning rate. Default: `2e-3`
        betas: decay rates of the first moment estimate and of the maximum. Default: `(0.9, 0.999)`
        eps: term added to the denominator for numerical stability. Default: `1e-8`
        weight_decay: weight of the L2 penalty. Default: `0`
        foreach: update all parameters in one call; chosen automatically if `None`.
        maximize: maximize the objective instead of minimizing it. Default: `False`
        differentiable: let gradients flow through `step`. Default: `False`
        capturable: keep step counts on the parameters' device, so that a step can be captured. Default: `False`

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> optimizer = torch.optim.Adamax(model.parameters())
        >>> model(torch.ones(4, 2)).mean().backward()
        >>> optimizer.step()
    """

    _RULE = _update
    _STATE: ClassVar = {"step": count, "exp_avg": zeros, "exp_inf": zeros}
    _NUMBERS = "lr beta1 beta2 eps weight_decay".split()
    _OPTIONS = "lr betas eps weight_decay foreach maximize differentiable capturable".split()
    _ADDED: ClassVar = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _PAIRS: ClassVar = {"betas": ("beta1", "beta2")}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_options(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        super().__init__(params, self._chosen_options(locals()))


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
) -> None:
    """Perform one `Adamax` step over lists of tensors."""
    Adamax._functional(locals())
