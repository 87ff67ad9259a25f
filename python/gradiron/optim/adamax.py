"""Adamax: Adam with the infinity norm in place of the second moment estimate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from .._core import Tensor
from ._rule import Rule, Trace
from .optimizer import (
    Optimizer,
    ParamsT,
    _check_betas,
    _check_lists,
    _check_options,
    _evaluated,
    _to_scalar,
    _use_grad_for_differentiable,
    _zero_step,
    _zeros,
)

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


class Adamax(Optimizer):
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

    _ADDED: ClassVar[dict[str, Any]] = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _COUNTS = ("step",)

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
        _check_options(lr, eps=(eps, "Invalid epsilon value"))
        _check_betas(betas)
        _check_options(0.0, decay=(weight_decay, "Invalid weight_decay value"))
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        return {"step": _zero_step(p, group["capturable"]), "exp_avg": _zeros(p), "exp_inf": _zeros(p)}

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Perform one optimization step."""
        loss = _evaluated(closure)
        for group in self.param_groups:
            params, grads, exp_avgs, exp_infs, steps = self._collect(group, "exp_avg", "exp_inf", "step")
            adamax(
                params,
                grads,
                exp_avgs,
                exp_infs,
                steps,
                eps=group["eps"],
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
            )
        return loss


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
    _check_lists(params, state_steps, foreach, differentiable, capturable)
    _update(
        {"param": params, "grad": grads, "exp_avg": exp_avgs, "exp_inf": exp_infs},
        {"step": state_steps},
        {"lr": _to_scalar(lr), "beta1": beta1, "beta2": beta2, "eps": eps, "weight_decay": weight_decay},
        maximize=maximize,
        decay=weight_decay != 0,
    )
