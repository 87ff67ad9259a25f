"""An optimizer that updates other parameters with another state for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._core import Tensor
from .optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]

_NAME = "swap_in_optimizer_params_and_state"


def _checked_state(state: Any) -> dict[Any, Any]:
    if not isinstance(state, dict):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be a dict mapping packed parameter ids to per-param state "
            f"dicts, got {type(state).__name__}."
        )
    if any(isinstance(key, Tensor) for key in state):
        raise RuntimeError(f"{_NAME} requires optimizer.state_dict()-style state keyed by packed parameter ids.")
    if any(isinstance(key, int) and not isinstance(value, dict) for key, value in state.items()):
        raise RuntimeError(f"{_NAME} requires per-parameter optimizer state entries to be dictionaries.")
    return state


def _checked_numbers(i: int, group: dict[str, Any], other: Any) -> list[int]:
    """The numbers of the parameters of a group that stands in for `group`."""
    if not isinstance(other, dict):
        raise RuntimeError(f"{_NAME} requires each optimizer param group to be a dictionary.")
    numbers = other.get("params")
    if not isinstance(numbers, list) or not all(isinstance(number, int) for number in numbers):
        raise RuntimeError(
            f"{_NAME} requires optimizer.state_dict()-style param_groups[*]['params'] entries keyed by packed parameter ids."
        )
    if len(group["params"]) != len(numbers):
        raise RuntimeError(
            f"swapin_optim_state param group {i} has a different number of params than the live optimizer param group."
        )
    more, fewer = [key for key in other if key not in group], [key for key in group if key not in other]
    if more or fewer:
        raise RuntimeError(
            f"{_NAME} requires optimizer.state_dict()-style param group keys to exactly match the live optimizer group "
            f"keys for group {i}. Keys only in swap-in: {more}. Keys only in live: {fewer}."
        )
    return numbers


def _checked(
    optimizer: Optimizer, parameters: dict[str, Tensor], saved: Any
) -> tuple[dict[Any, Any], list[tuple[dict[str, Any], list[int], list[Tensor]]]]:
    """The state that stands in, and of each group the options, the numbers and the parameters."""
    if not optimizer.state:
        raise RuntimeError(f"{_NAME} requires initialized optimizer state.")
    if not isinstance(saved, dict):
        raise RuntimeError(f"{_NAME} requires a DCP-style optimizer state_dict.")
    state, others = _checked_state(saved.get("state")), saved.get("param_groups")
    if not isinstance(others, list):
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['param_groups'] to be a list of param-group dicts, "
            f"got {type(others).__name__}."
        )
    if len(optimizer.param_groups) != len(others):
        raise RuntimeError("swapin_optim_state has a different number of parameter groups than the live optimizer.")
    flat, groups = list(parameters.values()), []
    for i, (group, other) in enumerate(zip(optimizer.param_groups, others, strict=True)):
        numbers = _checked_numbers(i, group, other)
        own, flat = flat[: len(numbers)], flat[len(numbers) :]
        if len(own) != len(numbers):
            raise RuntimeError(f"{_NAME} requires the explicit parameter state to match optimizer.param_groups ordering.")
        groups.append((other, numbers, own))
    known = {number for _, numbers, _ in groups for number in numbers}
    if strange := [key for key in state if key not in known]:
        raise RuntimeError(
            f"{_NAME} requires swapin_optim_state['state'] to be keyed only by packed parameter ids from "
            f"param_groups[*]['params']; got extra keys {strange!r}."
        )
    return state, groups


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """Let an optimizer update other parameters with another state inside a `with` block.

    On exit the optimizer has its own parameters, state and options back. It must have taken a step before.

    Args:
        optimizer: the optimizer.
        swapin_parameters: parameters in the order of the optimizer's own.
        swapin_optim_state: state in the form of `state_dict()`; its tensors may be changed in place.

    Examples:
        >>> a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
        >>> optimizer = torch.optim.SGD([a], lr=0.1, momentum=0.9)
        >>> a.sum().backward()
        >>> optimizer.step()
        >>> b.sum().backward()
        >>> with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"b": b}, optimizer.state_dict()):
        ...     optimizer.step()
        >>> a.item() < 1, b.item() < 1
        (True, True)
    """
    state, groups = _checked(optimizer, swapin_parameters, swapin_optim_state)
    own_state, own_groups = optimizer.state, [dict(group) for group in optimizer.param_groups]
    try:
        other_state: defaultdict[Any, Any] = defaultdict(dict)
        for group, (options, numbers, params) in zip(optimizer.param_groups, groups, strict=True):
            group.update(options)
            group["params"] = params
            for param, number in zip(params, numbers, strict=True):
                other_state[param] = dict(state.get(number, {}))
        optimizer.state = other_state
        yield
    finally:
        for group, before in zip(optimizer.param_groups, own_groups, strict=True):
            group.clear()
            group.update(before)
        optimizer.state = own_state
