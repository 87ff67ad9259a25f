"""States of models and optimizers by the names of parameters, the same with and without DistributedDataParallel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._core import Tensor
from ...nn.modules.module import Module
from ...optim import Optimizer

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]


@dataclass
class StateDictOptions:
    """How states are taken. Every rank has them whole, so that `full_state_dict` changes nothing."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _plain(model: Module) -> Module:
    from ...nn.parallel import DataParallel, DistributedDataParallel

    while isinstance(model, (DistributedDataParallel, DataParallel)):
        model = model.module
    return model


def _moved(value: Any, options: StateDictOptions) -> Any:
    if isinstance(value, Tensor):
        return value.detach().cpu() if options.cpu_offload else value
    if isinstance(value, dict):
        return {key: _moved(part, options) for key, part in value.items()}
    return value


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """A model's parameters and buffers by name."""
    options = options or StateDictOptions()
    plain = _plain(model)
    state = dict(plain.state_dict())
    if options.ignore_frozen_params:
        for name, param in plain.named_parameters():
            if not param.requires_grad:
                state.pop(name, None)
    return {name: _moved(value, options) for name, value in state.items()}


def _from_first(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """The first rank's state, where it is to be everybody's."""
    from .. import distributed_c10d as c10d
    from ..objects import broadcast_object_list

    if options.broadcast_from_rank0 and c10d.is_initialized():
        sent = [state]
        broadcast_object_list(sent, src=0)
        return sent[0]
    return state


def set_model_state_dict(model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None) -> Any:
    """Loads parameters and buffers by name."""
    options = options or StateDictOptions()
    return _plain(model).load_state_dict(_from_first(model_state_dict, options), strict=options.strict)


def _names(model: Module, optimizer: Optimizer) -> list[str]:
    """The names of an optimizer's parameters, in its order."""
    of = {id(param): name for name, param in _plain(model).named_parameters()}
    return [of[id(param)] for group in optimizer.param_groups for param in group["params"]]


def _list(optimizers: Any) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def get_optimizer_state_dict(
    model: Module,
    optimizers: Any,
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """Optimizers' states, with the names of parameters instead of their numbers."""
    options = options or StateDictOptions()
    made: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _list(optimizers):
        names, state = _names(model, optimizer), optimizer.state_dict()
        made["state"].update({names[number]: _moved(value, options) for number, value in state["state"].items()})
        for group in state["param_groups"]:
            made["param_groups"].append({**group, "params": [names[number] for number in group["params"]]})
    return made


def set_optimizer_state_dict(
    model: Module, optimizers: Any, optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Loads optimizers' states by the names of parameters."""
    given = _from_first(optim_state_dict, options or StateDictOptions())
    groups = list(given["param_groups"])
    for optimizer in _list(optimizers):
        numbers = {name: number for number, name in enumerate(_names(model, optimizer))}
        own = groups[: len(optimizer.param_groups)]
        del groups[: len(optimizer.param_groups)]
        state = {numbers[name]: value for name, value in given["state"].items() if name in numbers}
        renamed = [{**group, "params": [numbers[name] for name in group["params"]]} for group in own]
        optimizer.load_state_dict({"state": state, "param_groups": renamed})


def get_state_dict(
    model: Module, optimizers: Any, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The states of a model and of its optimizers."""
    return get_model_state_dict(model, options=options), get_optimizer_state_dict(model, optimizers, options=options)


def set_state_dict(
    model: Module,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Loads the states of a model and of its optimizers."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
