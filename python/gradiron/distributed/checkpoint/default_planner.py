"""What PyTorch plans a checkpoint with. States are whole here, and need no plan: these hold a choice or two."""

from __future__ import annotations

from typing import Any

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]


class DefaultSavePlanner:
    """Saves all there is."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.options = options


class DefaultLoadPlanner:
    """Loads what is asked for; with `allow_partial_load` what the checkpoint lacks stays as it is."""

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ) -> None:
        self.allow_partial_load = allow_partial_load
