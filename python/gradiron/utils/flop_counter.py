"""How many operations of products a program takes, counted while it runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..autograd.profiler import profile

__all__ = ["FlopCounterMode"]

# Sums and products element by element are not counted.
_LEFT_OUT = ("add", "mul", "MulBackward0")


class FlopCounterMode:
    """Counts under `with`; by operator, not by module."""

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
        for event in self._profile.function_events or ():
            if event.flops and event.name.rpartition("::")[2] not in _LEFT_OUT:
                counts[event.name] += event.flops
        self.flop_counts = {"Global": dict(counts)}
        if self.display:
            print(self.get_table(self.depth))

    def get_total_flops(self) -> int:
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        return self.flop_counts

    def get_table(self, depth: int | None = None) -> str:
        rows = [("Global", self.get_total_flops()), *((f" - {name}", n) for name, n in self.flop_counts["Global"].items())]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}}  {count}" for name, count in rows)
