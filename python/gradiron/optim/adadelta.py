"""Steps as large as the last ones were, without a rate to be chosen."""

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
    """Scales each gradient by what its parameter moved lately, over what its gradients were lately."""

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
        """One step; returns what the closure does."""
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
    """One step of `Adadelta` over lists."""
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
