"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import ClassVar

import gradiron as torch

from .._core import Tensor
from ._declared import DeclaredOptimizer, Lists, Options, check_capturable, check_foreach, check_options, zeros
from ._rule import Rule, Trace
from .optimizer import ParamsT, _get_scalar_dtype, _to_scalar

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


def _number(p: Tensor, value: float | Tensor) -> Tensor:
    return torch.as_tensor(value, dtype=_get_scalar_dtype(), device=p.device).clone().detach()


class ASGD(DeclaredOptimizer):
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

    _RULE = _update
    _STATE: ClassVar = {
        "step": lambda p, group: _number(p, 0),
        "eta": lambda p, group: _number(p, _to_scalar(group["lr"])),
        "mu": lambda p, group: _number(p, 1),
        "ax": zeros,
    }
    _COUNTS = ("step", "eta", "mu")
    _COUNTS_ON_DEVICE = True
    _NUMBERS = "lr lambd t0 alpha weight_decay".split()
    _OPTIONS = "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable".split()
    _ADDED: ClassVar = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

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
        check_options(lr=lr, lambd=lambd, alpha=alpha, weight_decay=weight_decay)
        super().__init__(params, self._chosen_options(locals()))

    @classmethod
    def _check_arguments(cls, params: list[Tensor], lists: Lists, options: Options) -> None:
        check_foreach(options["foreach"], options["differentiable"])
        counts, names = [lists[name] for name in ("mu", "eta", "step")], "params, mus, etas, and state_steps"
        check_capturable(options["capturable"], options["foreach"], params, *counts, names=names)


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
    ASGD._functional(locals())
