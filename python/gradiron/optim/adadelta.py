"""Adadelta: step sizes from running averages of squared gradients and squared updates."""

from __future__ import annotations

from typing import ClassVar

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


class Adadelta(DeclaredOptimizer):
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

    _RULE = _update
    _STATE: ClassVar = {"step": count, "square_avg": zeros, "acc_delta": zeros}
    _NUMBERS = "lr rho eps weight_decay".split()
    _OPTIONS = "lr rho eps weight_decay maximize capturable foreach differentiable".split()
    _ADDED: ClassVar = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

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
        check_options(lr=lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_options(eps=eps, weight_decay=weight_decay)
        super().__init__(params, self._chosen_options(locals()))

    @classmethod
    def _check_arguments(cls, params: list[Tensor], lists: Lists, options: Options) -> None:
        check_steps(lists["step"])
        check_foreach(options["foreach"], options["differentiable"])
        check_capturable(options["capturable"], True, params, lists["step"])


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
    Adadelta._functional(locals())
