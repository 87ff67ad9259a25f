"""Averages of parameters over ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .... import _core
from ....autograd.grad_mode import no_grad
from ... import distributed_c10d as c10d
from ...options import AllreduceOptions

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params: Iterator[Any], process_group: Any) -> None:
    """Replaces parameters by their averages over a group, those of one dtype as one message."""
    if c10d._rank_not_in_group(process_group):
        return
    group: Any = process_group if process_group is not None else c10d._get_default_group()
    with no_grad():
        for part in c10d._parts_by_dtype(list(params), 1 << 62):
            flat = _core.cat([param.detach().reshape(-1) for param in part]).div_(group.size())
            group.allreduce([flat], AllreduceOptions()).wait()
            at = 0
            for param in part:
                param.copy_(flat[at : at + param.numel()].view(param.shape))
                at += param.numel()


def get_params_to_average(params: Iterable[Any]) -> list[Any]:
    """The parameters, of a list or of parameter groups, that have a gradient."""
    chosen = []
    for entry in params:
        if isinstance(entry, _core.Tensor):
            chosen.append(entry)
        elif isinstance(entry, dict):
            chosen += entry["params"]
        else:
            raise NotImplementedError(f"Parameter input of type {type(entry)} is not supported")
    return [param for param in chosen if param.grad is not None]


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: Any) -> None:
    """Replaces the parameters that have a gradient by their averages over a group."""
    average_parameters(iter(get_params_to_average(params)), process_group)
