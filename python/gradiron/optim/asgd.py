"""Averaged stochastic gradient descent."""

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
    """Averaged SGD: gradient descent with a decreasing step size that also averages the parameters.

    For the gradient `g` at step `t`::

        param = param * (1 - lambd * eta) - eta * g
        eta = lr / (1 + lambd * lr * t)**alpha

    From step `t0` on, `state[param]["ax"]` is the running average of `param`; before, it is a copy of it.

    Args:
        params: parameters, pairs of names and parameters, or dicts that define parameter groups.
        lr: learning rate. Default: `1e-2`
        lambd: decay term. Default: `1e-4`
        alpha: power by which the step size `eta` decreases. Default: `0.75`
        t0: step at which averaging starts. Default: `1e6`
        weight_decay: weight of the L2 penalty. Default: `0`
        foreach: update all parameters in one call; chosen automatically if `None`.
        maximize: maximize the objective instead of minimizing it. Default: `False`
        differentiable: let gradients flow through `step`. Default: `False`
        capturable: keep step counts on the parameters' device, so that a step can be captured. Default: `False`

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> optimizer = torch.optim.ASGD(model.parameters(), lr=0.01, t0=10)
        >>> model(torch.ones(4, 2)).mean().backward()
        >>> optimizer.step()
    """

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
        """Perform one optimization step."""
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
    """Perform one `ASGD` step over lists of tensors."""
    _check_foreach(foreach, differentiable)
    _check_capturable(capturable, foreach, params, mus, etas, state_steps, names="params, mus, etas, and state_steps")
    _update(
        {"param": params, "grad": grads, "ax": axs},
        {"mu": mus, "eta": etas, "step": state_steps},
        {"lr": _to_scalar(lr), "lambd": lambd, "t0": t0, "alpha": alpha, "weight_decay": weight_decay},
        maximize=maximize,
        decay=weight_decay != 0,
    )
