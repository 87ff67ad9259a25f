"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import gradiron as torch

from .._core import Tensor
from ._rule import Rule, Trace
from .optimizer import (
    Optimizer,
    ParamsT,
    _check_betas,
    _check_capturable,
    _check_foreach,
    _check_options,
    _check_steps,
    _evaluated,
    _get_scalar_dtype,
    _to_scalar,
    _use_grad_for_differentiable,
    _zero_step,
    _zeros,
)

__all__ = ["NAdam", "nadam"]


@Rule
def _update(x: Trace, *, maximize: bool, decay: bool, decoupled: bool) -> None:
    x.step = x.step + 1
    step = x.step.item()
    grad = -x.grad if maximize else x.grad
    if decay and decoupled:
        x.param = x.param * (1 - x.lr * x.weight_decay)
    elif decay:
        grad = grad.add(x.param, alpha=x.weight_decay)
    mu = x.beta1 * (1.0 - 0.5 * 0.96 ** (step * x.momentum_decay))
    mu_next = x.beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * x.momentum_decay))
    x.mu_product = x.mu_product * mu
    product = x.mu_product.item()
    x.exp_avg = x.exp_avg.lerp(grad, 1 - x.beta1)
    x.exp_avg_sq = (x.exp_avg_sq * x.beta2).addcmul(grad, grad, value=1 - x.beta2)
    denom = (x.exp_avg_sq / (1 - x.beta2**step)).sqrt() + x.eps
    x.param = x.param.addcdiv(grad, denom, value=-x.lr * (1.0 - mu) / (1.0 - product))
    x.param = x.param.addcdiv(x.exp_avg, denom, value=-x.lr * mu_next / (1.0 - product * mu_next))


class NAdam(Optimizer):
    """NAdam: Adam with Nesterov momentum.

    For step `t`, the momentum is `beta1 * (1 - 0.5 * 0.96**(t * momentum_decay))`.

    Args:
        params: parameters, pairs of names and parameters, or dicts that define parameter groups.
        lr: learning rate. Default: `2e-3`
        betas: decay rates of the first and the second moment estimate. Default: `(0.9, 0.999)`
        eps: term added to the denominator for numerical stability. Default: `1e-8`
        weight_decay: weight of the L2 penalty. Default: `0`
        momentum_decay: how fast the momentum approaches `beta1`. Default: `4e-3`
        decoupled_weight_decay: shrink the parameters as `AdamW` does, without changing the gradients. Default: `False`
        foreach: update all parameters in one call; chosen automatically if `None`.
        maximize: maximize the objective instead of minimizing it. Default: `False`
        capturable: keep step counts on the parameters' device, so that a step can be captured. Default: `False`
        differentiable: let gradients flow through `step`. Default: `False`

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> optimizer = torch.optim.NAdam(model.parameters())
        >>> model(torch.ones(4, 2)).mean().backward()
        >>> optimizer.step()
    """

    _ADDED: ClassVar[dict[str, Any]] = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }
    _COUNTS = ("step", "mu_product")

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_options(lr, eps=(eps, "Invalid epsilon value"))
        _check_betas(betas)
        _check_options(
            0.0,
            decay=(weight_decay, "Invalid weight_decay value"),
            momentum=(momentum_decay, "Invalid momentum_decay value"),
        )
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        device = p.device if group["capturable"] else "cpu"
        return {
            "step": _zero_step(p, group["capturable"]),
            "mu_product": torch.ones((), dtype=_get_scalar_dtype(), device=device),
            "exp_avg": _zeros(p),
            "exp_avg_sq": _zeros(p),
        }

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Perform one optimization step."""
        loss = _evaluated(closure)
        for group in self.param_groups:
            params, grads, exp_avgs, exp_avg_sqs, mu_products, steps = self._collect(
                group, "exp_avg", "exp_avg_sq", "mu_product", "step"
            )
            nadam(
                params,
                grads,
                exp_avgs,
                exp_avg_sqs,
                mu_products,
                steps,
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                momentum_decay=group["momentum_decay"],
                eps=group["eps"],
                maximize=group["maximize"],
                decoupled_weight_decay=group["decoupled_weight_decay"],
                foreach=group["foreach"],
                capturable=group["capturable"],
                differentiable=group["differentiable"],
            )
        return loss


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """Perform one `NAdam` step over lists of tensors."""
    _check_steps(state_steps)
    _check_steps(mu_products, "mu_products")
    _check_foreach(foreach, differentiable)
    _check_capturable(capturable, foreach, params, mu_products, state_steps, names="params, mu_products and state_steps")
    numbers = {"lr": _to_scalar(lr), "beta1": beta1, "beta2": beta2, "eps": eps, "weight_decay": weight_decay}
    _update(
        {"param": params, "grad": grads, "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs},
        {"mu_product": mu_products, "step": state_steps},
        {**numbers, "momentum_decay": momentum_decay},
        maximize=maximize,
        decay=weight_decay != 0,
        decoupled=decoupled_weight_decay,
    )
