"""Modules that infer the shapes of their parameters from the first input."""

from __future__ import annotations

from typing import Any

from ...autograd.grad_mode import no_grad
from ..parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Mixin for modules that infer the shapes of their parameters from the first input.

    It comes before the module class in the list of bases; `initialize_parameters` creates the parameters at the first
    call, after which the module becomes a `cls_to_become`.
    """

    cls_to_become: type[Any] | None = None

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
        # Uninitialized tensors cannot be detached.
        for name, value in (*self._parameters.items(), *self._buffers.items()):
            if value is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()

    def _lazy_load_hook(self: Any, state_dict: Any, prefix: str, *_: Any) -> None:
        """Create uninitialized parameters with the shapes in a loaded state."""
        for name, value in (*self._parameters.items(), *self._buffers.items()):
            given = state_dict.get(prefix + name)
            if given is not None and is_lazy(value) and not is_lazy(given):
                with no_grad():
                    value.materialize(given.shape)

    def initialize_parameters(self: Any, *args: Any, **kwargs: Any) -> None:
        """Create the parameters from the first input; subclasses must override it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {self.__class__.__name__}")

    def has_uninitialized_params(self: Any) -> bool:
        """Return whether any parameter or buffer is uninitialized."""
        return any(is_lazy(value) for value in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self: Any, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self: Any) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to correctly "
            "initialize the modules"
        )
