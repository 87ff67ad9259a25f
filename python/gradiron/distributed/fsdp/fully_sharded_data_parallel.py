"""FSDP as one wrapper around a model: a name that programs ask `isinstance` of. No module is one."""

from __future__ import annotations

from enum import Enum, auto

from ...nn.modules.module import Module
from .._refused import _SHARDED, Refused, refused
from .api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalOptimStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "FullyShardedDataParallel",
    "LocalOptimStateDictConfig",
    "LocalStateDictConfig",
    "MixedPrecision",
    "OptimStateDictConfig",
    "OptimStateKeyType",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictConfig",
    "StateDictSettings",
    "StateDictType",
]


class OptimStateKeyType(Enum):
    """Whether an optimizer's state dict goes by names or numbers."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


class FullyShardedDataParallel(Refused, Module):
    """Would be one."""

    _full_name = "fsdp.FullyShardedDataParallel"

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[Module]:
        """The wrappers inside a module: none."""
        return []

    summon_full_params, state_dict_type, set_state_dict_type, optim_state_dict, optim_state_dict_to_load = (
        staticmethod(refused(f"fsdp.FullyShardedDataParallel.{name}", _SHARDED))
        for name in "summon_full_params state_dict_type set_state_dict_type optim_state_dict optim_state_dict_to_load".split()
    )
