"""Parametrizations: tensors of a module that are functions of trained parameters."""

from __future__ import annotations

import copyreg
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from ... import __future__ as future
from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from ...utils import swap_tensors
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_enabled = 0
_cache: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Context manager within which each parametrized tensor is computed only once.

    Examples:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 2))
        >>> with nn.utils.parametrize.cached():
        ...     layer.weight is layer.weight
        True
    """
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register(module: Module, name: str, value: Any) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _set(dest: Any, src: Any) -> None:
    """Replace the contents of a tensor by those of another one, without recording."""
    if not future.get_swap_module_params_on_conversion():
        dest.set_(src)
        return
    if isinstance(dest, Parameter) and not isinstance(src, Parameter):
        src = Parameter(src, requires_grad=dest.requires_grad)
    swap_tensors(dest, src)


def _check_like(made: Any, before: Tensor, title: str, old: str, new: str) -> None:
    """Raise an error if a parametrization changes dtype or shape."""
    if not isinstance(made, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
    for what in ("dtype", "shape"):
        had, has = getattr(before, what), getattr(made, what)
        if had != has:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless {title} flag is enabled.\n"
                f"{old.format(what)}: {had}\n{new.format(what)}: {has}"
            )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied in order, and the parameters that they start from.

    The parameters are `original`, or `original0`, `original1` … if the first parametrization takes several.

    Args:
        modules: the parametrizations.
        original: the tensor to parametrize.
        unsafe: whether dtype and shape may change. Default: `False`

    Attributes:
        is_tensor: whether there is a single `original`.

    Examples:
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 2))
        >>> type(layer.parametrizations.weight).__name__
        'ParametrizationList'
    """

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        kept = original.detach()
        with no_grad():
            new: Any = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        continue
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, Tensor):
            self._keep_one(original, new)
        else:
            self._keep_several(original, new)
        if not unsafe:
            _check_like(self(), kept, "`unsafe`", "unparametrized {}", "parametrized {}")

    def _keep_one(self, original: Any, new: Tensor) -> None:
        for what in ("dtype", "device"):
            had, has = getattr(original, what), getattr(new, what)
            if had != has:
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the {what}.\noriginal.{what}: {had}\n"
                    f"right_inverse(original).{what}: {has}"
                )
        with no_grad():
            _set(original, new)
        _register(self, "original", original)

    def _keep_several(self, original: Any, new: Sequence[Any]) -> None:
        for at, value in enumerate(new):
            if not isinstance(value, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                    f"{at} of the sequence with type {type(value).__name__}."
                )
            if isinstance(original, Parameter):
                value = Parameter(value, original.requires_grad)
            value.requires_grad_(original.requires_grad)
            _register(self, f"original{at}", value)

    def _originals(self) -> list[Any]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{at}") for at in range(self.ntensors)]

    def right_inverse(self, value: Any) -> None:
        """Set the original parameters so that the parametrized tensor becomes `value`."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                if value.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype "
                        f"{self.original.dtype}"
                    )
                _set(self.original, value)
                return
            if not isinstance(value, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
            if len(value) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of length "
                    f"{len(value)}."
                )
            for at, (original, new) in enumerate(zip(self._originals(), value, strict=True)):
                if not isinstance(new, Tensor):
                    raise ValueError(
                        f"'right_inverse' must return a sequence of tensors. Got element {at} of type {type(new).__name__}"
                    )
                if original.dtype != new.dtype:
                    raise ValueError(
                        f"Tensor {at} returned by `right_inverse` has dtype {new.dtype} while `original{at}` has dtype "
                        f"{original.dtype}"
                    )
                _set(original, new)

    def forward(self) -> Any:
        first, *others = list(self)
        made = first(*self._originals())
        for module in others:
            made = module(made)
        return made


def _with_own_class(module: Module) -> None:
    """Give a module its own subclass, on which properties can be set."""
    base: Any = type(module)

    def copied(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        made = memo[id(self)] = self.__new__(type(self))
        made.__dict__ = deepcopy(self.__dict__, memo)
        for slot in copyreg._slotnames(type(self)):  # type: ignore[attr-defined]
            if hasattr(self, slot):
                setattr(made, slot, deepcopy(getattr(self, slot), memo))
        return made

    def state(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    members: dict[str, Any] = {"__getstate__": state}
    if not hasattr(base, "__deepcopy__"):
        members["__deepcopy__"] = copied
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), members)


def _add_property(module: Module, name: str) -> None:
    def get(self: Any) -> Any:
        compute = self.parametrizations[name]
        if not _cache_enabled:
            return compute()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = compute()
        return _cache[key]

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def register_parametrization(module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Any:
    """Parametrize a tensor of a module: it becomes `parametrization(original)` with a trained `original`.

    A module may have several parametrizations, which are applied in order. If it has a method `right_inverse`, the
    tensor keeps its value and can be assigned to.

    Args:
        module: module that has the tensor.
        tensor_name: name of the parameter or buffer.
        parametrization: module that computes the tensor.
        unsafe: whether dtype and shape may change. Default: `False`

    Returns:
        The module.

    Examples:
        >>> class Symmetric(nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
        >>> torch.equal(layer.weight, layer.weight.T)
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_further(module, tensor_name, parametrization)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        made = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _with_own_class(module)
            module.parametrizations = ModuleDict()
        _add_property(module, tensor_name)
        module.parametrizations[tensor_name] = made
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def _check_further(module: Any, name: str, parametrization: Any) -> None:
    """Raise an error if a parametrization does not fit on top of those before it."""
    before = getattr(module, name)
    made = parametrization(before)
    _check_like(made, before, "the `unsafe`", f"module.{name}.{{}}", f"parametrization(module.{name}).{{}}")
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(made)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    for what in ("dtype", "shape"):
        had, has = getattr(before, what), getattr(back, what)
        if had != has:
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, unless the "
                f"`unsafe` flag is enabled.\nmodule.{name}.{what}: {had}\nreturned {what}: {has}"
            )


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Return whether a module, or one of its tensors, is parametrized.

    Args:
        module: the module.
        tensor_name: name of the tensor; any of them if `None`.

    Examples:
        >>> nn.utils.parametrize.is_parametrized(nn.Linear(4, 2))
        False
    """
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Remove the parametrizations of a tensor, which becomes an ordinary parameter or buffer.

    Args:
        module: module that has the tensor.
        tensor_name: name of the tensor.
        leave_parametrized: whether it keeps the parametrized value instead of the original one. Default: `True`

    Returns:
        The module.

    Raises:
        ValueError: if the tensor is not parametrized, or there are several originals and `leave_parametrized` is off.

    Examples:
        >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 3))
        >>> nn.utils.parametrize.remove_parametrizations(layer, "weight")
        Linear(in_features=3, out_features=3, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    made = module.parametrizations[tensor_name]
    if made.is_tensor:
        original = made.original
        if leave_parametrized:
            with no_grad():
                _set(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of "
            "tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Any) -> type:
    """Return the class that a module had before it was parametrized.

    Args:
        module: the module.

    Examples:
        >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 3))
        >>> nn.utils.parametrize.type_before_parametrizations(layer) is nn.Linear
        True
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Any, to_module: Any, tensor_name: str | None = None) -> Any:
    """Copy the parametrizations of a module to another one, which then shares the original parameters.

    Args:
        from_module: parametrized module.
        to_module: module that gets the parametrizations.
        tensor_name: name of the tensor; all of them if `None`.

    Returns:
        `to_module`.

    Examples:
        >>> source = nn.utils.parametrizations.weight_norm(nn.Linear(4, 2))
        >>> target = nn.utils.parametrize.transfer_parametrizations_and_params(source, nn.Linear(4, 2))
        >>> nn.utils.parametrize.is_parametrized(target, "weight")
        True
    """
    if not is_parametrized(from_module):
        return to_module
    for name in from_module.parametrizations if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for at, original in enumerate(source._originals()):
            setattr(target, "original" if source.is_tensor else f"original{at}", original)
    return to_module
