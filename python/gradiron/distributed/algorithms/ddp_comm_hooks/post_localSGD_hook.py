"""Post-local SGD: gradients are averaged over all ranks first, later only within a subgroup."""

from __future__ import annotations

import logging
from typing import Any

from ....futures import Future
from ... import distributed_c10d as c10d
from ..._grad_bucket import GradBucket
from . import default_hooks

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]

logger = logging.getLogger(__name__)


class PostLocalSGDState:
    """The groups that average before and from `start_localSGD_iter` on; `subgroup` None means those of one machine."""

    __slots__ = ["iter", "post_local_gradient_allreduce", "process_group", "start_localSGD_iter", "subgroup"]

    def __init__(
        self, process_group: Any, subgroup: Any, start_localSGD_iter: int, post_local_gradient_allreduce: bool = True
    ) -> None:
        self.process_group = process_group
        self.subgroup = subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0
        logger.info("Local SGD will be started after %s iterations", start_localSGD_iter)

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Counts a backward with its last bucket."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future:
    """Averages over all ranks before `start_localSGD_iter`, then over the subgroup or not at all."""
    is_local = state.iter >= state.start_localSGD_iter
    state.maybe_increase_iter(bucket)
    if not is_local:
        return default_hooks.allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        future = Future()
        future.set_result(bucket.buffer())
        return future
    if state.subgroup is None:
        state.subgroup, _ = c10d.new_subgroups()
    return default_hooks.allreduce_hook(state.subgroup, bucket)
