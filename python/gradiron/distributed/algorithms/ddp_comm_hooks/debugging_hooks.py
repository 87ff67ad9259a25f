"""A hook that does nothing, to see what the others cost."""

from __future__ import annotations

from typing import Any

from ....futures import Future
from ..._grad_bucket import GradBucket

__all__ = ["noop_hook"]


def noop_hook(_: Any, bucket: GradBucket) -> Future:
    """Leaves the gradients of each rank as they are."""
    future = Future()
    future.set_result(bucket.buffer())
    return future
