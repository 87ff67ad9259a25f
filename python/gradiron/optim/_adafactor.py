"""Adafactor: second moment estimates that are kept per row and per column only."""

from __future__ import annotations

from typing import Any, ClassVar

import gradiron as torch

from .._core import Tensor
from ._declared import DeclaredOptimizer, Lists, Options, count
from .optimizer import ParamsT, _to_scalar

__all__ = ["Adafactor", "adafactor"]


def _mean_square(grad: Tensor, dim: int) -> Tensor:
    return grad.norm(2, dim=dim, keepdim=True).square_().div_(grad.size(dim))


def _size(x: Tensor) -> float:
    """The root of the mean square of all elements."""
    return x.norm(2).item() / x.numel() ** 0.5


class Adafactor(DeclaredOptimizer):
    """Adafactor: adaptive steps with a factored second moment estimate, to save memory.

    Of the squared gradients of a matrix only row and column averages are kept; the step is relative to the size of
    the parameter. Vectors keep a full second moment estimate.

    Args:
        params: parameters, pairs of names and parameters, or dicts that define parameter groups.
        lr: upper bound of the relative step size, which is `min(lr, 1 / sqrt(t))` at step `t`. Default: `1e-2`
        beta2_decay: power of `t` that gives the weight of a new squared gradient. Default: `-0.8`
        eps: lower bounds of the second moment estimate (`None` for the dtype's epsilon) and of the parameter's size.
            Default: `(None, 1e-3)`
        d: threshold above which the root mean square of an update is clipped. Default: `1.0`
        weight_decay: decoupled weight decay. Default: `0.0`
        foreach: accepted for compatibility; makes no difference.
        maximize: maximize the objective instead of minimizing it. Default: `False`

    Examples:
        >>> model = nn.Linear(20, 10)
        >>> optimizer = torch.optim.Adafactor(model.parameters())
        >>> model(torch.ones(4, 20)).mean().backward()
        >>> optimizer.step()
        >>> optimizer.state[model.weight]["row_var"].shape, optimizer.state[model.weight]["col_var"].shape
        (torch.Size([10, 1]), torch.Size([1, 20]))
    """

    _STATE: ClassVar = {"step": count}
    _OPTIONS = "lr beta2_decay eps d weight_decay foreach maximize".split()
    _ADDED: ClassVar = {"foreach": None}
    _PAIRS: ClassVar = {"eps": ("eps1", "eps2")}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not 0.0 <= eps[0]:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not 0.0 <= eps[1]:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, self._chosen_options(locals()))

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        grad: Any = p.grad
        state = super()._new_state(p, group)
        if grad.dim() > 1:
            *rest, rows, columns = grad.shape
            state["row_var"] = grad.new_zeros([*rest, rows, 1])
            state["col_var"] = grad.new_zeros([*rest, 1, columns])
        else:
            state["variance"] = torch.zeros_like(grad, memory_format=torch.preserve_format)
        return state

    def _group_options(self, group: dict[str, Any]) -> dict[str, Any]:
        # A matrix has `row_var` and `col_var`, a vector `variance`.
        states = [self.state[p] for p in group["params"] if p.grad is not None]
        lists = {f"{name}s": [state.get(name) for state in states] for name in ("row_var", "col_var", "variance")}
        scaling = {name: getattr(self, name, None) for name in ("grad_scale", "found_inf")}
        return super()._group_options(group) | lists | scaling

    @classmethod
    def _check_arguments(cls, params: list[Tensor], lists: Lists, options: Options) -> None:
        if not all(isinstance(step, Tensor) for step in lists["step"]):
            raise RuntimeError("`state_steps` argument must contain a list of singleton tensors")
        if options["grad_scale"] is not None or options["found_inf"] is not None:
            raise AssertionError("Grad scaling should occur outside of optimizer.step()")

    @classmethod
    def _apply_rule(cls, params: list[Tensor], grads: list[Tensor], lists: Lists, options: Options) -> None:
        rate, eps1, weight_decay = _to_scalar(options["lr"]), options["eps1"], options["weight_decay"]
        for i, param in enumerate(params):
            grad = -grads[i] if options["maximize"] else grads[i]
            row_var, col_var, variance = options["row_vars"][i], options["col_vars"][i], options["variances"][i]
            if eps1 is None:
                eps1 = torch.finfo(param.dtype).eps
            step = lists["step"][i].add_(1).item()
            weight = step ** options["beta2_decay"]
            alpha = max(options["eps2"], _size(param)) * min(rate, 1 / step**0.5)
            if weight_decay != 0:
                param.mul_(1 - rate * weight_decay)
            if grad.dim() > 1:
                if row_var is None or col_var is None:
                    raise AssertionError("row_var and col_var should be defined when grad is multidimensional")
                row_var.lerp_(_mean_square(grad, -1), weight)
                col_var.lerp_(_mean_square(grad, -2), weight)
                estimate = row_var @ col_var
                estimate.div_(row_var.mean(dim=-2, keepdim=True).clamp_(min=eps1))
            else:
                if variance is None:
                    raise AssertionError("variance should be defined when grad is a vector")
                estimate = variance.lerp_(grad * grad, weight).clone()
            update = estimate.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
            size = update.norm(2).item() / (update.numel() ** 0.5 * options["d"])
            param.add_(update, alpha=-alpha / max(1.0, size))


def adafactor(
    params: list[Tensor],
    grads: list[Tensor],
    row_vars: list[Tensor | None],
    col_vars: list[Tensor | None],
    variances: list[Tensor | None],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: float | Tensor,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    """Perform one `Adafactor` step over lists of tensors."""
    Adafactor._functional(locals())
