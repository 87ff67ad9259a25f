"""Types that TorchScript knows."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035 # the names that programs import

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "List", "Optional", "Tuple", "Union"]


class _Broadcasting:
    """`BroadcastingList2[int]`: two numbers, or one that stands for both."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _Broadcasting()
