"""What `use_deterministic_algorithms` does besides. Results are always the same here; what `empty` holds is left open."""

from __future__ import annotations

__all__ = ["fill_uninitialized_memory"]

fill_uninitialized_memory = True
