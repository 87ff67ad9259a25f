"""Adam with decoupled weight decay."""

from __future__ import annotations

from typing import Any

from .._core import Tensor
from .adam import Adam
from .optimizer import ParamsT

__all__ = ["AdamW", "adamw"]


class AdamW(Adam):
    """AdamW: Adam with decoupled weight decay.

    The parameters are multiplied by `1 - lr * weight_decay` before the step, and the decay does not enter the
    moment estimates. See `Adam` for the rest of the update.

    Args:
        params: parameters, pairs of names and parameters, or dicts that define parameter groups.
        lr: learning rate. Default: `1e-3`
        betas: decay rates of the first and the second moment estimate. Default: `(0.9, 0.999)`
        eps: term added to the denominator for numerical stability. Default: `1e-8`
        weight_decay: share by which the parameters shrink, times `lr`, in each step. Default: `1e-2`
        amsgrad: divide by the largest second moment seen so far. Default: `False`
        maximize: maximize the objective instead of minimizing it. Default: `False`
        foreach: update all parameters in one call; chosen automatically if `None`.
        capturable: keep step counts on the parameters' device, so that a step can be captured. Default: `False`
        differentiable: let gradients flow through `step`. Default: `False`
        fused: use one kernel for the whole update; chosen automatically if `None`.

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
        >>> model(torch.ones(4, 2)).mean().backward()
        >>> optimizer.step()
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


def adamw(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Perform one `AdamW` step over lists of tensors."""
    AdamW._functional(locals(), decoupled_weight_decay=True)
