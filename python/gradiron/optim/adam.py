"""Adam, and AdamW as Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from .._core import Tensor
from ._rule import Rule, Trace
from .optimizer import (
    Optimizer,
    ParamsT,
    _check_betas,
    _check_capturable,
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
    _zeros,
)

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


class Adam(Optimizer):
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

    _ADDED: ClassVar[dict[str, Any]] = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "fused": None,
    }
    _COUNTS = ("step",)

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
        _check_options(lr, eps=(eps, "Invalid epsilon value"))
        _check_betas(betas)
        _check_options(0.0, decay=(weight_decay, "Invalid weight_decay value"))
        kinds = [isinstance(beta, float) for beta in betas], [isinstance(beta, Tensor) for beta in betas]
        if not any(all(kind) for kind in kinds):
            raise ValueError("betas must be either both floats or both Tensors")
        for i, beta in enumerate(betas):
            if isinstance(beta, Tensor) and alone:
                raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
            if isinstance(beta, Tensor) and beta.numel() != 1:
                raise ValueError(f"Tensor betas[{i}] must be 1-element")
        defaults = {
            "lr": lr,
            "betas": (_to_scalar(betas[0]), _to_scalar(betas[1])),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        _check_fused(fused, foreach, differentiable)
        if fused:
            self._step_supports_amp_scaling = True

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Tensor]:
        if group["fused"]:
            _device_dtype_check_for_fused(p)
        on_device = group["capturable"] or group["fused"]
        state = {"step": _zero_step(p, on_device, group["fused"]), "exp_avg": _zeros(p), "exp_avg_sq": _zeros(p)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = _zeros(p)
        return state

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Perform one optimization step."""
        loss = _evaluated(closure)
        for group in self.param_groups:
            names = ["exp_avg", "exp_avg_sq", "step", *(["max_exp_avg_sq"] if group["amsgrad"] else [])]
            params, grads, exp_avgs, exp_avg_sqs, state_steps, *rest = self._collect(group, *names)
            if group["differentiable"] and any(step.requires_grad for step in state_steps):
                raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
            adam(
                params,
                grads,
                exp_avgs,
                exp_avg_sqs,
                rest[0] if rest else [],
                state_steps,
                amsgrad=group["amsgrad"],
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                maximize=group["maximize"],
                foreach=group["foreach"],
                capturable=group["capturable"],
                differentiable=group["differentiable"],
                fused=group["fused"],
                grad_scale=getattr(self, "grad_scale", None),
                found_inf=getattr(self, "found_inf", None),
                decoupled_weight_decay=group["decoupled_weight_decay"],
            )
        return loss


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
    _check_steps(state_steps)
    _check_scaling(fused, grad_scale, found_inf)
    if foreach and not fused:
        _check_lists(capturable, differentiable, lr=lr, beta1=beta1, beta2=beta2)
    _check_capturable(capturable and not fused, foreach, params, state_steps)
    if not params or _skips(found_inf):
        return
    operands = {"param": params, "grad": grads, "exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs}
    if amsgrad:
        operands["max_exp_avg_sq"] = max_exp_avg_sqs
    numbers = {"lr": _to_scalar(lr), "beta1": _to_scalar(beta1), "beta2": _to_scalar(beta2), "eps": eps}
    _update(
        operands,
        {"step": state_steps},
        {**numbers, "weight_decay": weight_decay, **_scale(grad_scale)},
        rounds=not fused,
        scaled=grad_scale is not None,
        maximize=maximize,
        decay=bool(weight_decay != 0),
        decoupled=decoupled_weight_decay,
        amsgrad=amsgrad,
    )


def _check_lists(capturable: bool, differentiable: bool, **numbers: float | Tensor) -> None:
    """What PyTorch's kernels over lists refuse."""
    for name, number in numbers.items():
        if isinstance(number, Tensor) and not capturable:
            kind = RuntimeError if name == "lr" else ValueError
            raise kind(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
        if isinstance(number, Tensor) and number.numel() != 1:
            raise ValueError(f"Tensor {name} must be 1-element")
    if differentiable:
        raise AssertionError("_foreach ops don't support autograd")
