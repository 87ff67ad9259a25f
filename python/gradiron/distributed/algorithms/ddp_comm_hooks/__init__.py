"""Communication hooks for `DistributedDataParallel`, and their names."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

from . import debugging_hooks, default_hooks, powerSGD_hook

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


def _register(comm_hook: Callable[..., Any], model: Any, state: Any) -> None:
    model.register_comm_hook(state, comm_hook)


def _register_power_sgd(comm_hook: Callable[..., Any], model: Any, state: Any, matrix_approximation_rank: int) -> None:
    made = powerSGD_hook.PowerSGDState(process_group=state, matrix_approximation_rank=matrix_approximation_rank)
    model.register_comm_hook(made, comm_hook)


class DDPCommHookType(Enum):
    """The hooks that there are; `state` is the process group for all of them."""

    ALLREDUCE = partial(_register, default_hooks.allreduce_hook)
    FP16_COMPRESS = partial(_register, default_hooks.fp16_compress_hook)
    BF16_COMPRESS = partial(_register, default_hooks.bf16_compress_hook)
    POWER_SGD = partial(_register_power_sgd, powerSGD_hook.powerSGD_hook, matrix_approximation_rank=1)
    POWER_SGD_RANK2 = partial(_register_power_sgd, powerSGD_hook.powerSGD_hook, matrix_approximation_rank=2)
    BATCHED_POWER_SGD = partial(_register_power_sgd, powerSGD_hook.batched_powerSGD_hook, matrix_approximation_rank=1)
    BATCHED_POWER_SGD_RANK2 = partial(_register_power_sgd, powerSGD_hook.batched_powerSGD_hook, matrix_approximation_rank=2)
    NOOP = partial(_register, debugging_hooks.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Registers a hook by its name."""
    comm_hook_type.value(model=model, state=state)
