"""`Module`, the base class of all layers and models."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ... import __future__ as future
from ... import _core
from ..._core import RemovableHandle, Tensor
from ..._tensor import parse_to
from ..._types import typename
from ...autograd.grad_mode import no_grad
from ...utils import swap_tensors
from ..parameter import Buffer, Parameter
from . import _hooks, _state
from ._hooks import (
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_buffer_registration_hooks,
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _global_forward_pre_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    _WrappedHook,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._state import EXTRA_STATE as _EXTRA_STATE_KEY_SUFFIX
from ._state import _IncompatibleKeys

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

T = TypeVar("T", bound="Module")

# The dictionaries of hooks that every module has, each ordered and empty at first.
_HOOKS = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def _has_any_global_hook() -> Any:
    return (
        _global_backward_pre_hooks
        or _global_backward_hooks
        or _global_forward_pre_hooks
        or _global_forward_hooks
        or _global_forward_hooks_always_called
        or _global_forward_hooks_with_kwargs
    )


def _addindent(text: str, spaces: int) -> str:
    """Indent all lines but the first."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line if line.strip() else "" for line in rest)])


def _forward_unimplemented(self: Module, *input: Any) -> None:
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module:
    """Base class of all neural network modules.

    Subclasses define `forward`, and call `super().__init__()` before they assign attributes. Parameters, buffers and
    modules that are assigned as attributes are registered, so that methods such as `parameters`, `to`, `state_dict`
    and `train` reach them.

    Attributes:
        training: whether the module is in training mode, as set by `train` and `eval`.

    Examples:
        >>> class Model(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = nn.Linear(4, 2)
        ...     def forward(self, x):
        ...         return self.layer(x).relu()
        >>> model = Model()
        >>> model(torch.randn(3, 4)).shape
        torch.Size([3, 2])
        >>> [name for name, _ in model.named_parameters()]
        ['layer.weight', 'layer.bias']
    """

    dump_patches: bool = False
    # Saved in the metadata of a state dict, so that `_load_from_state_dict` can convert old versions.
    _version: int = 1
    # Whether `__init__` calls that of the next class, for multiple inheritance.
    call_super_init: bool = False
    _compiled_call_impl: Callable[..., Any] | None = None

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Module | None]
    _is_full_backward_hook: bool | None
    _backward_pre_hooks: OrderedDict[int, Any]
    _backward_hooks: OrderedDict[int, Any]
    _forward_hooks: OrderedDict[int, Any]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: OrderedDict[int, Any]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _state_dict_hooks: OrderedDict[int, Any]
    _state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_post_hooks: OrderedDict[int, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
            if args:
                raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        object.__setattr__(self, "training", True)
        own = self.__dict__
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_is_full_backward_hook"] = None
        for name in _HOOKS:
            own[name] = OrderedDict()
        own["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = _forward_unimplemented

    # Calls.

    def _wrapped_call_impl(self, *args: Any, **kwargs: Any) -> Any:
        if not (
            self._backward_hooks
            or self._backward_pre_hooks
            or self._forward_hooks
            or self._forward_pre_hooks
            or _global_backward_pre_hooks
            or _global_backward_hooks
            or _global_forward_hooks
            or _global_forward_pre_hooks
            or self._compiled_call_impl
        ):
            return self.forward(*args, **kwargs)  # the usual case
        return (self._compiled_call_impl or self._call_impl)(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return _hooks.call(self, args, kwargs)

    __call__: Callable[..., Any] = _wrapped_call_impl

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile this module: later calls go through `compile` with the same arguments."""
        package: Any = importlib.import_module("gradiron")
        self._compiled_call_impl = package.compile(self._call_impl, *args, **kwargs)

    # Registration.

    def _check_name(self, kind: str, name: Any, store: Mapping[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if kind == "module" and hasattr(self, name) and name not in store:  # first, as in PyTorch
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in store:
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer: a tensor that moves with the module but is no parameter.

        Args:
            name: name of the attribute.
            tensor: the tensor, or `None` for a buffer that is absent.
            persistent: whether it is part of `state_dict`. Default: `True`
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)")
        self._buffers[name] = _hooks.replaced(_global_buffer_registration_hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter under a name.

        Args:
            name: name of the attribute.
            param: the parameter, or `None` for one that is absent.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To express "
                f"'{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = _hooks.replaced(_global_parameter_registration_hooks, self, name, param)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child module under a name.

        Args:
            name: name of the attribute.
            module: the module, or `None` for one that is absent.
        """
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = _hooks.replaced(_global_module_registration_hooks, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a child module under a name, as `add_module`."""
        self.add_module(name, module)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for store in ("_parameters", "_buffers", "_modules"):
            found = own.get(store)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        params = own.get("_parameters")
        if isinstance(value, Tensor) and isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, own, self._buffers, self._modules)
            self.register_parameter(name, value)
            return
        if params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
            return
        modules = own.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, own, self._parameters, self._buffers)
            modules[name] = _hooks.replaced(_global_module_registration_hooks, self, name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            modules[name] = _hooks.replaced(_global_module_registration_hooks, self, name, value)
        elif name in own.get("_buffers", ()) or (isinstance(value, Tensor) and isinstance(value, Buffer)):
            self._set_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _forget(self, name: str, *stores: dict[str, Any]) -> None:
        for store in stores:
            store.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            persistent = value.persistent  # type: ignore[attr-defined]
        else:
            persistent = name not in self._non_persistent_buffers_set
        known = getattr(self.register_buffer, "__func__", None) is Module.register_buffer
        if known or "persistent" in inspect.signature(self.register_buffer).parameters:
            self.register_buffer(name, value, persistent)
            return
        if not persistent:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without the "
                "persistent argument is not allowed."
            )
        self.register_buffer(name, value)

    def __delattr__(self, name: str) -> None:
        for store in (self._parameters, self._buffers, self._modules):
            if name in store:
                del store[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    # Access by dotted names.

    def get_submodule(self, target: str) -> Module:
        """Return the module under a dotted path such as `"encoder.layers.0"`.

        Raises:
            AttributeError: if there is none.
        """
        module = self
        for part in target.split(".") if target else ():
            if not hasattr(module, part):
                raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
            module = getattr(module, part)
            if not isinstance(module, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replace the module under a dotted path, or add it.

        Args:
            target: dotted path.
            module: the new module.
            strict: whether there must already be a module. Default: `False`
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if hasattr(parent, name):
            if not isinstance(getattr(parent, name), Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        elif strict:
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter under a dotted path.

        Raises:
            AttributeError: if there is none.
        """
        found = self._find(target)[1]
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{target.rpartition('.')[2]}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer under a dotted path.

        Raises:
            AttributeError: if there is none.
        """
        owner, found = self._find(target)
        name = target.rpartition(".")[2]
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    def _find(self, target: str) -> tuple[Module, Any]:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        return owner, getattr(owner, name)

    # Conversion of all tensors.

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """Replace all parameters, their gradients and all buffers by the results of `fn`."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        swap = future.get_swap_module_params_on_conversion()
        renew = future.get_overwrite_module_params_on_conversion()
        for name, param in self._parameters.items():
            if param is None:
                continue
            with no_grad():
                made = fn(param)
            if swap:
                self._swap_in(name, param, made, fn)
            elif renew or param.is_meta != made.is_meta:
                new = self._parameters[name] = Parameter(made, param.requires_grad)
                if param.grad is not None:
                    with no_grad():
                        new.grad = fn(param.grad).requires_grad_(param.grad.requires_grad)
            else:
                grad = param.grad
                param.data = made
                if grad is not None:
                    with no_grad():
                        grad.data = fn(grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _swap_in(self, name: str, param: Parameter, made: Tensor, fn: Callable[[Tensor], Tensor]) -> None:
        grad = param.grad
        try:
            param.grad = None
            swap_tensors(param, Parameter(made, requires_grad=param.requires_grad))
        except Exception as error:
            param.grad = grad
            raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{name}") from error
        if grad is None:
            return
        with no_grad():
            made = fn(grad)
        try:
            swap_tensors(grad, made.requires_grad_(grad.requires_grad))
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{name}.grad") from error
        param.grad = grad

    def apply(self: T, fn: Callable[[Module], None]) -> T:
        """Call `fn` on every submodule, then on this module, for example to initialize the weights.

        Args:
            fn: function of a module.
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def cuda(self: T, device: Any = None) -> T:
        """Move all parameters and buffers to a GPU, in place."""
        return self._apply(lambda t: t.cuda(device))

    def cpu(self: T) -> T:
        """Move all parameters and buffers to the CPU, in place."""
        return self._apply(lambda t: t.cpu())

    def type(self: T, dst_type: Any) -> T:
        """Convert all parameters and buffers to a dtype, including integer ones, in place."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self: T) -> T:
        """Convert all floating-point parameters and buffers to `float32`, in place."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self: T) -> T:
        """Convert all floating-point parameters and buffers to `float64`, in place."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self: T) -> T:
        """Convert all floating-point parameters and buffers to `float16`, in place."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self: T) -> T:
        """Convert all floating-point parameters and buffers to `bfloat16`, in place."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def to_empty(self: T, *, device: Any, recurse: bool = True) -> T:
        """Move all parameters and buffers to a device without copying their values.

        Args:
            device: the device.
            recurse: whether to move those of submodules, too. Default: `True`
        """
        return self._apply(lambda t: _core.empty_like(t, device=device), recurse=recurse)

    def to(self: T, *args: Any, **kwargs: Any) -> T:
        """Move or convert all parameters and buffers, in place.

        It is called as `to(device)`, `to(dtype)`, `to(device, dtype)`, `to(tensor)` or `to(memory_format=...)`.
        Integer tensors change device but keep their dtype. Unlike `Tensor.to`, it changes the module itself, and
        returns it.
        """
        kind, device, copy, memory_format = parse_to(args, kwargs)
        if copy:
            raise RuntimeError(".to() does not accept copy argument")
        if kind is not None and not (kind.is_floating_point or kind.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={kind}")
        if kind is not None and kind.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may change, and some modules might "
                "not work as expected when using complex tensors as parameters or buffers.",
                stacklevel=2,
            )

        def convert(t: Any) -> Any:
            wanted = kind if t.is_floating_point() or t.is_complex() else None
            try:
                if memory_format is not None and t.dim() in (4, 5):
                    return t.to(device, wanted, memory_format=memory_format)
                return t.to(device, wanted)
            except NotImplementedError as error:
                if not t.is_meta:
                    raise
                raise NotImplementedError(
                    f"{error} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from "
                    "meta to a different device."
                ) from None

        return self._apply(convert)

    def train(self: T, mode: bool = True) -> T:
        """Set training mode, or evaluation mode, for this module and all submodules.

        It matters for layers such as dropout and batch normalization.

        Args:
            mode: `True` for training, `False` for evaluation. Default: `True`
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: T) -> T:
        """Set evaluation mode; the same as `train(False)`."""
        return self.train(False)

    def requires_grad_(self: T, requires_grad: bool = True) -> T:
        """Set whether autograd computes gradients for all parameters, for example to freeze the module."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters.

        Args:
            set_to_none: whether to set them to `None` instead of zeros. Default: `True`
        """
        if getattr(self, "_is_replica", False):
            warnings.warn(
                "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. The parameters are copied "
                "(in a differentiable manner) from the original module. This means they are not leaf nodes in autograd and so "
                "don't accumulate gradients. If you need gradients in your forward method, consider using autograd.grad "
                "instead.",
                stacklevel=2,
            )
        for param in self.parameters():
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                if param.grad.grad_fn is not None:
                    param.grad.detach_()
                else:
                    param.grad.requires_grad_(False)
                param.grad.zero_()

    def share_memory(self: T) -> T:
        """Move all parameters and buffers to shared memory."""
        return self._apply(lambda t: t.share_memory_())

    # Hooks.

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Register a hook that runs before `forward`: `hook(module, args)` may return new arguments.

        Args:
            hook: the hook.
            prepend: whether it runs before the hooks registered so far. Default: `False`
            with_kwargs: whether the hook gets and returns the keyword arguments, too. Default: `False`

        Returns:
            A handle whose `remove` removes the hook.
        """
        marks = ((self._forward_pre_hooks_with_kwargs, with_kwargs),)
        return _hooks.add(self._forward_pre_hooks, hook, prepend, marks)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Register a hook that runs after `forward`: `hook(module, args, output)` may return a new output.

        Args:
            hook: the hook.
            prepend: whether it runs before the hooks registered so far. Default: `False`
            with_kwargs: whether the hook gets the keyword arguments after `args`. Default: `False`
            always_call: whether it runs even if `forward` raises an error. Default: `False`

        Returns:
            A handle whose `remove` removes the hook.
        """
        marks = ((self._forward_hooks_with_kwargs, with_kwargs), (self._forward_hooks_always_called, always_call))
        return _hooks.add(self._forward_hooks, hook, prepend, marks)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Register a hook that runs before the gradients of the inputs: `hook(module, grad_output)`.

        It may return new gradients of the outputs.

        Args:
            hook: the hook.
            prepend: whether it runs before the hooks registered so far. Default: `False`

        Returns:
            A handle whose `remove` removes the hook.
        """
        return _hooks.add(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Register a hook that runs when the gradients of the inputs are known.

        `hook(module, grad_input, grad_output)` may return new gradients of the inputs.

        Args:
            hook: the hook.
            prepend: whether it runs before the hooks registered so far. Default: `False`

        Returns:
            A handle whose `remove` removes the hook.
        """
        self._choose_backward_hooks(True)
        return _hooks.add(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register a deprecated backward hook, which sees only the gradients of the last operation of `forward`.

        Use `register_full_backward_hook` instead.
        """
        self._choose_backward_hooks(False)
        return _hooks.add(self._backward_hooks, hook)

    def _choose_backward_hooks(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of "
                "them."
            )
        self._is_full_backward_hook = full

    def _get_backward_hooks(self) -> tuple[list[Any], list[Any]]:
        return _hooks.backward_hooks(self)

    def _get_backward_pre_hooks(self) -> list[Any]:
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    # State dicts.

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register a hook that runs before `state_dict`: `hook(module, prefix, keep_vars)`."""
        return _hooks.add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register a hook that runs after `state_dict`: `hook(module, state_dict, prefix, local_metadata)`.

        It changes `state_dict` in place.
        """
        hook._from_public_api = True  # type: ignore[attr-defined]
        return _hooks.add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return _hooks.add(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register a hook that runs before `load_state_dict`.

        It is called as
        `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> RemovableHandle:
        return _hooks.add(self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register a hook that runs after `load_state_dict`: `hook(module, incompatible_keys)`.

        It may change the lists of missing and unexpected keys in place.
        """
        return _hooks.add(self._load_state_dict_post_hooks, hook)

    def get_extra_state(self) -> Any:
        """Return extra state for `state_dict`; subclasses may override it together with `set_extra_state`."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Restore what `get_extra_state` returned; called by `load_state_dict`."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in (*self._parameters.items(), *self._buffers.items()):
            if value is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = value if keep_vars else value.detach()
        if getattr(type(self), "get_extra_state", Module.get_extra_state) is not Module.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """Return a dictionary of all parameters and persistent buffers by their dotted names.

        The tensors share memory with the module.

        Args:
            destination: dictionary to add to; a new one if `None`.
            prefix: prefix of the names. Default: `""`
            keep_vars: whether to keep the tensors attached to autograd. Default: `False`
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            given: tuple[Any, ...] = (destination, prefix, keep_vars)
            destination, prefix, keep_vars = args + given[len(args) :]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            made = hook(self, destination, prefix, metadata)
            if made is not None:
                if getattr(hook, "_from_public_api", False):
                    raise RuntimeError("state_dict post-hook must return None")
                destination = made
        return destination

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load the parameters and buffers of this module alone; subclasses override it to convert old states."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        _state.load_own(self, state_dict, prefix, assign, strict, missing_keys, unexpected_keys, error_msgs)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> _IncompatibleKeys:
        """Copy parameters and buffers from a state dict into this module and its submodules.

        Args:
            state_dict: dictionary from names to tensors.
            strict: whether the names must match exactly; otherwise differences are only returned. Default: `True`
            assign: whether the tensors of the dictionary replace those of the module instead of being copied.
                Default: `False`

        Returns:
            A named tuple of `missing_keys` and `unexpected_keys`.

        Raises:
            RuntimeError: if names do not match with `strict`, or shapes do not fit.
        """
        return _state.load(self, state_dict, strict, assign)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # Attributes that older pickles lack.
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())

    # Iteration.

    def _named_members(
        self, get_members_fn: Callable[[Module], Any], prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        owners = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, owner in owners:
            for name, value in get_members_fn(owner):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield (f"{path}.{name}" if path else name), value

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield all parameters, for example for an optimizer; without those of submodules if `recurse` is off."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield pairs of dotted name and parameter.

        Args:
            prefix: prefix of the names. Default: `""`
            recurse: whether to include those of submodules. Default: `True`
            remove_duplicate: whether to yield each only once. Default: `True`
        """
        yield from self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield all buffers; without those of submodules if `recurse` is off."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield pairs of dotted name and buffer.

        Args:
            prefix: prefix of the names. Default: `""`
            recurse: whether to include those of submodules. Default: `True`
            remove_duplicate: whether to yield each only once. Default: `True`
        """
        yield from self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """Yield the direct child modules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield pairs of name and direct child module, each module once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yield this module and all its submodules, each once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield pairs of dotted name and module, for this module and all submodules.

        Args:
            memo: modules seen already, which are left out.
            prefix: prefix of the names. Default: `""`
            remove_duplicate: whether to yield each only once. Default: `True`
        """
        seen = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(seen, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    # Text representation.

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return the text between the parentheses of `repr`; subclasses override it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        below = [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        if len(lines) == 1 and not below:
            return f"{self._get_name()}({extra})"
        inside = "\n  ".join([*lines, *below])
        return f"{self._get_name()}(\n  {inside}\n)" if inside else f"{self._get_name()}()"

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    def _replicate_for_data_parallel(self) -> Module:
        """Return a shallow copy without parameters, for a replica."""
        replica = type(self).__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica
