"""Averages of parameters over the ranks of a group."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from .... import _core
from ....autograd.grad_mode import no_grad
from ... import distributed_c10d as c10d

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params: Iterator[Any], process_group: Any) -> None:
    """Replaces parameters by their averages over the ranks, in place. All must be of one dtype."""
    group = process_group if process_group is not None else c10d.group.WORLD
    if c10d._rank_not_in_group(group):
        return
    of_all = [param.detach() for param in params]
    if not of_all:
        return
    with no_grad():
        flat = _core.cat([param.reshape(-1) for param in of_all])
        flat /= c10d.get_world_size(group)
        c10d.all_reduce(flat, group=group)
        at = 0
        for param in of_all:
            param.copy_(flat[at : at + param.numel()].reshape(param.shape))
            at += param.numel()


def get_params_to_average(params: Iterable[Any]) -> list[Any]:
    """The parameters that have gradients, of parameters or of groups of an optimizer."""
    found = []
    for param in params:
        if isinstance(param, dict):
            found += [each for each in param["params"] if each.grad is not None]
        elif isinstance(param, _core.Tensor):
            if param.grad is not None:
                found.append(param)
        else:
            raise NotImplementedError(f"Parameter input of type {type(param)} is not supported")
    return found


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: Any) -> None:
    """Replaces the parameters that have gradients by their averages over the ranks."""
    average_parameters(itertools.chain(get_params_to_average(params)), process_group)
