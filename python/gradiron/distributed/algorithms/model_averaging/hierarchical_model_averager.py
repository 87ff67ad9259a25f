"""`HierarchicalModelAverager`: small groups average often, large ones seldom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ... import distributed_c10d as c10d
from . import averagers, utils

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(averagers.ModelAverager):
    """Averages over groups of growing size: `period_group_size_dict` gives for each period the size of its groups."""

    def __init__(
        self,
        period_group_size_dict: Mapping[int, int] | None = None,
        warmup_steps: int = 0,
        process_group: Any = None,
    ) -> None:
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        self._periods = list(period_group_size_dict)
        sizes = list(period_group_size_dict.values())
        if self._periods[0] <= 0:
            raise ValueError("The minimum period in arg ``period_group_size_dict`` must be a positive value.")
        if self._periods[-1] == 1:
            raise ValueError(
                "When the maximum period in arg ``period_group_size_dict`` is 1, no need to use model averaging because the "
                "communication cost of all-reducing parameters will be no less than the cost of all-reducing gradients by "
                "DistributedDataParallel in the backward pass. Therefore, only DistributedDataParallel should be used."
            )
        whole = self.process_group.size()
        if sizes[-1] != whole:
            raise ValueError(
                f"The last value in arg ``period_process_group_dict`` {sizes[-1]} must be equal to the size of arg "
                f"``process_group`` {whole}."
            )
        if sorted(sizes) != sizes or sorted(self._periods) != self._periods:
            raise ValueError("Arg ``period_group_size_dict`` must have growing periods and growing groups.")
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self.warmup_steps = warmup_steps
        self.period_process_group_dict = {
            period: self.process_group if size == whole else c10d.new_subgroups(size, group=self.process_group)[0]
            for period, size in period_group_size_dict.items()
        }

    def _find_process_group(self) -> Any:
        """The group of the largest period that divides this step."""
        return next((self.period_process_group_dict[each] for each in reversed(self._periods) if self.step % each == 0), None)

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Averages the parameters that have a gradient over the largest group whose turn it is."""
        if self.step >= self.warmup_steps:
            group = self._find_process_group()
            if group is not None:
                utils.average_parameters_or_parameter_groups(params, group)
        self.step += 1
