"""`checkpoint_wrapper`: a module whose activations are computed anew in the backward. It is named as if it were not wrapped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

from ....autograd.graph import save_on_cpu
from ....nn.modules.module import Module
from ....nn.parameter import Parameter
from ....utils.checkpoint import checkpoint

__all__ = [
    "ActivationWrapper",
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]

_NAME = "_checkpoint_wrapped_module"
_PREFIX = _NAME + "."


class CheckpointImpl(Enum):
    """The implementation of checkpointing."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """A module around another, whose parameters and state dict it passes on under their own names."""

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(_without_prefix)
        self.register_load_state_dict_pre_hook(_with_prefix)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module[key]  # type: ignore[index]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        """The parameters, named as if the module were not wrapped."""
        for name, param in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), param


def _without_prefix(module: Module, state_dict: dict[str, Any], prefix: str, *_: Any) -> dict[str, Any]:
    for key in [key for key in state_dict if key.startswith(prefix + _PREFIX)]:
        state_dict[prefix + key[len(prefix) + len(_PREFIX) :]] = state_dict.pop(key)
    return state_dict


def _with_prefix(module: Module, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
    for key in [key for key in state_dict if key.startswith(prefix) and not key.startswith(prefix + _PREFIX)]:
        state_dict[prefix + _PREFIX + key[len(prefix) :]] = state_dict.pop(key)


class CheckpointWrapper(ActivationWrapper):
    """A module whose activations are computed anew in the backward."""

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            is_reentrant = checkpoint_impl is CheckpointImpl.REENTRANT
            self.checkpoint_fn: Callable[..., Any] = partial(checkpoint, use_reentrant=is_reentrant, **checkpoint_fn_kwargs)
        else:
            self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's forward, which keeps no activations."""
        if kwargs and self.checkpoint_impl is CheckpointImpl.REENTRANT:
            module, names = self._checkpoint_wrapped_module, list(kwargs)

            def call(*values: Any) -> Any:
                return module(*values[: len(args)], **dict(zip(names, values[len(args) :], strict=True)))

            return self.checkpoint_fn(call, *args, *kwargs.values())
        return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)


class OffloadWrapper(ActivationWrapper):
    """A module whose activations wait in host memory for the backward."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's forward."""
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Module:
    """The module, whose activations are computed anew in the backward."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def offload_wrapper(module: Module) -> Module:
    """The module, whose activations wait in host memory for the backward."""
    return OffloadWrapper(module)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True,
    auto_wrap_policy: Callable[..., bool] | None = None,
) -> None:
    """Wraps the modules inside a model that `check_fn` accepts, in place; or those that a policy of `fsdp.wrap` chooses."""
    if auto_wrap_policy is not None:
        _wrap_by_policy(model, auto_wrap_policy, checkpoint_wrapper_fn)
        return
    for name, child in model.named_children():
        apply_activation_checkpointing(child, checkpoint_wrapper_fn, check_fn)
        if check_fn(child):
            setattr(model, name, checkpoint_wrapper_fn(child))


def _wrap_by_policy(module: Module, policy: Callable[..., bool], wrapper: Callable[[Module], Module]) -> int:
    """The number of elements that have been wrapped."""
    wrapped = 0
    for name, child in module.named_children():
        numel = sum(param.numel() for param in child.parameters())
        inside = 0
        if policy(module=child, recurse=True, nonwrapped_numel=numel):
            inside = _wrap_by_policy(child, policy, wrapper)
        if policy(module=child, recurse=False, nonwrapped_numel=numel - inside):
            setattr(module, name, wrapper(child))
            inside = numel
        wrapped += inside
    return wrapped
