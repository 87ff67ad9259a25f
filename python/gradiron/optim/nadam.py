"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any, ClassVar

import gradiron as torch

from .._core import Tensor
from ._declared import (
    DeclaredOptimizer,
    Lists,
    Options,
    check_capturable,
    check_foreach,
    check_options,
    check_steps,
    count,
    zeros,
)
from ._rule import Rule, Trace
from .optimizer import ParamsT

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


class NAdam(DeclaredOptimizer):
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

    _RULE = _update
    _STATE: ClassVar = {
        "step": count,
        "mu_product": lambda p, group: torch.ones_like(count(p, group)),
        "exp_avg": zeros,
        "exp_avg_sq": zeros,
    }
    _COUNTS = ("step", "mu_product")
    _NUMBERS = "lr beta1 beta2 eps weight_decay momentum_decay".split()
    _OPTIONS = (
        "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach capturable differentiable".split()
    )
    _ADDED: ClassVar = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }
    _PAIRS: ClassVar = {"betas": ("beta1", "beta2")}

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
        check_options(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(params, self._chosen_options(locals()))

    @staticmethod
    def _rule_flags(options: Options) -> dict[str, Any]:
        return {
            "maximize": options["maximize"],
            "decay": options["weight_decay"] != 0,
            "decoupled": options["decoupled_weight_decay"],
        }

    @classmethod
    def _check_arguments(cls, params: list[Tensor], lists: Lists, options: Options) -> None:
        steps, products, foreach = lists["step"], lists["mu_product"], options["foreach"]
        check_steps(steps)
        check_steps(products, "mu_products")
        check_foreach(foreach, options["differentiable"])
        names = "params, mu_products and state_steps"
        check_capturable(options["capturable"], foreach, params, products, steps, names=names)


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
    NAdam._functional(locals())
