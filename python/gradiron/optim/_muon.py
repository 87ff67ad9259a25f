"""Muon: momentum that is orthogonalized, for the weight matrices of hidden layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

import gradiron as torch

from .._core import Tensor
from ._declared import DeclaredOptimizer, Lists, Options
from .optimizer import ParamsT, _to_scalar

__all__ = ["Muon", "muon"]

EPS = 1e-7
DEFAULT_A, DEFAULT_B, DEFAULT_C = 3.4445, -4.7750, 2.0315
DEFAULT_NS_STEPS = 5

_RATIOS: dict[str, Callable[[int, int], float]] = {
    "original": lambda rows, columns: math.sqrt(max(1, rows / columns)),
    "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
    "spectral_unclamped": lambda rows, columns: math.sqrt(rows / columns),
}


def _zeropower_via_newtonschulz(grad: Tensor, ns_coefficients: tuple[float, float, float], ns_steps: int, eps: float) -> Tensor:
    """A matrix with the singular vectors of `grad` and singular values near 1, by a few rounds of a polynomial."""
    if ns_steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if grad.dim() != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(ns_coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = ns_coefficients
    tall = grad.size(0) > grad.size(1)
    x = grad.to(dtype=torch.bfloat16, copy=True)
    x = x.T if tall else x
    x.div_(x.norm().clamp(min=eps))
    for _ in range(ns_steps):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def _adjust_lr(lr: Any, adjust_lr_fn: str | None, param_shape: Sequence[int]) -> Any:
    """The rate for a matrix of this shape."""
    ratio = _RATIOS.get("original" if adjust_lr_fn is None else adjust_lr_fn)
    return lr * (1.0 if ratio is None else ratio(*param_shape[:2]))


def _first_buffer(p: Tensor, group: Options) -> Tensor:
    if p.is_complex():
        raise RuntimeError("Muon does not support complex parameters")
    return torch.zeros_like(cast(Tensor, p.grad), memory_format=torch.preserve_format)


class Muon(DeclaredOptimizer):
    """Muon: SGD with momentum whose update matrices are orthogonalized by Newton-Schulz iterations.

    It takes 2-D parameters only; optimize biases, embeddings and the like with `AdamW`.

    Args:
        params: matrices, pairs of names and matrices, or dicts that define parameter groups.
        lr: learning rate. Default: `1e-3`
        weight_decay: share by which the parameters shrink, times `lr`, in each step. Default: `0.1`
        momentum: decay rate of the running average of gradients. Default: `0.95`
        nesterov: use Nesterov momentum. Default: `True`
        ns_coefficients: coefficients of the Newton-Schulz polynomial. Default: `(3.4445, -4.775, 2.0315)`
        eps: smallest norm by which an update is divided. Default: `1e-7`
        ns_steps: number of Newton-Schulz iterations. Default: `5`
        adjust_lr_fn: how `lr` depends on the shape: `"original"` (also `None`), `"match_rms_adamw"` or
            `"spectral_unclamped"`.

    Raises:
        ValueError: if a parameter is not a matrix.

    Examples:
        >>> model = nn.Linear(20, 10, bias=False)
        >>> optimizer = torch.optim.Muon(model.parameters(), lr=0.02)
        >>> model(torch.ones(4, 20)).mean().backward()
        >>> optimizer.step()
    """

    _STATE: ClassVar = {"momentum_buffer": _first_buffer}
    _COUNTS = ()
    _OPTIONS = "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn".split()

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (DEFAULT_A, DEFAULT_B, DEFAULT_C),
        eps: float = EPS,
        ns_steps: int = DEFAULT_NS_STEPS,
        adjust_lr_fn: str | None = None,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not 0.0 <= momentum:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn is not None and adjust_lr_fn not in _RATIOS:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, self._chosen_options(locals()))
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}")

    @classmethod
    def _check_arguments(cls, params: list[Tensor], lists: Lists, options: Options) -> None:
        """The functional form has checked its arguments itself."""

    @classmethod
    def _apply_rule(cls, params: list[Tensor], grads: list[Tensor], lists: Lists, options: Options) -> None:
        rate, momentum = _to_scalar(options["lr"]), options["momentum"]
        polynomial = options["ns_coefficients"], options["ns_steps"], options["eps"]
        for param, grad, buffer in zip(params, grads, lists["momentum_buffer"], strict=True):
            if grad.dim() != 2:
                raise ValueError("Param gradient must be a 2D matrix")
            buffer.lerp_(grad, 1 - momentum)
            update = grad.lerp(buffer, momentum) if options["nesterov"] else buffer
            update = _zeropower_via_newtonschulz(update, *polynomial)
            param.mul_(1 - rate * options["weight_decay"])
            param.add_(update, alpha=-_adjust_lr(rate, options["adjust_lr_fn"], param.shape))


def muon(
    params: list[Tensor],
    grads: list[Tensor],
    muon_momentum_bufs: list[Tensor],
    *,
    foreach: bool | None = None,
    lr: float | Tensor,
    weight_decay: float,
    momentum: float,
    nesterov: bool,
    ns_coefficients: tuple[float, float, float],
    ns_steps: int,
    eps: float,
    adjust_lr_fn: str | None,
    has_complex: bool,
) -> None:
    """Perform one `Muon` step over lists of tensors."""
    if foreach:
        raise RuntimeError("Foreach is not supported for Muon yet")
    if has_complex:
        raise ValueError("Complex parameters are not supported")
    Muon._functional(locals(), momentum_buffers=muon_momentum_bufs)
