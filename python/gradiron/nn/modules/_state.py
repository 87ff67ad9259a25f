"""Loading of state dicts, and what is missing or unexpected in them."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import Any

from ... import __future__ as future
from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from ...utils import swap_tensors
from ..parameter import Parameter, is_lazy

EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """Result of `load_state_dict`: the keys that were missing, and those that were unexpected."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def load(module: Any, state_dict: Mapping[str, Any], strict: bool, assign: bool) -> _IncompatibleKeys:
    """Load a state dict into a module and its submodules; all errors are reported together."""
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    found = _IncompatibleKeys([], [])
    errors: list[str] = []
    metadata = getattr(state_dict, "_metadata", None)
    # A copy, which hooks may change.
    whole: Any = OrderedDict(state_dict)
    if metadata is not None:
        whole._metadata = metadata
    _load_tree(module, whole, "", metadata, assign, found, errors)
    if strict:
        for title, keys in (("Unexpected", found.unexpected_keys), ("Missing", found.missing_keys)):
            if keys:
                quoted = ", ".join(f'"{key}"' for key in keys)
                errors.insert(0, f"{title} key(s) in state_dict: {quoted}. ")
    if errors:
        lines = "\n\t".join(errors)
        raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{lines}")
    return found


def _load_tree(
    module: Any, state: Any, prefix: str, metadata: Any, assign: bool, found: _IncompatibleKeys, errors: list[str]
) -> None:
    local = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local["assign_to_params_buffers"] = True
    module._load_from_state_dict(state, prefix, local, True, found.missing_keys, found.unexpected_keys, errors)
    for name, child in module._modules.items():
        if child is not None:
            below = f"{prefix}{name}."
            part = {key: value for key, value in state.items() if key.startswith(below)}
            _load_tree(child, part, below, metadata, assign, found, errors)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, found) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, if "
                "incompatible_keys need to be modified, it should be done inplace."
            )


def load_own(
    module: Any,
    state: Any,
    prefix: str,
    assign: bool,
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
) -> None:
    """Load the parameters and buffers of a single module."""
    own = {name: value for name, value in module._parameters.items() if value is not None}
    for name, value in module._buffers.items():
        if value is not None and name not in module._non_persistent_buffers_set:
            own[name] = value
    for name, value in own.items():
        key = prefix + name
        if key in state:
            _load_tensor(module, name, key, value, state[key], assign, errors)
        elif strict:
            missing.append(key)
    _load_extra(module, state, prefix + EXTRA_STATE, strict, missing, unexpected)
    if strict:
        for key in state:
            if key.startswith(prefix) and key != prefix + EXTRA_STATE:
                name, dot, _ = key[len(prefix) :].partition(".")
                if name not in (module._modules if dot else own):
                    unexpected.append(key)


def _load_extra(module: Any, state: Any, key: str, strict: bool, missing: list[str], unexpected: list[str]) -> None:
    from .module import Module

    takes = getattr(type(module), "set_extra_state", Module.set_extra_state) is not Module.set_extra_state
    if takes and key in state:
        module.set_extra_state(state[key])
    elif strict and takes != (key in state):
        (missing if takes else unexpected).append(key)


_NO_OP = (
    "for {}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a no-op. "
    "(Did you mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in the module "
    "instead of copying them in place?)"
)


def _load_tensor(module: Any, name: str, key: str, own: Any, given: Any, assign: bool, errors: list[str]) -> None:
    if not isinstance(given, Tensor):
        errors.append(
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint but '
            f"received {type(given)}"
        )
        return
    if not is_lazy(own):
        if own.dim() == 0 and given.shape == (1,):
            given = given[0]  # as very old checkpoints have it
        if given.shape != own.shape:
            errors.append(
                f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in current "
                f"model is {own.shape}."
            )
            return
    swap = future.get_swap_module_params_on_conversion()
    if own.is_meta and not given.is_meta and not assign:
        warnings.warn(_NO_OP.format(key), stacklevel=2)
    try:
        with no_grad():
            if swap:
                made = own.module_load(given, assign=assign)
                if made is own or made is given:
                    raise RuntimeError(
                        "module_load returned one of self or other, please .detach() the result if returning one of the inputs "
                        "in module_load"
                    )
                swap_tensors(own, _as_kind(made, own))
            elif assign:
                setattr(module, name, _as_kind(given, own))
            else:
                own.copy_(given)
    except Exception as error:
        errors.append(
            f'While {"swapping" if swap else "copying"} the parameter named "{key}", whose dimensions in the model are '
            f"{own.size()} and whose dimensions in the checkpoint are {given.size()}, an exception occurred : {error.args}."
        )


def _as_kind(given: Any, own: Any) -> Any:
    """Return the tensor as a parameter if it replaces a parameter."""
    if not isinstance(own, Parameter):
        return given
    if isinstance(given, Parameter):
        return given.requires_grad_(own.requires_grad)
    return Parameter(given, requires_grad=own.requires_grad)
