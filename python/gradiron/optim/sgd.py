"""Stochastic gradient descent, optionally with momentum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import gradiron as torch

from .._core import Tensor
from ._rule import Rule, Trace
from .optimizer import (
    Optimizer,
    ParamsT,
    _check_fused,
    _check_scaling,
    _device_dtype_check_for_fused,
    _evaluated,
    _scale,
    _skips,
    _to_scalar,
    _use_grad_for_differentiable,
)

__all__ = ["SGD", "sgd"]


@Rule
def _update(x: Trace, *, scaled: bool, maximize: bool, decay: bool, momentum: bool, first: bool, nesterov: bool) -> None:
    if scaled:
        x.grad = x.grad / x.grad_scale
    grad = -x.grad if maximize else x.grad
    if decay:
        grad = grad.add(x.param, alpha=x.weight_decay)
    if momentum:
        if first:
            x.momentum_buffer = grad.detach()
        else:
            x.momentum_buffer = (x.momentum_buffer * x.momentum).add(grad, alpha=1 - x.dampening)
        grad = grad.add(x.momentum_buffer, alpha=x.momentum) if nesterov else x.momentum_buffer
    x.param = x.param.add(grad, alpha=-x.lr)


class SGD(Optimizer):
    """Stochastic gradient descent, optionally with momentum.

    For the gradient `g`, with momentum::

        buffer = momentum * buffer + (1 - dampening) * g    # at first: buffer = g
        param -= lr * buffer                                # with nesterov: lr * (g + momentum * buffer)

    Args:
        params: parameters, pairs of names and parameters, or dicts that define parameter groups.
        lr: learning rate. Default: `1e-3`
        momentum: momentum factor. Default: `0`
        dampening: dampening of the gradients that enter the momentum. Default: `0`
        weight_decay: weight of the L2 penalty. Default: `0`
        nesterov: use Nesterov momentum, which needs a `momentum` and no `dampening`. Default: `False`
        maximize: maximize the objective instead of minimizing it. Default: `False`
        foreach: update all parameters in one call; chosen automatically if `None`.
        differentiable: let gradients flow through `step`. Default: `False`
        fused: use one kernel for the whole update; chosen automatically if `None`.

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        >>> model(torch.ones(4, 2)).mean().backward()
        >>> optimizer.step()
    """

    _ADDED: ClassVar[dict[str, Any]] = {
        "nesterov": False,
        "maximize": False,
        "foreach": None,
        "differentiable": False,
        "fused": False,
    }

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if lr < 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)
        _check_fused(fused, foreach, differentiable)
        if fused:
            self._step_supports_amp_scaling = True
            self._need_device_dtype_check_for_fused = True

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Perform one optimization step."""
        loss = _evaluated(closure)
        for group in self.param_groups:
            params, grads, buffers = [], [], []
            for p in group["params"]:
                if (grad := p.grad) is None:
                    continue
                if group["fused"] and getattr(self, "_need_device_dtype_check_for_fused", True):
                    _device_dtype_check_for_fused(p)
                    self._need_device_dtype_check_for_fused = False
                params.append(p)
                grads.append(grad)
                if group["momentum"] != 0:
                    buffers.append(self.state[p].get("momentum_buffer"))
            sgd(
                params,
                grads,
                buffers,
                weight_decay=group["weight_decay"],
                momentum=group["momentum"],
                lr=group["lr"],
                dampening=group["dampening"],
                nesterov=group["nesterov"],
                maximize=group["maximize"],
                foreach=group["foreach"],
                fused=group["fused"],
                grad_scale=getattr(self, "grad_scale", None),
                found_inf=getattr(self, "found_inf", None),
            )
            for p, buffer in zip(params, buffers, strict=False):
                self.state[p]["momentum_buffer"] = buffer
        return loss


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float | Tensor,
    momentum: float,
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """Perform one `SGD` step over lists of tensors; missing momentum buffers are created."""
    _check_scaling(fused, grad_scale, found_inf)
    if not params or _skips(found_inf):
        return
    numbers = {"lr": _to_scalar(lr), "weight_decay": weight_decay, "momentum": momentum, "dampening": dampening}
    numbers |= _scale(grad_scale)
    scaled, decay = grad_scale is not None, bool(weight_decay != 0)

    def update(operands: dict[str, list[Any]], first: bool, nesterov: bool = False) -> None:
        flags = {"scaled": scaled, "maximize": maximize, "decay": decay, "momentum": len(operands) > 2}
        _update(operands, {}, numbers, rounds=not fused, **flags, first=first, nesterov=nesterov)

    operands: dict[str, list[Any]] = {"param": params, "grad": d_p_list}
    if momentum == 0:
        return update(operands, first=False)
    new = [buffer is None for buffer in momentum_buffer_list]
    for i in (i for i, is_new in enumerate(new) if is_new):
        momentum_buffer_list[i] = torch.empty_like(d_p_list[i])
    operands["momentum_buffer"] = momentum_buffer_list
    for first in (True, False):
        own = [i for i, is_new in enumerate(new) if is_new == first]
        if len(own) == len(params):
            update(operands, first, nesterov)
        elif own:
            update({name: [tensors[i] for i in own] for name, tensors in operands.items()}, first, nesterov)
