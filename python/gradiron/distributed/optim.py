"""Optimisers for several ranks. Those whose states lie on several machines are names that programs ask `isinstance` of."""

from __future__ import annotations

import warnings
from typing import Any

from ..optim import Optimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]


class _Refused(Optimizer):
    def __init__(self, *args: Any, **options: Any) -> None:
        raise NotImplementedError(f"torch.distributed.optim.{type(self).__name__}: gradiron trains in one process")


class ZeroRedundancyOptimizer(_Refused):
    """Would spread its states."""


class DistributedOptimizer(_Refused):
    """Would step parameters on other machines."""


class PostLocalSGDOptimizer(Optimizer):
    """An optimiser after each step of which `averager` averages the parameters, when it is time."""

    def __init__(self, optim: Optimizer, averager: Any) -> None:
        self.optim = optim
        self.averager = averager

    @property
    def param_groups(self) -> Any:  # type: ignore[override]
        """The wrapped optimiser's parameter groups."""
        return self.optim.param_groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        """The wrapped optimiser's state."""
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimiser's state, with the averager's step."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state of `state_dict`."""
        self.optim.load_state_dict(state_dict)
        if "step" not in state_dict:
            warnings.warn(
                "Loaded state dict does not contain a step counter for an averager. Setting step counter to 0.", stacklevel=2
            )
        self.averager.step = state_dict.get("step", 0)

    def step(self) -> None:  # type: ignore[override]
        """A step of the wrapped optimiser, and the averager's."""
        self.optim.step()
        self.averager.average_parameters(params=self.param_groups)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Takes more parameters."""
        self.optim.add_param_group(param_group)
