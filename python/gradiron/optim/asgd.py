"""Stochastic gradient descent that averages where it has been."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import gradiron as torch

from .._core import Tensor
from ._rule import Rule, Trace
from .optimizer import (
    Optimizer,
    ParamsT,
    _check_capturable,
    _check_foreach,
    _check_options,
    _evaluated,
    _get_scalar_dtype,
    _to_scalar,
    _use_grad_for_differentiable,
    _zeros,
)

__all__ = ["ASGD", "asgd"]


@Rule
def _update(x: Trace, *, maximize: bool, decay: bool) -> None:
    x.step = x.step + 1
    grad = -x.grad if maximize else x.grad
    if decay:
        grad = grad.add(x.param, alpha=x.weight_decay)
    eta, mu, step = x.eta.item(), x.mu.item(), x.step.item()
    x.param = (x.param * (1 - x.lambd * eta)).add(grad, alpha=-eta)
    x.ax = mu.eq(1.0).where(x.param, x.ax + (x.param - x.ax) * mu)
    x.eta = x.lr / (1 + x.lambd * x.lr * step) ** x.alpha
    x.mu = 1 / (step - x.t0).maximum(1.0)


class ASGD(Optimizer):
    """Gradient descent with rates that fall; beside the parameters it keeps the average (`ax`) of all of them."""

    _ADDED: ClassVar[dict[str, Any]] = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _COUNTS = ("step", "eta", "mu")
    _counts_beside = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        _check_options(
            lr,
            lambd=(lambd, "Invalid lambd value"),
            alpha=(alpha, "Invalid alpha value"),
            weight_decay=(weight_decay, "Invalid weight_decay value"),
        )
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        kind: dict[str, Any] = {"dtype": _get_scalar_dtype(), "device": p.device}
        return {
            "step": torch.zeros((), **kind),
            "eta": torch.as_tensor(_to_scalar(group["lr"]), **kind).clone().detach(),
            "mu": torch.ones((), **kind),
            "ax": _zeros(p),
        }

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step; returns what the closure does."""
        loss = _evaluated(closure)
        for group in self.param_groups:
            params, grads, axs, mus, etas, steps = self._collect(group, "ax", "mu", "eta", "step")
            asgd(
                params,
                grads,
                axs,
                mus,
                etas,
                steps,
                lambd=group["lambd"],
                lr=group["lr"],
                t0=group["t0"],
                alpha=group["alpha"],
                weight_decay=group["weight_decay"],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
            )
        return loss


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float | Tensor,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """One step of `ASGD` over lists."""
    _check_foreach(foreach, differentiable)
    _check_capturable(capturable, foreach, params, mus, etas, state_steps, names="params, mus, etas, and state_steps")
    _update(
        {"param": params, "grad": grads, "ax": axs},
        {"mu": mus, "eta": etas, "step": state_steps},
        {"lr": _to_scalar(lr), "lambd": lambd, "t0": t0, "alpha": alpha, "weight_decay": weight_decay},
        maximize=maximize,
        decay=weight_decay != 0,
    )
