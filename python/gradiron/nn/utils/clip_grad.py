"""Norms of gradients, and gradients cut down to size."""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ... import _core
from ..._core import Tensor
from ...autograd.grad_mode import no_grad

if TYPE_CHECKING:
    from ...optim._rule import Rule, Trace

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _as_list(tensors: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _grads(parameters: Tensor | Iterable[Tensor]) -> list[Any]:
    return [p.grad for p in _as_list(parameters) if p.grad is not None]


@functools.cache
def _scale() -> Rule:
    """The rule that all gradients are scaled by in one call; it comes with the optimizers, when it is first asked for."""
    from ...optim._rule import Rule

    def body(x: Trace) -> None:
        x.grad = x.grad * x.factor

    return Rule(body)


def _on(device: Any, tensor: Tensor) -> Tensor:
    # Asking is quicker than `to`, and there are many gradients.
    return tensor if tensor.device == device else tensor.to(device)


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The norm of all tensors as if they were one vector."""
    found = _as_list(tensors)
    norm_type = float(norm_type)
    if not found:
        return _core.scalar_tensor(0.0)
    with no_grad():
        first = found[0].device
        parts = [_on(first, _core.norm(t, norm_type)) for t in found]
        total = _core.norm(_core.stack(parts), norm_type)
        if error_if_nonfinite and not bool(total.isfinite()):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. "
                "To disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
            )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scales gradients of a known norm down to `max_norm`; smaller ones stay."""
    grads = _grads(parameters)
    if not grads:
        return
    with no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        devices = {grad.device for grad in grads}
        for device in devices:
            near = grads if len(devices) == 1 else [grad for grad in grads if grad.device == device]
            _scale()({"grad": near}, {}, {"factor": _on(device, factor)})


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scales gradients down to a norm of at most `max_norm`, all as one vector; returns the norm before."""
    generated = isinstance(parameters, types.GeneratorType)
    found = _as_list(parameters)
    if generated and not found:
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    total = get_total_norm(_grads(found), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(found, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """The old name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Cuts each element of the gradients to at most `clip_value`, either sign."""
    bound = float(clip_value)
    with no_grad():
        for grad in _grads(parameters):
            grad.clamp_(min=-bound, max=bound)
