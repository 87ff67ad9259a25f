"""`Join`: training where some ranks have fewer batches than others."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from ... import _core
from ..options import AllreduceOptions

__all__ = ["Join", "JoinHook", "Joinable"]

# After so many batches of the others a rank that waits says so.
_MANY = 1000


class JoinHook:
    """What a rank that has no more inputs does while the others have some."""

    def main_hook(self) -> None:
        """Takes part in the collectives of one batch of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called on all ranks when all have joined; `is_last_joiner` tells which of them were the last."""


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool


_DISABLED = _JoinConfig(False, False, False)


class Joinable(ABC):
    """What can be used in a `Join` context: it calls `Join.notify_join_context(self)` before the collectives of each batch."""

    @abstractmethod
    def __init__(self) -> None:
        self._join_config = _DISABLED

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of this object; `kwargs` are those of the `Join`."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device for tensors of the collectives."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group of the collectives."""


class Join:
    """A context in which ranks may have different numbers of batches.

    A rank that leaves its loop early takes part in what the others do, by the hooks of `joinables`, until all have left.
    """

    def __init__(
        self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._join_hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable = enable
        self._throw_on_early_termination = throw_on_early_termination
        self._process_group = joinables[0].join_process_group
        if any(joinable.join_process_group is not self._process_group for joinable in joinables):
            raise ValueError("Using join context manager with multiple process groups")
        self._device = joinables[0].join_device
        self._rank = self._process_group.rank()
        for at, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, at == 0)

    def __enter__(self) -> Join:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if self._enable and kind is None:
                self._wait_for_all()
        finally:
            for joinable in self._joinables:
                joinable._join_config = _DISABLED

    def _wait_for_all(self) -> None:
        """Follows the ranks that still have batches."""
        is_last_joiner, batches = True, 0
        while self._count_not_joined():
            if self._throw_on_early_termination:
                self._tell_to_end()
            is_last_joiner, batches = False, batches + 1
            if batches == _MANY:
                warnings.warn(
                    f"Detected uneven input skew of greater than {_MANY}. This means that rank {self._rank} has at least "
                    f"{_MANY} fewer inputs than other currently-active ranks. This level of skew could lead to performance "
                    "degradation during training.",
                    stacklevel=3,
                )
            for hook in self._join_hooks:
                hook.main_hook()
        for hook in self._join_hooks:
            hook.post_hook(is_last_joiner)

    def _count_not_joined(self) -> int:
        count = _core.zeros(1, device=self._device)
        self._process_group.allreduce([count], AllreduceOptions()).wait()
        return int(count.item())

    def _tell_to_end(self) -> None:
        self._process_group.allreduce([_core.ones(1, device=self._device)], AllreduceOptions()).wait()
        raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Any:
        """Says that this rank still has batches: a work whose result is how many have, or None outside of a `Join`."""
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        group, device = joinable.join_process_group, joinable.join_device
        work = group.allreduce([_core.ones(1, device=device)], AllreduceOptions(asyncOp=True))
        if config.throw_on_early_termination:
            ended = _core.zeros(1, device=device)
            group.allreduce([ended], AllreduceOptions()).wait()
            if ended.item():
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work
