"""Steps by the signs of gradients, longer while these stay the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import gradiron as torch

from .._core import Tensor
from ._rule import Rule, Trace
from .optimizer import (
    Optimizer,
    ParamsT,
    _check_lists,
    _check_options,
    _evaluated,
    _to_scalar,
    _use_grad_for_differentiable,
    _zero_step,
    _zeros,
)

__all__ = ["Rprop", "rprop"]


@Rule
def _update(x: Trace, *, maximize: bool) -> None:
    x.step = x.step + 1
    grad = -x.grad if maximize else x.grad
    turn = grad * x.prev
    back = turn < 0
    factor = (turn > 0).where(x.eta_plus, back.where(x.eta_minus, 1.0))
    x.step_size = (x.step_size * factor).maximum(x.step_size_min).minimum(x.step_size_max)
    # Who went too far stays where it is, and forgets why.
    grad = back.where(0.0, grad)
    x.param = x.param.addcmul(grad.sign(), x.step_size, value=-1)
    x.prev = grad


class Rprop(Optimizer):
    """Each element steps by a size of its own, which grows while its gradient keeps its sign and shrinks when it turns."""

    _ADDED: ClassVar[dict[str, Any]] = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _COUNTS = ("step",)

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
        _check_options(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        lr = _to_scalar(group["lr"])
        # Parts of a complex number are numbers of their own, and both have a step.
        size: Any = complex(lr, lr) if p.is_complex() else lr
        grad: Any = p.grad
        step_size = torch.full_like(grad, size)
        return {"step": _zero_step(p, group["capturable"]), "prev": _zeros(p), "step_size": step_size}

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step; returns what the closure does."""
        loss = _evaluated(closure)
        for group in self.param_groups:
            params, grads, prevs, step_sizes, steps = self._collect(group, "prev", "step_size", "step")
            rprop(
                params,
                grads,
                prevs,
                step_sizes,
                steps,
                step_size_min=group["step_sizes"][0],
                step_size_max=group["step_sizes"][1],
                etaminus=group["etas"][0],
                etaplus=group["etas"][1],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
            )
        return loss


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
    """One step of `Rprop` over lists."""
    _check_lists(params, state_steps, foreach, differentiable, capturable)
    _update(
        {"param": params, "grad": grads, "prev": prevs, "step_size": step_sizes},
        {"step": state_steps},
        {
            "step_size_min": step_size_min,
            "step_size_max": step_size_max,
            "eta_minus": etaminus,
            "eta_plus": etaplus,
        },
        maximize=maximize,
    )
