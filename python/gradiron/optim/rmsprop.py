"""RMSprop: gradients divided by the root of a running average of their squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

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

__all__ = ["RMSprop", "rmsprop"]


@Rule
def _update(x: Trace, *, maximize: bool, decay: bool, centered: bool, momentum: bool) -> None:
    x.step = x.step + 1
    grad = -x.grad if maximize else x.grad
    if decay:
        grad = grad.add(x.param, alpha=x.weight_decay)
    x.square_avg = (x.square_avg * x.alpha).addcmul(grad, grad, value=1 - x.alpha)
    square = x.square_avg
    if centered:
        x.grad_avg = x.grad_avg.lerp(grad, 1 - x.alpha)
        square = square.addcmul(x.grad_avg, x.grad_avg, value=-1)
    size = square.sqrt() + x.eps
    if momentum:
        x.momentum_buffer = (x.momentum_buffer * x.momentum).addcdiv(grad, size, value=1)
        x.param = x.param.add(x.momentum_buffer, alpha=-x.lr)
    else:
        x.param = x.param.addcdiv(grad, size, value=-x.lr)


class RMSprop(Optimizer):
    """RMSprop: divide each gradient by the root of a running average of its squares.

    For the gradient `g`, without momentum::

        v = alpha * v + (1 - alpha) * g**2
        param -= lr * g / (sqrt(v) + eps)

    Args:
        params: parameters, pairs of names and parameters, or dicts that define parameter groups.
        lr: learning rate. Default: `1e-2`
        alpha: decay rate of the running average of squares. Default: `0.99`
        eps: term added to the denominator for numerical stability. Default: `1e-8`
        weight_decay: weight of the L2 penalty. Default: `0`
        momentum: momentum factor. Default: `0`
        centered: divide by an estimate of the gradient's standard deviation instead. Default: `False`
        capturable: keep step counts on the parameters' device, so that a step can be captured. Default: `False`
        foreach: update all parameters in one call; chosen automatically if `None`.
        maximize: maximize the objective instead of minimizing it. Default: `False`
        differentiable: let gradients flow through `step`. Default: `False`

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01, momentum=0.9)
        >>> model(torch.ones(4, 2)).mean().backward()
        >>> optimizer.step()
    """

    _ADDED: ClassVar[dict[str, Any]] = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }
    _COUNTS = ("step",)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        _check_options(
            lr,
            eps=(eps, "Invalid epsilon value"),
            momentum=(momentum, "Invalid momentum value"),
            weight_decay=(weight_decay, "Invalid weight_decay value"),
            alpha=(alpha, "Invalid alpha value"),
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        state = {"step": _zero_step(p, group["capturable"]), "square_avg": _zeros(p)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = _zeros(p)
        if group["centered"]:
            state["grad_avg"] = _zeros(p)
        return state

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Perform one optimization step."""
        loss = _evaluated(closure)
        for group in self.param_groups:
            asked = {"momentum_buffer": group["momentum"] > 0, "grad_avg": group["centered"]}
            names = [name for name, wanted in asked.items() if wanted]
            params, grads, square_avgs, steps, *rest = self._collect(group, "square_avg", "step", *names)
            more = dict(zip(names, rest, strict=True))
            rmsprop(
                params,
                grads,
                square_avgs,
                more.get("grad_avg", []),
                more.get("momentum_buffer", []),
                steps,
                lr=group["lr"],
                alpha=group["alpha"],
                eps=group["eps"],
                weight_decay=group["weight_decay"],
                momentum=group["momentum"],
                centered=group["centered"],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                capturable=group["capturable"],
            )
        return loss


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """Perform one `RMSprop` step over lists of tensors."""
    _check_lists(params, state_steps, foreach, differentiable, capturable)
    operands = {"param": params, "grad": grads, "square_avg": square_avgs}
    if centered:
        operands["grad_avg"] = grad_avgs
    if momentum > 0:
        operands["momentum_buffer"] = momentum_buffer_list
    _update(
        operands,
        {"step": state_steps},
        {"lr": _to_scalar(lr), "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum},
        maximize=maximize,
        decay=weight_decay != 0,
        centered=centered,
        momentum=momentum > 0,
    )
