"""The base class of optimizers: parameter groups, state, hooks, saving and loading."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias, TypeVar

import gradiron as torch

from .. import _core
from .._core import Tensor
from ..utils.hooks import RemovableHandle

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

R = TypeVar("R")
Args = tuple[Any, ...]
Kwargs = dict[str, Any]
StateDict = dict[str, Any]
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]

_global_optimizer_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_foreach_supported_types: list[type] = [Tensor]


class _Required:
    """Stands for an option that each group must give itself."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


def _hang(hooks: OrderedDict[int, Any], hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register a hook that runs before each `step` of every optimizer.

    Args:
        hook: called as `hook(optimizer, args, kwargs)`; may return new `(args, kwargs)`.
    """
    return _hang(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register a hook that runs after each `step` of every optimizer.

    Args:
        hook: called as `hook(optimizer, args, kwargs)`.
    """
    return _hang(_global_optimizer_post_hooks, hook)


def _use_grad_for_differentiable(func: Callable[..., R]) -> Callable[..., R]:
    """A step that is recorded only where the optimizer is to be differentiated."""

    @functools.wraps(func)
    def step(self: Optimizer, *args: Any, **kwargs: Any) -> R:
        before = _core.is_grad_enabled()
        _core.set_recording(self.defaults.get("differentiable", False))
        try:
            return func(self, *args, **kwargs)
        finally:
            _core.set_recording(before)

    return step


def _get_value(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Any) -> Any:
    """A tensor of one element without dimensions; numbers stay."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replaces complex tensors by their parts, where the parameter is complex."""
    for i, param in enumerate(params):
        if param.is_complex():
            for tensors in (params, *state_and_grads):
                tensors[i] = torch.view_as_real(tensors[i])


def _get_scalar_dtype(is_fused: bool | None = None) -> torch.dtype:
    """In what steps are counted."""
    wide = not is_fused and torch.get_default_dtype() == torch.float64
    return torch.float64 if wide else torch.float32


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


_FUSED_DEVICES = ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    devices = [name for name in _FUSED_DEVICES if not (cuda_unsupported and name == "cuda")]
    if p.device.type not in devices or not p.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of "
            f"supported devices: {devices} but {p.dtype} and {p.device.type}"
        )


