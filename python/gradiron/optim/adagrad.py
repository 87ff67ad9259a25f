"""Adagrad: step sizes that shrink with the sum of all squared gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import gradiron as torch

from .._core import Tensor
from ._rule import Rule, Trace
from .optimizer import (
    Optimizer,
    ParamsT,
    _check_foreach,
    _check_fused,
    _check_options,
    _check_scaling,
    _check_steps,
    _device_dtype_check_for_fused,
    _evaluated,
    _scale,
    _skips,
    _to_scalar,
    _use_grad_for_differentiable,
    _zero_step,
)

__all__ = ["Adagrad", "adagrad"]


@Rule
def _update(x: Trace, *, scaled: bool, maximize: bool, decay: bool) -> None:
    x.step = x.step + 1
    if scaled:
        x.grad = x.grad / x.grad_scale
    grad = -x.grad if maximize else x.grad
    if decay:
        grad = grad.add(x.param, alpha=x.weight_decay)
    x.sum = x.sum.addcmul(grad, grad, value=1)
    rate = x.lr / (1 + (x.step.item() - 1) * x.lr_decay)
    x.param = x.param.addcdiv(grad, x.sum.sqrt() + x.eps, value=-rate)


class Adagrad(Optimizer):
    """Adagrad: divide each gradient by the root of the sum of all its squares so far.

    For the gradient `g` at step `t`::

        s = s + g**2
        param -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)

    Args:
        params: parameters, pairs of names and parameters, or dicts that define parameter groups.
        lr: learning rate. Default: `1e-2`
        lr_decay: decay of the learning rate with the number of steps. Default: `0`
        weight_decay: weight of the L2 penalty. Default: `0`
        initial_accumulator_value: initial value of the sum of squares. Default: `0`
        eps: term added to the denominator for numerical stability. Default: `1e-10`
        foreach: update all parameters in one call; chosen automatically if `None`.
        maximize: maximize the objective instead of minimizing it. Default: `False`
        differentiable: let gradients flow through `step`. Default: `False`
        fused: use one kernel for the whole update; chosen automatically if `None`.

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
        >>> model(torch.ones(4, 2)).mean().backward()
        >>> optimizer.step()
    """

    _ADDED: ClassVar[dict[str, Any]] = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}
    _COUNTS = ("step",)

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        _check_options(
            lr,
            lr_decay=(lr_decay, "Invalid lr_decay value"),
            weight_decay=(weight_decay, "Invalid weight_decay value"),
            initial=(initial_accumulator_value, "Invalid initial_accumulator_value value"),
            eps=(eps, "Invalid epsilon value"),
        )
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        _check_fused(fused, foreach, differentiable)
        if fused:
            self._need_device_dtype_check_for_fused = True
            self._step_supports_amp_scaling = True
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].update(self._sums(p, group, initial_accumulator_value))

    def share_memory(self) -> None:
        """Move the sums of squares into shared memory, for training in several processes."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _sums(self, p: Tensor, group: dict[str, Any], start: float) -> dict[str, Tensor]:
        value: Any = complex(start, start) if p.is_complex() else start
        return {
            "step": _zero_step(p, group["fused"], group["fused"]),
            "sum": torch.full_like(p, value, memory_format=torch.preserve_format),
        }

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        return self._sums(p, group, self.defaults["initial_accumulator_value"])

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Perform one optimization step."""
        loss = _evaluated(closure)
        for group in self.param_groups:
            params, grads, sums, steps = self._collect(group, "sum", "step")
            if group["fused"] and params and getattr(self, "_need_device_dtype_check_for_fused", True):
                _device_dtype_check_for_fused(params[0])
                self._need_device_dtype_check_for_fused = False
            adagrad(
                params,
                grads,
                sums,
                steps,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                lr_decay=group["lr_decay"],
                eps=group["eps"],
                foreach=group["foreach"],
                maximize=group["maximize"],
                differentiable=group["differentiable"],
                has_complex=any(p.is_complex() for p in params),
                fused=group["fused"],
                grad_scale=getattr(self, "grad_scale", None),
                found_inf=getattr(self, "found_inf", None),
            )
        return loss


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Perform one `Adagrad` step over lists of tensors."""
    _check_steps(state_steps)
    _check_scaling(fused, grad_scale, found_inf)
    if not params:
        return
    if fused and has_complex:
        raise RuntimeError("`fused` does not support sparse grad or complex param")
    if fused and differentiable:
        raise RuntimeError("adagrad with fused=True does not support differentiable=True")
    _check_foreach(foreach and not fused, differentiable)
    if _skips(found_inf):
        return
    _update(
        {"param": params, "grad": grads, "sum": state_sums},
        {"step": state_steps},
        {"lr": _to_scalar(lr), "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay, **_scale(grad_scale)},
        rounds=not fused,
        scaled=grad_scale is not None,
        maximize=maximize,
        decay=weight_decay != 0,
    )
