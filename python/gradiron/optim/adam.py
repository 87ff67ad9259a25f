"""Adam, and AdamW as Adam with decoupled weight decay."""

from __future__ import annotations

from typing import Any, ClassVar

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
from .optimizer import ParamsT, _device_dtype_check_for_fused, _to_scalar

__all__ = ["Adam", "adam"]


@Rule
def _update(x: Trace, *, scaled: bool, maximize: bool, decay: bool, decoupled: bool, amsgrad: bool) -> None:
    x.step = x.step + 1
    step = x.step.item()
    if scaled:
        x.grad = x.grad / x.grad_scale
    grad = -x.grad if maximize else x.grad
    if decay and decoupled:
        x.param = x.param * (1 - x.lr * x.weight_decay)
    elif decay:
        grad = grad.add(x.param, alpha=x.weight_decay)
    x.exp_avg = x.exp_avg.lerp(grad, 1 - x.beta1)
    x.exp_avg_sq = (x.exp_avg_sq * x.beta2).addcmul(grad, grad, value=1 - x.beta2)
    square = x.exp_avg_sq
    if amsgrad:
        square = x.max_exp_avg_sq = x.max_exp_avg_sq.maximum(x.exp_avg_sq)
    bias1, bias2 = 1 - x.beta1**step, 1 - x.beta2**step
    x.param = x.param.addcdiv(x.exp_avg, square.sqrt() / bias2**0.5 + x.eps, value=-(x.lr / bias1))


class Adam(DeclaredOptimizer):
    """Adam: adaptive steps from running estimates of the gradient's first and second moments.

    For the gradient `g` at step `t`::

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        param -= lr * (m / (1 - beta1**t)) / (sqrt(v / (1 - beta2**t)) + eps)

    Args:
        params: parameters, pairs of names and parameters, or dicts that define parameter groups.
        lr: learning rate. Default: `1e-3`
        betas: decay rates of the first and the second moment estimate. Default: `(0.9, 0.999)`
        eps: term added to the denominator for numerical stability. Default: `1e-8`
        weight_decay: weight of the L2 penalty. Default: `0`
        amsgrad: divide by the largest second moment seen so far. Default: `False`
        foreach: update all parameters in one call; chosen automatically if `None`.
        maximize: maximize the objective instead of minimizing it. Default: `False`
        capturable: keep step counts on the parameters' device, so that a step can be captured. Default: `False`
        differentiable: let gradients flow through `step`. Default: `False`
        fused: use one kernel for the whole update; chosen automatically if `None`.
        decoupled_weight_decay: shrink the parameters instead of adding the penalty to the gradient, as AdamW
            does. Default: `False`

    Raises:
        ValueError: if `lr`, `eps` or `weight_decay` is negative, or a beta is outside `[0, 1)`.

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        >>> model(torch.ones(4, 2)).mean().backward()
        >>> optimizer.step()
    """

    _RULE = _update
    _NO_SPARSE = "Adam does not support sparse gradients, please consider SparseAdam instead"
    _STATE: ClassVar = {"step": count, "exp_avg": zeros, "exp_avg_sq": zeros, "max_exp_avg_sq": zeros}
    _OPTIONAL: ClassVar = {"max_exp_avg_sq": lambda options: options["amsgrad"]}
    _NUMBERS = "lr beta1 beta2 eps weight_decay".split()
    _OPTIONS = (
        "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused decoupled_weight_decay".split()
    )
    _ADDED: ClassVar = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }
    _HAS_FUSED = True
    _PAIRS: ClassVar = {"betas": ("beta1", "beta2")}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        alone = foreach and not capturable
        if isinstance(lr, Tensor) and alone:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_options(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        kinds = [isinstance(beta, float) for beta in betas], [isinstance(beta, Tensor) for beta in betas]
        if not any(all(kind) for kind in kinds):
            raise ValueError("betas must be either both floats or both Tensors")
        for i, beta in enumerate(betas):
            if isinstance(beta, Tensor) and alone:
                raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
            if isinstance(beta, Tensor) and beta.numel() != 1:
                raise ValueError(f"Tensor betas[{i}] must be 1-element")
        betas = _to_scalar(betas[0]), _to_scalar(betas[1])
        super().__init__(params, self._chosen_options(locals()))
        self._check_fused()

    @staticmethod
    def _rule_flags(options: Options) -> dict[str, Any]:
        return {
            "scaled": options["grad_scale"] is not None,
            "maximize": options["maximize"],
            "decay": bool(options["weight_decay"] != 0),
            "decoupled": options["decoupled_weight_decay"],
            "amsgrad": options["amsgrad"],
        }

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if group["fused"]:
            _device_dtype_check_for_fused(p)
        return super()._new_state(p, group)

    def _gather_lists(self, group: dict[str, Any]) -> tuple[list[Tensor], list[Tensor], Lists]:
        params, grads, lists = super()._gather_lists(group)
        if group["differentiable"] and any(step.requires_grad for step in lists["step"]):
            raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
        return params, grads, lists

    @classmethod
    def _check_arguments(cls, params: list[Tensor], lists: Lists, options: Options) -> None:
        foreach, fused, capturable = options["foreach"], options["fused"], options["capturable"]
        check_steps(lists["step"])
        if foreach and not fused:
            for name in ("lr", "beta1", "beta2"):
                number = options[name]
                if isinstance(number, Tensor) and not capturable:
                    kind = RuntimeError if name == "lr" else ValueError
                    raise kind(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
                if isinstance(number, Tensor) and number.numel() != 1:
                    raise ValueError(f"Tensor {name} must be 1-element")
            check_foreach(foreach, options["differentiable"])
        check_capturable(capturable and not fused, foreach, params, lists["step"])


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Perform one `Adam` step over lists of tensors."""
    Adam._functional(locals())
