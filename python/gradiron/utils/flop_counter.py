"""Counting the floating point operations of a program."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .. import _core
from ..autograd.profiler import profile

__all__ = ["FlopCounterMode"]


def _counts(name: str, pointwise: set[str]) -> bool:
    """Whether an operator or its node counts: what goes element by element does not."""
    return name.rpartition("::")[2].partition("Backward")[0].lower() not in pointwise


class FlopCounterMode:
    """Count the floating point operations of matrix products and convolutions in a `with` block.

    They are counted per operator, not per module.

    Args:
        mods: ignored.
        depth: ignored. Default: `2`
        display: print a table at the end. Default: `True`
        custom_mapping: ignored.
        options: ignored.

    Examples:
        >>> with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
        ...     y = torch.ones(2, 3) @ torch.ones(3, 4)
        >>> counter.get_total_flops()
        48
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: Any = None, **options: Any
    ) -> None:
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[str, int]] = {"Global": {}}

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts = {"Global": {}}
        self._profile = profile(with_flops=True)
        self._profile.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._profile.__exit__(*error)
        counts: Counter[str] = Counter()
        pointwise = {row["name"] for row in _core.rows() if row["family"] == "pointwise"}
        for event in self._profile.function_events or ():
            if event.flops and _counts(event.name, pointwise):
                counts[event.name] += event.flops
        self.flop_counts = {"Global": dict(counts)}
        if self.display:
            print(self.get_table(self.depth))

    def get_total_flops(self) -> int:
        """Return the number of operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """Return the number of operations of each operator."""
        return self.flop_counts

    def get_table(self, depth: int | None = None) -> str:
        """Return the counts as a table."""
        rows = [("Global", self.get_total_flops()), *((f" - {name}", n) for name, n in self.flop_counts["Global"].items())]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}}  {count}" for name, count in rows)
