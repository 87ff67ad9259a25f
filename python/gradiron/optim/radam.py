"""RAdam: Adam that rectifies the variance of its step size."""

from __future__ import annotations

from typing import Any, ClassVar

from .._core import Tensor
from ._declared import DeclaredOptimizer, Options, check_options, count, zeros
from ._rule import Rule, Trace
from .optimizer import ParamsT

__all__ = ["RAdam", "radam"]


@Rule
def _update(x: Trace, *, maximize: bool, decay: bool, decoupled: bool) -> None:
    x.step = x.step + 1
    step = x.step.item()
    grad = -x.grad if maximize else x.grad
    if decay and decoupled:
        x.param = x.param * (1 - x.lr * x.weight_decay)
    elif decay:
        grad = grad.add(x.param, alpha=x.weight_decay)
    x.exp_avg = x.exp_avg.lerp(grad, 1 - x.beta1)
    x.exp_avg_sq = (x.exp_avg_sq * x.beta2).addcmul(grad, grad, value=1 - x.beta2)
    bias2 = 1 - x.beta2**step
    # The length of the simple moving average that the second moment corresponds to: in the limit, and at this step.
    longest = 2 / (1 - x.beta2) - 1
    length = longest - 2 * step * x.beta2**step / bias2
    share = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    plain = x.exp_avg / (1 - x.beta1**step) * x.lr
    adaptive = plain * (1 / (x.exp_avg_sq.sqrt() + x.eps) * bias2**0.5) * share.maximum(0.0) ** 0.5
    x.param = x.param.add((length > 5.0).where(adaptive, plain), alpha=-1.0)


class RAdam(DeclaredOptimizer):
    """RAdam: rectified Adam, which ignores the second moment until enough gradients were averaged.

    The first steps (five with the default betas) use the first moment alone; later steps are scaled by a factor that
    corrects for the variance of the estimate.

    Args:
        params: parameters, pairs of names and parameters, or dicts that define parameter groups.
        lr: learning rate. Default: `1e-3`
        betas: decay rates of the first and the second moment estimate. Default: `(0.9, 0.999)`
        eps: term added to the denominator for numerical stability. Default: `1e-8`
        weight_decay: weight of the L2 penalty. Default: `0`
        decoupled_weight_decay: shrink the parameters as `AdamW` does, without changing the gradients. Default: `False`
        foreach: update all parameters in one call; chosen automatically if `None`.
        maximize: maximize the objective instead of minimizing it. Default: `False`
        capturable: keep step counts on the parameters' device, so that a step can be captured. Default: `False`
        differentiable: let gradients flow through `step`. Default: `False`

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> optimizer = torch.optim.RAdam(model.parameters())
        >>> model(torch.ones(4, 2)).mean().backward()
        >>> optimizer.step()
    """

    _RULE = _update
    _STATE: ClassVar = {"step": count, "exp_avg": zeros, "exp_avg_sq": zeros}
    _NUMBERS = "lr beta1 beta2 eps weight_decay".split()
    _OPTIONS = "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable".split()
    _ADDED: ClassVar = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }
    _PAIRS: ClassVar = {"betas": ("beta1", "beta2")}

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        super().__init__(params, self._chosen_options(locals()))

    @staticmethod
    def _rule_flags(options: Options) -> dict[str, Any]:
        return {
            "maximize": options["maximize"],
            "decay": options["weight_decay"] != 0,
            "decoupled": options["decoupled_weight_decay"],
        }


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
) -> None:
    """Perform one `RAdam` step over lists of tensors."""
    RAdam._functional(locals())
