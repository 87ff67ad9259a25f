"""SparseAdam: Adam that updates only the rows of which there is a gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gradiron as torch

from .._core import Tensor
from ._declared import check_options
from ._sparse import add_at, values_at
from .optimizer import Optimizer, ParamsT, _to_scalar

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam for sparse gradients: only elements with a gradient are updated, and only their moments change.

    Args:
        params: parameters, pairs of names and parameters, or dicts that define parameter groups.
        lr: learning rate. Default: `1e-3`
        betas: decay rates of the running averages of the gradient and of its square. Default: `(0.9, 0.999)`
        eps: term added to the denominator for numerical stability. Default: `1e-8`
        maximize: maximize the objective instead of minimizing it. Default: `False`

    Examples:
        >>> table = nn.Embedding(10, 3, sparse=True)
        >>> optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
        >>> table(torch.tensor([1, 4])).sum().backward()
        >>> optimizer.step()
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_options(lr=lr)
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 < eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_options(betas=betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse = [[i, j] for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"]) if p.is_sparse]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Perform one optimization step."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, p.grad, group)
        return loss

    def _update(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        if not grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        state = self.state[param]
        if not state:
            state["step"] = 0
            state["exp_avg"] = torch.zeros_like(param, memory_format=torch.preserve_format)
            state["exp_avg_sq"] = torch.zeros_like(param, memory_format=torch.preserve_format)
        state["step"] += 1
        # The update is not linear, so the gradients of an element are summed first.
        grad = grad.coalesce()
        if grad._nnz() == 0:
            return
        g = -grad._values() if group["maximize"] else grad._values()
        beta1, beta2 = group["betas"]
        change = (g - values_at(state["exp_avg"], grad)) * (1 - beta1)
        change_sq = (g * g - values_at(state["exp_avg_sq"], grad)) * (1 - beta2)
        add_at(state["exp_avg"], grad, change)
        add_at(state["exp_avg_sq"], grad, change_sq)
        root = values_at(state["exp_avg_sq"], grad).sqrt_().add_(group["eps"])
        correction1, correction2 = (1 - beta ** state["step"] for beta in (beta1, beta2))
        rate = _to_scalar(group["lr"]) * math.sqrt(correction2) / correction1
        add_at(param, grad, values_at(state["exp_avg"], grad).div_(root).mul_(-rate))
