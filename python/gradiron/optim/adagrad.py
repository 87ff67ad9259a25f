"""Adagrad: step sizes that shrink with the sum of all squared gradients."""

from __future__ import annotations

from typing import Any, ClassVar

import gradiron as torch

from .._core import Tensor
from ._declared import DeclaredOptimizer, Lists, Options, check_foreach, check_options, check_steps, count
from ._rule import Rule, Trace
from ._sparse import add_at, sparse_places, values_at
from .optimizer import ParamsT

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


def _update_by_sparse(param: Tensor, grad: Tensor, total: Tensor, step: Tensor, options: Options) -> None:
    """Update a parameter, its sum of squares and its count of steps by a sparse gradient."""
    if options["fused"]:
        raise RuntimeError("`fused` does not support sparse grad or complex param")
    if options["weight_decay"] != 0:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    rate = options["lr"] / (1 + step.item() * options["lr_decay"])
    step.add_(1)
    # The update is not linear, so the gradients of an element are summed first.
    grad = (-grad if options["maximize"] else grad).coalesce()
    total.add_(grad * grad)
    root = values_at(total, grad).sqrt_().add_(options["eps"])
    add_at(param, grad, grad._values() / root, alpha=-float(rate))


def _first_sum(p: Tensor, group: Options) -> Tensor:
    start = group["initial_accumulator_value"]
    value: Any = complex(start, start) if p.is_complex() else start
    return torch.full_like(p, value, memory_format=torch.preserve_format)


class Adagrad(DeclaredOptimizer):
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

    _RULE = _update
    _NO_SPARSE = None
    _STATE: ClassVar = {"step": count, "sum": _first_sum}
    _NUMBERS = "lr lr_decay eps weight_decay".split()
    _HAS_FUSED = True
    _OPTIONS = "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused".split()
    _ADDED: ClassVar = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

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
        check_options(
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        super().__init__(params, self._chosen_options(locals()))
        self._check_fused()
        if fused:
            self._need_device_dtype_check_for_fused = True
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].update(self._new_state(p, group))

    @staticmethod
    def _rule_flags(options: Options) -> dict[str, Any]:
        return {
            "scaled": options["grad_scale"] is not None,
            "maximize": options["maximize"],
            "decay": options["weight_decay"] != 0,
        }

    def share_memory(self) -> None:
        """Move the sums of squares into shared memory, for training in several processes."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        # A group's own initial value counts for nothing.
        start = self.defaults["initial_accumulator_value"]
        return super()._new_state(p, {**group, "initial_accumulator_value": start})

    def _gather_lists(self, group: dict[str, Any]) -> tuple[list[Tensor], list[Tensor], Lists]:
        params, grads, lists = super()._gather_lists(group)
        if group["fused"]:
            self._check_fused_once(params)
        return params, grads, lists

    @classmethod
    def _apply_rule(cls, params: list[Tensor], grads: list[Any], lists: Lists, options: Options) -> None:
        sparse = sparse_places(grads)
        for i in sparse:
            _update_by_sparse(params[i], grads[i], lists["sum"][i], lists["step"][i], options)
        if sparse:
            dense = [i for i in range(len(params)) if i not in sparse]
            params, grads = [params[i] for i in dense], [grads[i] for i in dense]
            lists = {name: [tensors[i] for i in dense] for name, tensors in lists.items()}
        if params:
            super()._apply_rule(params, grads, lists, options)

    @classmethod
    def _check_arguments(cls, params: list[Tensor], lists: Lists, options: Options) -> None:
        check_steps(lists["step"])
        if not params:
            return
        fused, differentiable = options["fused"], options["differentiable"]
        if fused and options.get("has_complex", any(p.is_complex() for p in params)):
            raise RuntimeError("`fused` does not support sparse grad or complex param")
        if fused and differentiable:
            raise RuntimeError("adagrad with fused=True does not support differentiable=True")
        check_foreach(options["foreach"] and not fused, differentiable)


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
    Adagrad._functional(locals(), sums=state_sums)
