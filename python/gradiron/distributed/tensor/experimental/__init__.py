"""What else PyTorch does with such tensors. There are none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ..._refused import _SHARDED, refused

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Changes nothing: every tensor lies here whole."""
    yield


context_parallel, local_map, register_sharding = (
    refused(f"tensor.experimental.{name}", _SHARDED) for name in ("context_parallel", "local_map", "register_sharding")
)
