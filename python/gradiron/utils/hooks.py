"""Handles that remove hooks, and warnings about hooks that are not saved with their tensor."""

from __future__ import annotations

from .._core import RemovableHandle, Tensor, is_grad_enabled

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., object])


def unserializable_hook(f: F) -> F:
    """Mark a hook as one that is intentionally not saved with its tensor.

    Args:
        f: hook.

    Examples:
        >>> hook = torch.utils.hooks.unserializable_hook(lambda grad: grad)
    """
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Tensor) -> None:
    """Warn of the hooks of a tensor that would not be saved with it.

    Args:
        tensor: tensor.

    Examples:
        >>> torch.utils.hooks.warn_if_has_hooks(torch.ones(1))
    """
    import warnings

    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )


class BackwardHook:
    """The full backward hooks of one call of a module.

    Args:
        module: the module.
        user_hooks: hooks that get the gradients of inputs and outputs.
        user_pre_hooks: hooks that get the gradients of outputs.

    Examples:
        >>> hook = torch.utils.hooks.BackwardHook(nn.Linear(2, 1), [], [])
    """

    def __init__(self, module: Any, user_hooks: Sequence[Any], user_pre_hooks: Sequence[Any]) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.inputs: _Tensors | None = None
        self.outputs: _Tensors | None = None
        self.n_inputs = -1

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Pass the arguments through a node that calls the hooks."""
        self.n_inputs = len(args)
        self.inputs, args = _through_node(args, self._at_inputs)
        return args

    def setup_output_hook(self, result: Any) -> Any:
        """Pass the result through a node that keeps its gradients for the hooks."""
        if not isinstance(result, tuple):
            return self.setup_output_hook((result,))[0]
        self.outputs, result = _through_node(result, self._at_outputs)
        return result

    def _at_outputs(self, _: Any, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        assert self.outputs is not None
        self.grad_outputs = self.outputs.packed(grads)
        for hook in self.user_pre_hooks:
            self.grad_outputs = _checked(hook(self.module, self.grad_outputs), self.grad_outputs, "pre hook", "grad_output")
        grads = self.grad_outputs
        if self.inputs is None:
            if self.user_hooks:
                import warnings

                warnings.warn(
                    "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
                    "require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
                    "#torch.nn.Module.register_full_backward_hook for more details.",
                    stacklevel=5,
                )
            for hook in self.user_hooks:
                made = hook(self.module, (None,) * self.n_inputs, self.grad_outputs)
                if made is not None and not (isinstance(made, tuple) and all(g is None for g in made)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or None for all "
                        "gradients."
                    )
            self.grad_outputs = None
        return tuple(grads[at] for at in self.outputs.places)

    def _at_inputs(self, grads: tuple[Any, ...], _: Any) -> tuple[Any, ...] | None:
        if self.grad_outputs is None:
            return None  # the gradient came past the module's outputs
        assert self.inputs is not None
        found = self.inputs.packed(grads)
        for hook in self.user_hooks:
            found = _checked(hook(self.module, found, self.grad_outputs), found, "hook", "grad_input")
        self.grad_outputs = None
        return tuple(found[at] for at in self.inputs.places)


class _Tensors:
    """Where the tensors are among other values."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.places = [at for at, value in enumerate(values) if isinstance(value, Tensor)]
        self.count = len(values)

    def packed(self, grads: Sequence[Any]) -> tuple[Any, ...]:
        """One entry for each value: a gradient, or None for what is no tensor."""
        found: list[Any] = [None] * self.count
        for at, grad in zip(self.places, grads, strict=True):
            found[at] = grad
        return tuple(found)


def _through_node(values: tuple[Any, ...], hook: Callable[..., Any]) -> tuple[_Tensors | None, tuple[Any, ...]]:
    """The values with their tensors behind a node of their own; as they are when none of them wants a gradient."""
    from ._identity import BackwardHookFunction

    where = _Tensors(values)
    tensors = [values[at] for at in where.places]
    if not (is_grad_enabled() and any(t.requires_grad for t in tensors)):
        return None, values
    passed = BackwardHookFunction.apply(*tensors)
    next(t.grad_fn for t in passed if t.requires_grad).register_hook(hook)
    made = list(values)
    for at, value in zip(where.places, passed, strict=True):
        made[at] = value
    # A named tuple's fields come one by one.
    return where, type(values)(*made) if hasattr(values, "_fields") else type(values)(made)


def _checked(made: Any, before: tuple[Any, ...], kind: str, what: str) -> tuple[Any, ...]:
    if made is None:
        return before
    if len(made) != len(before):
        raise RuntimeError(f"Backward {kind} returned an invalid number of {what}, got {len(made)}, but expected {len(before)}")
    return tuple(made)