def _default_to_fused_or_foreach(params: list[Tensor], differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Whether PyTorch would choose its fused kernels, or those over lists: for parameters on a GPU. Here it is all the
    same to a step."""
    if differentiable:
        return False, False
    fused = use_fused and all(p is None or (p.device.type in _FUSED_DEVICES and p.is_floating_point()) for p in params)
    return fused, not fused and all(p is None or p.device.type == "cuda" for p in params)


class Optimizer:
    """Base class of all optimizers.

    A subclass writes `step`, which updates the tensors in `param_groups` and keeps what it needs per parameter in
    `state`.

    Args:
        params: parameters, pairs of names and parameters, or dicts that define parameter groups.
        defaults: options for groups that do not set them.

    Attributes:
        param_groups: dicts of `params` and options such as `lr`, which may be changed between steps.
        state: dict from parameters to their state.

    Examples:
        >>> class Descent(torch.optim.Optimizer):
        ...     @torch.no_grad()
        ...     def step(self, closure=None):
        ...         for group in self.param_groups:
        ...             for p in group["params"]:
        ...                 p.sub_(p.grad, alpha=group["lr"])
        >>> x = torch.ones(2, requires_grad=True)
        >>> (x**2).sum().backward()
        >>> Descent([x], {"lr": 0.25}).step()
        >>> x
        tensor([0.5000, 0.5000], requires_grad=True)
    """

    _optimizer_step_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_step_post_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]
    _HOOKS = tuple(
        f"_optimizer_{what}_{when}_hooks" for what in ("step", "state_dict", "load_state_dict") for when in ("pre", "post")
    )

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for hooks in self._HOOKS:
            setattr(self, hooks, OrderedDict())
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got " + _typename(params)
            )
        if isinstance(params, set):
            warnings.warn(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead. This will be an error in a future release.",
                FutureWarning,
                stacklevel=2,
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for hooks in self._HOOKS:
            self.__dict__.setdefault(hooks, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += (f"    {key}: {group[key]}" for key in sorted(group) if key != "params")
        return "\n".join(lines) + "\n)"

    def _accelerator_graph_capture_health_check(self) -> None:
        """Nothing is captured here."""

    _cuda_graph_capture_health_check = _accelerator_graph_capture_health_check

    def _optimizer_step_code(self) -> None:
        """For profilers: called after each step."""

    @staticmethod
    def profile_hook_step(func: Callable[..., R]) -> Callable[..., R]:
        """Wrap a `step` function so that it runs the step hooks and shows in profiles."""

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> R:
            self: Any = args[0]
            if _core.profiler_enabled():
                with torch.profiler.record_function(f"Optimizer.step#{type(self).__name__}.step"):
                    return hooked(self, args, kwargs)
            return hooked(self, args, kwargs)

        def hooked(self: Optimizer, args: Args, kwargs: Kwargs) -> R:
            # The step of a few small parameters would notice chains of no hooks.
            if _global_optimizer_pre_hooks or self._optimizer_step_pre_hooks:
                for pre_hook in chain(_global_optimizer_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
                    result = pre_hook(self, args, kwargs)
                    if result is None:
                        continue
                    if not isinstance(result, tuple) or len(result) != 2:
                        raise RuntimeError(f"{func} must return None or a tuple of (new_args, new_kwargs), but got {result}.")
                    args, kwargs = result
            out = func(*args, **kwargs)
            self._optimizer_step_code()
            if _global_optimizer_post_hooks or self._optimizer_step_post_hooks:
                for post_hook in chain(self._optimizer_step_post_hooks.values(), _global_optimizer_post_hooks.values()):
                    post_hook(self, args, kwargs)
            return out

        return wrapper

    def _patch_step_function(self) -> None:
        """Wraps the class's own `step`, once."""
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"
        cls: Any = type(self)
        if not getattr(cls.step, "hooked", None):
            cls.step = self.profile_hook_step(cls.step)
            cls.step.hooked = True

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register `hook(optimizer, args, kwargs)` to run before each step; it may return new `(args, kwargs)`."""
        return _hang(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register `hook(optimizer, args, kwargs)` to run after each step."""
        return _hang(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Register `hook(optimizer)` to run before `state_dict`; with `prepend`, before other hooks."""
        return _hang(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Register `hook(optimizer, state_dict)` to run after `state_dict`; it may return another dict."""
        return _hang(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Register `hook(optimizer, state_dict)` to run before `load_state_dict`; it may return another dict."""
        return _hang(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Register `hook(optimizer)` to run after `load_state_dict`."""
        return _hang(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def state_dict(self) -> StateDict:
        """Return a dict of `state` and `param_groups`, in which numbers stand for the parameters.

        The tensors are not copied.
        """
        for pre_hook in self._optimizer_state_dict_pre_hooks.values():
            pre_hook(self)
        numbers: dict[int, int] = {}
        groups, start = [], 0
        for group in self.param_groups:
            for i, p in enumerate(group["params"], start):
                numbers.setdefault(id(p), i)
            start += len(group["params"])
            packed = {key: value for key, value in group.items() if key != "params"}
            groups.append({**packed, "params": [numbers[id(p)] for p in group["params"]]})
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        made: StateDict = {"state": state, "param_groups": groups}
        for post_hook in self._optimizer_state_dict_post_hooks.values():
            other = post_hook(self, made)
            made = made if other is None else other
        return made

    @staticmethod
    def _process_value_according_to_param_policy(
        param: Tensor, value: Tensor, param_id: int, param_groups: list[dict[str, Any]], key: Hashable = None
    ) -> Tensor:
        """A loaded tensor as the parameter's state has it: its dtype and device, but for the count of steps."""
        group: dict[str, Any] = next((group for group in param_groups if param_id in group["params"]), {})
        if key == "step":
            if group.get("capturable") or group.get("fused"):
                return value.to(dtype=torch.float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Load the result of `state_dict`, whose groups must have as many parameters as the optimizer's.

        Args:
            state_dict: what `state_dict` returned.
        """
        state_dict = state_dict.copy()
        for pre_hook in self._optimizer_load_state_dict_pre_hooks.values():
            other = pre_hook(self, state_dict)
            state_dict = state_dict if other is None else other
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(group["params"]) != len(other["params"]) for group, other in zip(groups, saved, strict=True)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        numbers = chain.from_iterable(group["params"] for group in saved)
        params = dict(zip(numbers, chain.from_iterable(group["params"] for group in groups), strict=True))

        def fitted(number: Any, value: Any, key: Hashable = None) -> Any:
            if isinstance(value, Tensor):
                return Optimizer._process_value_according_to_param_policy(
                    params[number], value, number, state_dict["param_groups"], key
                )
            if isinstance(value, dict):
                return {k: fitted(number, v, k) for k, v in value.items()}
            if isinstance(value, Iterable):
                return type(value)(fitted(number, v) for v in value)  # type: ignore[call-arg]
            return value

        state: defaultdict[Any, Any] = defaultdict(dict)
        for number, value in state_dict["state"].items():
            if number in params:
                state[params[number]] = fitted(number, value)
            else:
                state[number] = value
        for group, other in zip(groups, saved, strict=True):
            other["params"] = group["params"]
            if "param_names" in group:
                other.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for post_hook in self._optimizer_load_state_dict_post_hooks.values():
            post_hook(self)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters.

        Args:
            set_to_none: set `grad` to `None` instead of filling it with zeros. Default: `True`
        """
        if _core.profiler_enabled():
            with torch.profiler.record_function(self._zero_grad_profile_name):
                return self._zero_grad(set_to_none)
        return self._zero_grad(set_to_none)

    def _zero_grad(self, set_to_none: bool) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif (grad := p.grad) is not None:
                    if grad.grad_fn is not None:
                        grad.detach_()
                    else:
                        grad.requires_grad_(False)
                    grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters by their gradients.

        Args:
            closure: function that clears the gradients, computes the loss and calls `backward` on it.

        Returns:
            What `closure` returns, or `None` without one.
        """
        raise NotImplementedError

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a parameter group, for instance to train layers that were frozen before.

        Args:
            param_group: dict of `params` and of the options that differ from the defaults.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        param_group["params"] = params = _without_names(param_group, list(params))
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + _typename(param))
            if not self.defaults.get("differentiable", None) and not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        own = {id(param) for param in params}
        if len(params) != len(own):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                kind = "with names" if "param_names" in param_group else "without names"
                raise ValueError(
                    f"all optimizer param groups should be with/without names. cannot add param group {kind} to the optimizer"
                )
        if any(id(param) in own for group in self.param_groups for param in group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)


def _without_names(group: dict[str, Any], params: list[Any]) -> list[Any]:
    """The parameters of pairs `(name, parameter)`, whose names go into the group; others as they are."""
    names = [param[0] for param in params if isinstance(param, tuple)]
    if not names:
        return params
    group["params"] = params = [param[1] if isinstance(param, tuple) else param for param in params]
    if len(names) != len(params):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    group["param_names"] = names
    return params


def _typename(thing: Any) -> str:
    """A type as messages name it: `torch.FloatTensor`, `int`, `numpy.ndarray`."""
    if isinstance(thing, Tensor):
        return thing.type()
    cls = type(thing)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"
