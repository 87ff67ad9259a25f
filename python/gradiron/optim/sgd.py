"""Stochastic gradient descent, optionally with momentum."""

from __future__ import annotations

from typing import Any, ClassVar

import gradiron as torch

from .._core import Tensor
from ._declared import DeclaredOptimizer, Lists, Options
from ._rule import Rule, Trace
from ._sparse import sparse_places
from .optimizer import ParamsT

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


def _update_by_sparse(param: Tensor, grad: Tensor, buffer: Tensor | None, options: Options) -> Tensor | None:
    """Update a parameter by a sparse gradient, and return the new momentum buffer."""
    if options["fused"]:
        raise RuntimeError("`_fused_sgd` does not support sparse gradients")
    if options["maximize"]:
        grad = -grad
    if options["weight_decay"] != 0:
        grad = grad.add(param, alpha=options["weight_decay"])
    momentum = options["momentum"]
    if momentum != 0:
        if buffer is None:
            buffer = grad.detach().clone()
        else:
            buffer.mul_(momentum).add_(grad, alpha=1 - options["dampening"])
        grad = grad.add(buffer, alpha=momentum) if options["nesterov"] else buffer
    param.add_(grad, alpha=-float(options["lr"]))
    return buffer


class SGD(DeclaredOptimizer):
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

    _RULE = _update
    # A buffer begins as the first gradient.
    _STATE: ClassVar = {"momentum_buffer": lambda p, group: None}
    _OPTIONAL: ClassVar = {"momentum_buffer": lambda options: options["momentum"] != 0}
    _COUNTS = ()
    _NUMBERS = "lr weight_decay momentum dampening".split()
    _HAS_FUSED = True
    _OPTIONS = "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused".split()
    _ADDED: ClassVar = {"nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": False}

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
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, self._chosen_options(locals()))
        self._check_fused()
        if fused:
            self._need_device_dtype_check_for_fused = True

    @staticmethod
    def _rule_flags(options: Options) -> dict[str, Any]:
        return {
            "scaled": options["grad_scale"] is not None,
            "maximize": options["maximize"],
            "decay": bool(options["weight_decay"] != 0),
            "momentum": bool(options["momentum"] != 0),
            "first": options["first"],
            "nesterov": options["nesterov"],
        }

    def _step_group(self, group: dict[str, Any]) -> None:
        params, grads = [], []
        for p in group["params"]:
            if (grad := p.grad) is not None:
                params.append(p)
                grads.append(grad)
        if group["fused"]:
            self._check_fused_once(params)
        buffers = [self.state[p].get("momentum_buffer") for p in params] if group["momentum"] != 0 else []
        self._update_lists(params, grads, {"momentum_buffer": buffers} if buffers else {}, self._group_options(group))
        for p, buffer in zip(params, buffers, strict=False):
            self.state[p]["momentum_buffer"] = buffer

    @classmethod
    def _check_arguments(cls, params: list[Tensor], lists: Lists, options: Options) -> None:
        """Nothing but what is checked for all fused steps."""

    @classmethod
    def _apply_rule(cls, params: list[Tensor], grads: list[Any], lists: Lists, options: Options) -> None:
        buffers = lists.get("momentum_buffer") or []
        sparse = {*sparse_places(grads), *sparse_places(buffers)}
        for i in sparse:
            buffer = _update_by_sparse(params[i], grads[i], buffers[i] if buffers else None, options)
            if buffers:
                buffers[i] = buffer
        new = [i for i, buffer in enumerate(buffers) if buffer is None]
        options["first"] = False
        if not new and not sparse:
            return super()._apply_rule(params, grads, lists, options)
        old = [i for i in range(len(params)) if i not in sparse and i not in new]
        for i in new:
            buffers[i] = torch.empty_like(grads[i])
        for own in filter(None, (new, old)):
            options["first"] = own is new
            chosen = [[tensors[i] for i in own] for tensors in (params, grads, buffers or params)]
            super()._apply_rule(chosen[0], chosen[1], {"momentum_buffer": chosen[2]} if buffers else {}, options)


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
    SGD._functional(locals(), grads=d_p_list, momentum_buffers=momentum_buffer_list)
