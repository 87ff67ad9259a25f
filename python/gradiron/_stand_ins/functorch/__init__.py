"""The package `functorch`, which PyTorch brings beside itself: `torch.func` by its older names.

Under the launcher and `as_torch`, `import functorch` finds it.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Sequence
from typing import Any

from gradiron import Tensor
from gradiron.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)
from gradiron.nn import Module
from gradiron.version import __version__ as __version__

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "make_fx",
    "vjp",
    "vmap",
]


def __getattr__(name: str) -> Any:
    if name == "make_fx":
        return importlib.import_module("gradiron.fx.experimental.proxy_tensor").make_fx
    raise AttributeError(f"module 'functorch' has no attribute '{name}'")


class _Stateless(Module):
    """A copy of a module that is called with its tensors."""

    def __init__(self, model: Module) -> None:
        super().__init__()
        # Inside of a tuple the module is no child: this one has no tensors of its own.
        self._template = (_without_tensors(model),)
        self._names = [name for name, _ in model.named_parameters()]
        self._buffers_named = [name for name, _ in model.named_buffers()]

    def _run(self, params: Sequence[Tensor], buffers: Sequence[Tensor], args: Any, kwargs: Any) -> Any:
        state = dict(zip([*self._names, *self._buffers_named], [*params, *buffers], strict=True))
        return functional_call(self._template[0], state, args, kwargs)


def _without_tensors(model: Module) -> Module:
    """A copy of a module of which the tensors take no memory."""
    return copy.deepcopy(model).to("meta")


def _values(model: Module, disable_autograd_tracking: bool) -> tuple[Tensor, ...]:
    params = tuple(copy.deepcopy(model).parameters())
    if disable_autograd_tracking:
        for parameter in params:
            parameter.requires_grad_(False)
    return params


class FunctionalModule(_Stateless):
    """A module without buffers that is called as `module(params, *args)`; `make_functional` makes it.

    Args:
        model: module to copy.

    Examples:
        >>> import gradiron.functorch as functorch
        >>> isinstance(functorch.make_functional(nn.Linear(2, 1))[0], functorch.FunctionalModule)
        True
    """

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """Call the module with these parameters."""
        return self._run(params, (), args, kwargs)


class FunctionalModuleWithBuffers(_Stateless):
    """A module that is called as `module(params, buffers, *args)`; `make_functional_with_buffers` makes it.

    Args:
        model: module to copy.

    Examples:
        >>> import gradiron.functorch as functorch
        >>> f, params, buffers = functorch.make_functional_with_buffers(nn.BatchNorm1d(2))
        >>> isinstance(f, functorch.FunctionalModuleWithBuffers), len(params), len(buffers)
        (True, 2, 3)
    """

    def forward(self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """Call the module with these parameters and buffers."""
        return self._run(params, buffers, args, kwargs)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """Return a module's call as a function of its parameters, and copies of these.

    Args:
        model: module without buffers.
        disable_autograd_tracking: give parameters that require no gradient. Default: `False`

    Examples:
        >>> import gradiron.functorch as functorch
        >>> f, params = functorch.make_functional(nn.Linear(2, 1))
        >>> f(params, torch.ones(3, 2)).shape
        torch.Size([3, 1])
    """
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    return FunctionalModule(model), _values(model, disable_autograd_tracking)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return a module's call as a function of its parameters and buffers, and copies of these.

    Args:
        model: module.
        disable_autograd_tracking: give parameters that require no gradient. Default: `False`

    Examples:
        >>> import gradiron.functorch as functorch
        >>> f, params, buffers = functorch.make_functional_with_buffers(nn.BatchNorm1d(2))
        >>> f(params, buffers, torch.ones(3, 2)).shape
        torch.Size([3, 2])
    """
    params = _values(model, disable_autograd_tracking)
    return FunctionalModuleWithBuffers(model), params, tuple(copy.deepcopy(model).buffers())


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return the call of modules of one kind as a function of their tensors, and these, stacked for `vmap`.

    Args:
        models: modules of the same class, all in training or all in evaluation mode.

    Examples:
        >>> import gradiron.functorch as functorch
        >>> f, params, buffers = functorch.combine_state_for_ensemble([nn.Linear(2, 1) for _ in range(4)])
        >>> functorch.vmap(f, in_dims=(0, 0, None))(params, buffers, torch.ones(3, 2)).shape
        torch.Size([4, 3, 1])
    """
    models = list(models)
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if any(model.training != models[0].training for model in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    params, buffers = stack_module_state(models)
    return FunctionalModuleWithBuffers(models[0]), tuple(params.values()), tuple(buffers.values())
