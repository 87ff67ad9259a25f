"""Hooks of modules: the global ones, and calls with all hooks that apply."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..._core import RemovableHandle, Tensor
from ...utils.hooks import BackwardHook

Hooks = OrderedDict[int, Callable[..., Any]]

# What every module has in common. Forward hooks have marks of their own, by the same numbers.
_global_buffer_registration_hooks: Hooks = OrderedDict()
_global_module_registration_hooks: Hooks = OrderedDict()
_global_parameter_registration_hooks: Hooks = OrderedDict()
_global_backward_pre_hooks: Hooks = OrderedDict()
_global_backward_hooks: Hooks = OrderedDict()
_global_is_full_backward_hook: bool | None = None
_global_forward_pre_hooks: Hooks = OrderedDict()
_global_forward_hooks: Hooks = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()


class _WrappedHook:
    """A hook with an optional weak reference to its module."""

    def __init__(self, hook: Callable[..., Any], module: Any = None) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


def add(hooks: Any, hook: Any, prepend: bool = False, marks: Any = ()) -> RemovableHandle:
    """Append a hook; `marks` are pairs of a dictionary of marked hooks and whether to mark this one there."""
    handle = RemovableHandle(hooks, extra_dict=[extra for extra, _ in marks])
    hooks[handle.id] = hook
    for extra, wanted in marks:
        if wanted:
            extra[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def replaced(hooks: Hooks, module: Any, name: str, value: Any) -> Any:
    """Return the value to register after the registration hooks have run."""
    for hook in hooks.values():
        other = hook(module, name, value)
        if other is not None:
            value = other
    return value


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register a hook for new buffers of all modules: `hook(module, name, buffer)` may return a replacement.

    Args:
        hook: the hook.

    Returns:
        A handle whose `remove` removes the hook.
    """
    return add(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register a hook for new children of all modules: `hook(module, name, child)` may return a replacement.

    Args:
        hook: the hook.

    Returns:
        A handle whose `remove` removes the hook.
    """
    return add(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register a hook for new parameters of all modules: `hook(module, name, param)` may replace them.

    Args:
        hook: the hook.

    Returns:
        A handle whose `remove` removes the hook.
    """
    return add(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register a hook that runs before the forward of every module: `hook(module, args)`.

    It may return new arguments.

    Args:
        hook: the hook.

    Returns:
        A handle whose `remove` removes the hook.
    """
    return add(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Register a hook that runs after the forward of every module: `hook(module, args, output)`.

    It may return a new output.

    Args:
        hook: the hook.
        with_kwargs: whether the hook gets the keyword arguments after `args`. Default: `False`
        always_call: whether it runs even if `forward` raises an error. Default: `False`

    Returns:
        A handle whose `remove` removes the hook.
    """
    marks = ((_global_forward_hooks_with_kwargs, with_kwargs), (_global_forward_hooks_always_called, always_call))
    return add(_global_forward_hooks, hook, marks=marks)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register a hook that runs before the backward of every module: `hook(module, grad_output)`.

    It may return new gradients of the outputs.

    Args:
        hook: the hook.

    Returns:
        A handle whose `remove` removes the hook.
    """
    return add(_global_backward_pre_hooks, hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register a deprecated backward hook of every module, which sees only the last operation of `forward`.

    Use `register_module_full_backward_hook` instead.

    Args:
        hook: the hook.

    Returns:
        A handle whose `remove` removes the hook.
    """
    return _add_global_backward(hook, False)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register a hook that runs after the backward of every module.

    `hook(module, grad_input, grad_output)` may return new gradients of the inputs.

    Args:
        hook: the hook.

    Returns:
        A handle whose `remove` removes the hook.
    """
    return _add_global_backward(hook, True)


def _add_global_backward(hook: Callable[..., Any], full: bool) -> RemovableHandle:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one of "
            "them."
        )
    _global_is_full_backward_hook = full
    return add(_global_backward_hooks, hook)


def backward_hooks(module: Any) -> tuple[list[Any], list[Any]]:
    """Return the full backward hooks that apply to a module, and the deprecated ones."""
    kinds: dict[bool | None, list[Any]] = {True: [], False: [], None: []}
    kinds[_global_is_full_backward_hook] += _global_backward_hooks.values()
    kinds[module._is_full_backward_hook] += module._backward_hooks.values()
    return kinds[True], kinds[False]


def call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the forward of a module with all hooks that apply; hooks with `always_call` run even if it fails."""
    done: set[int] = set()
    seen = [args, kwargs, None]  # what is known so far, for the hooks that run after an error
    try:
        return _call(module, seen, done)
    except Exception:
        _after_failure(module, seen, done)
        raise


def _call(module: Any, seen: list[Any], done: set[int]) -> Any:
    pre = [*_global_backward_pre_hooks.values(), *module._backward_pre_hooks.values()]
    full, old = backward_hooks(module)
    for number, hook in [*_global_forward_pre_hooks.items(), *module._forward_pre_hooks.items()]:
        _before(module, hook, number in module._forward_pre_hooks_with_kwargs, seen)
    around = BackwardHook(module, full, pre) if full or pre else None
    if around is not None:
        seen[0] = around.setup_input_hook(seen[0])
    seen[2] = module.forward(*seen[0], **seen[1])
    for hooks, always, with_kwargs in _forward_hooks(module):
        for number, hook in list(hooks.items()):
            if number in always:
                done.add(number)
            _after(module, hook, number in with_kwargs, seen)
    if around is not None:
        if not isinstance(seen[2], (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(seen[2])}",
                stacklevel=4,
            )
        seen[2] = around.setup_output_hook(seen[2])
    if old:
        _hang_on_node(module, old, seen[0], seen[2])
    return seen[2]


def _forward_hooks(module: Any) -> Any:
    yield _global_forward_hooks, _global_forward_hooks_always_called, _global_forward_hooks_with_kwargs
    yield module._forward_hooks, module._forward_hooks_always_called, module._forward_hooks_with_kwargs


def _before(module: Any, hook: Any, with_kwargs: bool, seen: list[Any]) -> None:
    if not with_kwargs:
        new = hook(module, seen[0])
        if new is not None:
            seen[0] = new if isinstance(new, tuple) else (new,)
        return
    new = hook(module, seen[0], seen[1])
    if new is None:
        return
    if not (isinstance(new, tuple) and len(new) == 2):
        raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {new}.")
    seen[:2] = new


def _after(module: Any, hook: Any, with_kwargs: bool, seen: list[Any]) -> None:
    args, kwargs, result = seen
    new = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
    if new is not None:
        seen[2] = new


def _after_failure(module: Any, seen: list[Any], done: set[int]) -> None:
    for at, (hooks, always, with_kwargs) in enumerate(_forward_hooks(module)):
        for number, hook in list(hooks.items()):
            if number not in always or number in done:
                continue
            try:
                _after(module, hook, number in with_kwargs, seen)
            except Exception as error:
                which = "module" if at else "global module"
                warnings.warn(
                    f"{which} forward hook with ``always_call=True`` raised an exception that was silenced as another error "
                    f"was raised in forward: {error}",
                    stacklevel=4,
                )


def _hang_on_node(module: Any, hooks: list[Any], args: Any, result: Any) -> None:
    """Attach deprecated backward hooks to the autograd node of the first output tensor."""
    first = result
    while not isinstance(first, Tensor):
        first = next(v for v in first.values() if isinstance(v, Tensor)) if isinstance(first, dict) else first[0]
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(_WrappedHook(hook, module))
    message = _missed(args, result, node)
    if message is not None:
        warnings.warn(message, FutureWarning, stacklevel=5)


def _missed(args: Any, result: Any, node: Any) -> str | None:
    """Return what a deprecated backward hook will not see, if anything."""
    advice = "Please use register_full_backward_hook to get the documented behavior."
    values = _as_tensors(result)
    if values is None:
        return (
            "Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors is "
            f"deprecated and will be removed in future versions. This hook will be missing some of the grad_output. {advice}"
        )
    inputs = _as_tensors(args)
    if inputs is None:
        return (
            "Using non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of Tensors is "
            f"deprecated and will be removed in future versions. This hook will be missing some of the grad_input. {advice}"
        )
    ends = {t.grad_fn for t in values if t.grad_fn is not None}
    if len(ends) > 1:
        return (
            "Using a non-full backward hook when outputs are generated by different autograd Nodes is deprecated and will be "
            f"removed in future versions. This hook will be missing some grad_output. {advice}"
        )
    if node not in ends:
        return (
            "Using a non-full backward hook when outputs are nested in python data structure is deprecated and will be "
            "removed in future versions. This hook will be missing some grad_output."
        )
    if {t.grad_fn for t in inputs if t.grad_fn is not None} != {edge[0] for edge in node.next_functions}:
        return (
            "Using a non-full backward hook when the forward contains multiple autograd Nodes is deprecated and will be "
            f"removed in future versions. This hook will be missing some grad_input. {advice}"
        )
    return None


def _as_tensors(values: Any) -> tuple[Tensor, ...] | None:
    values = (values,) if isinstance(values, Tensor) else values
    return values if isinstance(values, tuple) and all(isinstance(v, Tensor) for v in values) else None
