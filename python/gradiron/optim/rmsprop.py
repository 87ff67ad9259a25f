"""RMSprop: gradients divided by the root of a running average of their squares."""

from __future__ import annotations

from typing import Any, ClassVar

from .._core import Tensor
from ._declared import DeclaredOptimizer, Options, check_options, count, zeros
from ._rule import Rule, Trace
from .optimizer import ParamsT

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


class RMSprop(DeclaredOptimizer):
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

    _RULE = _update
    _STATE: ClassVar = {"step": count, "square_avg": zeros, "momentum_buffer": zeros, "grad_avg": zeros}
    _OPTIONAL: ClassVar = {
        "momentum_buffer": lambda options: options["momentum"] > 0,
        "grad_avg": lambda options: options["centered"],
    }
    _NUMBERS = "lr alpha eps weight_decay momentum".split()
    _OPTIONS = "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable".split()
    _ADDED: ClassVar = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

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
        check_options(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(params, self._chosen_options(locals()))

    @staticmethod
    def _rule_flags(options: Options) -> dict[str, Any]:
        return {
            "maximize": options["maximize"],
            "decay": options["weight_decay"] != 0,
            "centered": options["centered"],
            "momentum": options["momentum"] > 0,
        }


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
    RMSprop._functional(locals(), momentum_buffers=momentum_buffer_list)
