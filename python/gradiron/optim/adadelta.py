"""Adadelta: step sizes from running averages of squared gradients and squared updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from .._core import Tensor
from ._rule import Rule, Trace
from .optimizer import (
    Optimizer,
    ParamsT,
    _check_capturable,
    _check_foreach,
    _check_options,
    _check_steps,
    _evaluated,
    _to_scalar,
    _use_grad_for_differentiable,
    _zero_step,
    _zeros,
)

__all__ = ["Adadelta", "adadelta"]


@Rule
def _update(x: Trace, *, maximize: bool, decay: bool) -> None:
    x.step = x.step + 1
    grad = -x.grad if maximize else x.grad
    if decay:
        grad = grad.add(x.param, alpha=x.weight_decay)
    x.square_avg = (x.square_avg * x.rho).addcmul(grad, grad, value=1 - x.rho)
    delta = (x.acc_delta + x.eps).sqrt() / (x.square_avg + x.eps).sqrt() * grad
    x.acc_delta = (x.acc_delta * x.rho).addcmul(delta, delta, value=1 - x.rho)
    x.param = x.param.add(delta, alpha=-x.lr)


class Adadelta(Optimizer):
    """Adadelta: scale each gradient by the ratio of recent update sizes to recent gradient sizes.

    For the gradient `g`::

        v = rho * v + (1 - rho) * g**2
        delta = sqrt(u + eps) / sqrt(v + eps) * g
        u = rho * u + (1 - rho) * delta**2
        param -= lr * delta

    Args:
        params: parameters, pairs of names and parameters, or dicts that define parameter groups.
        lr: factor of the update, which the method itself does not need. Default: `1.0`
        rho: decay rate of both running averages. Default: `0.9`
        eps: term added under the square roots for numerical stability. Default: `1e-6`
        weight_decay: weight of the L2 penalty. Default: `0`
        foreach: update all parameters in one call; chosen automatically if `None`.
        capturable: keep step counts on the parameters' device, so that a step can be captured. Default: `False`
        maximize: maximize the objective instead of minimizing it. Default: `False`
        differentiable: let gradients flow through `step`. Default: `False`

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> optimizer = torch.optim.Adadelta(model.parameters())
        >>> model(torch.ones(4, 2)).mean().backward()
        >>> optimizer.step()
    """

    _ADDED: ClassVar[dict[str, Any]] = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _COUNTS = ("step",)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_options(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        _check_options(0.0, eps=(eps, "Invalid epsilon value"), weight_decay=(weight_decay, "Invalid weight_decay value"))
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        return {"step": _zero_step(p, group["capturable"]), "square_avg": _zeros(p), "acc_delta": _zeros(p)}

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Perform one optimization step."""
        loss = _evaluated(closure)
        for group in self.param_groups:
            params, grads, square_avgs, acc_deltas, steps = self._collect(group, "square_avg", "acc_delta", "step")
            adadelta(
                params,
                grads,
                square_avgs,
                acc_deltas,
                steps,
                lr=group["lr"],
                rho=group["rho"],
                eps=group["eps"],
                weight_decay=group["weight_decay"],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
            )
        return loss


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Perform one `Adadelta` step over lists of tensors."""
    _check_steps(state_steps)
    _check_foreach(foreach, differentiable)
    _check_capturable(capturable, True, params, state_steps)
    _update(
        {"param": params, "grad": grads, "square_avg": square_avgs, "acc_delta": acc_deltas},
        {"step": state_steps},
        {"lr": _to_scalar(lr), "rho": rho, "eps": eps, "weight_decay": weight_decay},
        maximize=maximize,
        decay=weight_decay != 0,
    )
