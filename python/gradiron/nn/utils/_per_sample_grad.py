"""Gradients of each sample of a batch, in `grad_sample` of the parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..._core import Tensor
from ...autograd.function import Function
from ...func import functional_call, vmap
from ...utils import _pytree as tree
from ..modules.module import Module
from ..modules.rnn import RNNBase

__all__ = ["call_for_per_sample_grads"]


class _ForEachSample(Function):
    """Gives each sample its own copy of a parameter, and keeps the gradients of the copies instead of their sum."""

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, count: int, scale: int) -> Tensor:
        ctx.parameter, ctx.scale = parameter, scale
        return parameter.detach().expand(count, *parameter.shape)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (grad,) = grads
        grad = grad * ctx.scale
        before = getattr(ctx.parameter, "grad_sample", None)
        ctx.parameter.grad_sample = grad if before is None else before + grad
        return None, None, None


def _batch_size(values: Any, dim: int) -> int:
    """The batch size that all tensors among the arguments have."""
    found: int | None = None
    for value in tree.flatten(values)[0]:
        if not isinstance(value, Tensor):
            continue
        size = value.shape[dim]
        if found is not None and size != found:
            raise RuntimeError(
                f"When computing batch size, found at least one input with batch size {found} and one with batch size {size}. "
                "Please specify it explicitly using the batch size kwarg in call_for_per_sample_grads"
            )
        found = size
    if found is None:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so ExpandedWeights cannot "
            "compute the batch size from the inputs. Please specify it explicitly"
        )
    return found


def _check_clear(parameter: Tensor) -> None:
    if getattr(parameter, "grad_sample", None) is not None:
        raise RuntimeError(
            "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple calls without clearing "
            f"gradients. Please clear out the grad_sample parameter of {parameter} or post an issue to pytorch/pytorch to "
            "prioritize correct behavior"
        )


def call_for_per_sample_grads(
    module: Module, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> Callable[..., Any]:
    """Return a module's call after which `backward` leaves a gradient for each sample in `grad_sample` of the parameters.

    Their `grad` stays as it is.

    Args:
        module: module of which the parameters get `grad_sample`.
        batch_size: number of samples; the size of the tensors among the arguments if `None`.
        loss_reduction: `"mean"` if the loss is divided by the batch size, which the gradients of the samples undo.
            Default: `"sum"`
        batch_first: whether the samples lie along the first dimension, rather than along the second. Default: `True`

    Examples:
        >>> from gradiron.nn.utils._per_sample_grad import call_for_per_sample_grads
        >>> model = nn.Linear(3, 2)
        >>> call_for_per_sample_grads(model)(torch.ones(5, 3)).sum().backward()
        >>> model.weight.grad_sample.shape
        torch.Size([5, 2, 3])
    """
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    dim = 0 if batch_first else 1
    for parameter in module.parameters():
        _check_clear(parameter)

    @functools.wraps(module.forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(part, RNNBase) for part in module.modules()):
            raise RuntimeError("call_for_per_sample_grads does not run recurrent modules: write them with nn.Linear")
        count = _batch_size((args, kwargs), dim) if batch_size is None else batch_size
        scale = count if loss_reduction == "mean" else 1
        own = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
        for parameter in own.values():
            _check_clear(parameter)
        copies = {name: _ForEachSample.apply(parameter, count, scale) for name, parameter in own.items()}
        leaves, structure = tree.flatten((args, kwargs))
        dims = [dim if isinstance(leaf, Tensor) and leaf.dim() > dim and leaf.shape[dim] == count else None for leaf in leaves]

        def sample(parameters: dict[str, Tensor], *parts: Any) -> Any:
            # The module sees a batch of one.
            whole = [part if d is None else part.unsqueeze(d) for part, d in zip(parts, dims, strict=True)]
            own_args, own_kwargs = tree.unflatten(whole, structure)
            return tree.map_leaves(lambda out: out.squeeze(dim), functional_call(module, parameters, own_args, own_kwargs))

        return vmap(sample, (0, *dims), dim, randomness="different")(copies, *leaves)

    return call
