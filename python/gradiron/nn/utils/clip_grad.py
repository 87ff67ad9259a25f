"""Gradient norms and gradient clipping."""

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
    """Return the rule that scales all gradients in one call; it is imported on demand, with the optimizers."""
    from ...optim._rule import Rule

    def body(x: Trace) -> None:
        x.grad = x.grad * x.factor

    return Rule(body)


def _on(device: Any, tensor: Tensor) -> Tensor:
    # The comparison is faster than `to`, and there are many gradients.
    return tensor if tensor.device == device else tensor.to(device)


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Compute the norm of several tensors as if they were concatenated into one vector.

    Args:
        tensors: the tensors, or a single one.
        norm_type: exponent of the norm, `float("inf")` for the maximum. Default: `2.0`
        error_if_nonfinite: whether to raise an error if the norm is infinite or NaN. Default: `False`
        foreach: has no effect.

    Examples:
        >>> nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
        tensor(5.)
    """
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
    """Scale gradients in place by `max_norm / total_norm`, if that is below 1.

    Args:
        parameters: the parameters, or a single one.
        max_norm: largest norm allowed.
        total_norm: norm of all gradients, as `get_total_norm` returns it.
        foreach: has no effect.

    Examples:
        >>> weight = torch.zeros(2, requires_grad=True)
        >>> weight.grad = torch.tensor([3.0, 4.0])
        >>> nn.utils.clip_grads_with_norm_(weight, 1.0, torch.tensor(5.0))
        >>> weight.grad
        tensor([0.6000, 0.8000])
    """
    grads = _grads(parameters)
    if not grads:
        return
    with no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        # Sparse gradients are scaled by way of their values.
        grads = [grad._values() if grad.is_sparse else grad for grad in grads]
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
    """Clip the norm of all gradients together: scale them in place so that it is at most `max_norm`.

    Args:
        parameters: the parameters, or a single one.
        max_norm: largest norm allowed.
        norm_type: exponent of the norm, `float("inf")` for the maximum. Default: `2.0`
        error_if_nonfinite: whether to raise an error if the norm is infinite or NaN. Default: `False`
        foreach: has no effect.

    Returns:
        The norm before clipping.

    Examples:
        >>> weight = torch.zeros(2, requires_grad=True)
        >>> weight.grad = torch.tensor([3.0, 4.0])
        >>> nn.utils.clip_grad_norm_(weight, max_norm=1.0)
        tensor(5.)
    """
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
    """Deprecated name of `clip_grad_norm_`.

    Args:
        parameters: the parameters, or a single one.
        max_norm: largest norm allowed.
        norm_type: exponent of the norm, `float("inf")` for the maximum. Default: `2.0`
        error_if_nonfinite: whether to raise an error if the norm is infinite or NaN. Default: `False`
        foreach: has no effect.

    Returns:
        The norm before clipping.

    Examples:
        >>> weight = torch.zeros(2, requires_grad=True)
        >>> weight.grad = torch.tensor([3.0, 4.0])
        >>> nn.utils.clip_grad_norm(weight, max_norm=1.0)
        tensor(5.)
    """
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamp all elements of the gradients to `[-clip_value, clip_value]` in place.

    Args:
        parameters: the parameters, or a single one.
        clip_value: largest absolute value allowed.
        foreach: has no effect.

    Examples:
        >>> weight = torch.zeros(2, requires_grad=True)
        >>> weight.grad = torch.tensor([3.0, -0.5])
        >>> nn.utils.clip_grad_value_(weight, 1.0)
        >>> weight.grad
        tensor([ 1.0000, -0.5000])
    """
    bound = float(clip_value)
    with no_grad():
        for grad in _grads(parameters):
            grad.clamp_(min=-bound, max=bound)
