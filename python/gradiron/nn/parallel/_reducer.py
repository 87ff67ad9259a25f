"""The reducer: collects gradients in buckets and all-reduces the buckets during the backward."""

from __future__ import annotations

import sys
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ... import _core
from ..._core import Tensor, leaves_behind, queue_callback, storage_holders
from ..._creation import tensor as make_tensor
from ...autograd.grad_mode import no_grad
from ...distributed.debug import DebugLevel, get_debug_level
from ...distributed.options import AllreduceOptions, BroadcastOptions
from ._buckets import Bucket, assign_buckets
from ._messages import (
    CREATE_GRAPH,
    ENABLE_DETECTION,
    GRAPH_CHANGED,
    NEW_USE,
    NOT_FOUND,
    NOT_NEEDED,
    SAY_NAMES,
    TWICE,
    UNFINISHED,
    UNUSED,
)

__all__ = ["Reducer"]

# References to a gradient within the reducer: a local variable, and the argument of `getrefcount`.
_OWN_REFERENCES = 2


def _make_hook(reducer: Reducer, index: int) -> Callable[[Tensor], None]:
    """Return the hook for the complete gradient of a parameter; it holds a weak reference to the reducer."""
    reference = weakref.ref(reducer)

    def take_gradient(param: Tensor) -> None:
        reducer = reference()
        if reducer is not None:
            if reducer._used is not None and param.grad is not None:
                reducer._used[index] = 1
            if reducer._expects:
                reducer._take(index, param)

    return take_gradient


class Reducer:
    """Averages the gradients of `params` over the ranks of a group, bucket by bucket.

    A complete gradient is divided by the number of ranks and copied into its bucket. A complete bucket is all-reduced
    in the background, after those before it. At the end of the backward the `grad` of each parameter is a view of its
    bucket.
    """

    def __init__(
        self,
        params: list[Tensor],
        names: list[str],
        group: Any,
        limits: Sequence[int],
        *,
        find_unused: bool = False,
        as_views: bool = False,
        skip_unused: bool = False,
        release: bool = False,
    ) -> None:
        self.params, self.names, self.group = params, names, group
        self.limits = limits
        self.find_unused, self.as_views, self.skip_unused, self.release = find_unused, as_views, skip_unused, release
        self.static_graph = False
        self.iterations = 0
        self.rebuilt = False
        self._factor = 1.0 / group.size()
        self._hook: tuple[Any, Callable[[Any, Any], Any]] | None = None
        self._expects = False  # Whether a forward expects a backward.
        self._open = False  # Whether a backward has started and is not finished.
        self._warned_not_needed = False
        self._forward_work: tuple[Any, bool] | None = None
        self._divisor_known = False
        self._may_rebuild = False
        self._arrivals: list[int] | None = []  # The order of the gradients, until the buckets are rebuilt.
        self._next = 0  # The first bucket whose reduction has not started.
        self._unused: list[int] = []
        self._unused_set: set[int] = set()
        self._unused_pending = False  # Unused parameters are marked with the first gradient.
        self._unused_before: list[int] | None = None
        self._unused_changed = False
        self._used: bytearray | None = bytearray(len(params)) if find_unused else None
        self._used_work: Any = None
        self._used_anywhere: list[bool] | None = None
        self._triggers: list[int] | None = None  # The number of times that each gradient comes in a static graph.
        self._triggers_left: list[int] = []
        self._first_static = False
        self._kept: list[tuple[Tensor, Tensor]] = []  # Gradients with other references, to which the reduced values are copied.
        self.times: dict[str, int] = {}
        self._set_buckets(assign_buckets(params, range(len(params) - 1, -1, -1), limits))
        self._handles = [
            param.register_post_accumulate_grad_hook(_make_hook(self, index)) for index, param in enumerate(params)
        ]

    def __del__(self) -> None:
        self._remove_autograd_hooks()

    def _remove_autograd_hooks(self) -> None:
        handles, self._handles = getattr(self, "_handles", []), []
        for handle in handles:
            handle.remove()

    def _set_buckets(self, members: list[list[int]]) -> None:
        self.buckets = [Bucket(number, each, self.params) for number, each in enumerate(members)]
        self._places: list[Any] = [None] * len(self.params)
        for bucket in self.buckets:
            for at, index in enumerate(bucket.members):
                self._places[index] = (bucket, at)
        self._ready = bytearray(len(self.params))

    # Before a backward.

    def prepare_for_forward(self) -> None:
        """Start a forward whose backward will be reduced."""
        self.times["forward_compute_time_start"] = time.perf_counter_ns()

    def prepare_for_backward(self, outputs: Sequence[Tensor]) -> None:
        """Prepare for a backward, in which parameters that `outputs` do not depend on get no gradient."""
        self._check_finished()
        self._expects, self._divisor_known = True, False
        self._next = 0
        for bucket in self.buckets:
            bucket.left, bucket.skipped, bucket.pending = len(bucket.members), False, None
        self._ready = bytearray(len(self.params))
        if self._triggers is not None:
            self._triggers_left = list(self._triggers)
        if self.static_graph:
            self._first_static = self._triggers is None
            if self._first_static:
                self._used = bytearray(len(self.params))
                self._triggers_left = [0] * len(self.params)
        elif self.find_unused and outputs:
            self._find_unused(outputs)
        else:
            self._unused = []
        self._unused_set = set(self._unused)
        self._unused_pending = bool(self._unused)

    def _find_unused(self, outputs: Sequence[Tensor]) -> None:
        reached = leaves_behind(outputs, self.params)
        self._unused = [index for index, is_reached in enumerate(reached) if not is_reached]
        if self._unused_before is not None and self._unused_before != self._unused:
            self._unused_changed = True
        self._unused_before = self._unused
        if not self._unused and not self._warned_not_needed:
            self._warned_not_needed = True
            warnings.warn(NOT_NEEDED, stacklevel=4)

    def _check_finished(self) -> None:
        if not self._open:
            return
        missing = [index for index in range(len(self.params)) if not self._ready[index]]
        text = UNFINISHED
        if self.static_graph:
            text += GRAPH_CHANGED
        else:
            text += UNUSED + ("" if self.find_unused else ENABLE_DETECTION) + NOT_FOUND
        rank = self.group.rank()
        if get_debug_level() is not DebugLevel.OFF:
            text += f"\nParameters which did not receive grad for rank {rank}: " + ", ".join(self.names[i] for i in missing)
        text += f"\nParameter indices which did not receive grad for rank {rank}: " + " ".join(map(str, missing))
        raise RuntimeError(text if get_debug_level() is not DebugLevel.OFF else text + SAY_NAMES)

    def _check_reducer_finalized(self) -> None:
        self._check_finished()

    def _set_static_graph(self) -> None:
        if self.iterations or self._open:
            raise RuntimeError(
                "set_static_graph() should be called before training loop starts and after DistributedDataParallel is "
                "constructed."
            )
        self.static_graph = True

    def _set_forward_pass_work_handle(self, work: Any, use_static_world_size: bool) -> None:
        self._forward_work = (work, use_static_world_size)

    def _update_process_group(self, group: Any) -> None:
        self.group = group

    # Collection of gradients.

    def _take(self, index: int, param: Tensor) -> None:
        if not self._open:
            self._open = True
            self.times["backward_compute_time_start"] = time.perf_counter_ns()
        if self._unused_pending:
            self._unused_pending = False
            self._mark_unused()
        if self._arrivals is not None:
            self._arrivals.append(index)
        if self.static_graph:
            if self._first_static:
                self._triggers_left[index] += 1
                return
            if self._triggers_left[index] == 0:
                raise RuntimeError(NEW_USE)
            self._triggers_left[index] -= 1
            if self._triggers_left[index]:
                return
        self._put(index, param)
        if self._places[index][0].left == 0:
            self._start_complete()

    def _mark_unused(self) -> None:
        for index in self._unused:
            param = self.params[index]
            bucket, at = self._places[index]
            if bucket.holds(at, param.grad):
                param.grad = param.grad.clone()  # type: ignore[union-attr]  # Unchanged if no rank uses the parameter.
            self._put(index, param)
        if self.skip_unused:
            for bucket in self.buckets:
                bucket.skipped = self._unused_set.issuperset(bucket.members)
        self._start_complete()

    def _put(self, index: int, param: Tensor) -> None:
        """Copy a gradient into its bucket."""
        if self._ready[index]:
            raise RuntimeError(self._twice(index))
        self._ready[index] = 1
        bucket, at = self._places[index]
        if not self._divisor_known:
            self._find_divisor()
        if bucket.left == len(bucket.members):
            bucket.provide(self.as_views)
        bucket.left -= 1
        gradient = param.grad
        if gradient is None:
            with no_grad():
                bucket.memory.as_strided(*bucket.places[at]).zero_()
            return
        factor = 1.0 if self._hook is not None else self._factor
        if gradient.requires_grad:
            self._put_with_graph(bucket, at, gradient, factor)
        elif gradient.data_ptr() == bucket.addresses[at]:
            if factor != 1.0:
                gradient.mul_(factor)
        else:
            view = bucket.memory.as_strided(*bucket.places[at])
            if factor != 1.0:
                _core.mul(gradient, factor, out=view)
            else:
                view.copy_(gradient)
            if index in self._unused_set:
                return  # Maybe no rank uses it.
            if self.as_views or (sys.getrefcount(gradient) <= _OWN_REFERENCES and storage_holders(gradient) == 1):
                param.grad = view
            else:
                self._kept.append((gradient, view))

    def _put_with_graph(self, bucket: Bucket, at: int, gradient: Tensor, factor: float) -> None:
        warnings.warn(CREATE_GRAPH, stacklevel=2)
        assert bucket.memory is not None
        with no_grad():
            view = bucket.memory.as_strided(*bucket.places[at])
            view.copy_(gradient.detach())
            if factor != 1.0:
                view.mul_(factor)
        self._kept.append((gradient.detach(), view))

    def _twice(self, index: int) -> str:
        name = self.names[index]
        return (
            f"{TWICE}\nParameter at index {index} with name {name} has been marked as ready twice. This means that multiple "
            "autograd engine  hooks have fired for this particular parameter during this iteration."
        )

    def _find_divisor(self) -> None:
        """Find the divisor of the sums: the number of ranks that still train."""
        self._divisor_known = True
        size = self.group.size()
        if self._forward_work is not None:
            (work, is_static), self._forward_work = self._forward_work, None
            work.wait()
            if not is_static:
                size = int(work.result()[0].item())
        self._factor = 1.0 / size

    # Reduction of buckets.

    def _start_complete(self) -> None:
        """Start to reduce complete buckets, in the order of the buckets, which is the same on all ranks."""
        buckets = self.buckets
        while self._next < len(buckets) and buckets[self._next].left == 0:
            bucket = buckets[self._next]
            if self._next == 0:
                self.times["backward_comm_time_start"] = time.perf_counter_ns()
            self._next += 1
            if not bucket.skipped:
                bucket.pending = self._run_comm_hook(bucket)
            if self._next == len(buckets):
                self._start_used()
                queue_callback(self._finish)

    def _run_comm_hook(self, bucket: Bucket) -> Any:
        if self._hook is None:
            return self.group.allreduce([bucket.memory], AllreduceOptions(asyncOp=True))
        state, hook = self._hook
        with no_grad():
            future = hook(state, bucket.as_grad_bucket(len(self.buckets)))
        if not hasattr(future, "wait"):
            raise RuntimeError(f"callback must return a torch.futures.Future object, but got {type(future).__name__}")
        return future

    def _start_used(self) -> None:
        """Start the collective that tells which parameters are used on any rank."""
        self._used_work = None
        if self._used is not None:
            used = self._used_map = make_tensor(list(self._used), dtype=_core.int32)
            self._used_work = self.group.allreduce([used], AllreduceOptions(asyncOp=True))

    def _finish(self) -> None:
        """Finish a backward: wait for all buckets."""
        self._expects = self._open = False
        self.times["backward_compute_time_end"] = time.perf_counter_ns()
        with no_grad():
            for bucket in self.buckets:
                if bucket.pending is not None:
                    pending, bucket.pending = bucket.pending, None
                    result = pending.wait()
                    if self._hook is not None:
                        self._accept(bucket, result)
            if self._used_work is not None:
                self._used_work.wait()
                self._used_anywhere = [count > 0 for count in self._used_map.tolist()]
                if not self.static_graph:
                    self._used = bytearray(len(self.params))
            kept, self._kept = self._kept, []
            for gradient, view in kept:
                gradient.data.copy_(view)
            for index in self._unused:
                self._give(index)
        self.times["backward_comm_time_end"] = time.perf_counter_ns()
        self.iterations += 1
        if not self.rebuilt and (self.static_graph or not self.find_unused):
            self._may_rebuild = True
        if self.release:
            for bucket in self.buckets:
                bucket.memory = None

    def _accept(self, bucket: Bucket, result: Any) -> None:
        """Copy the result of the future of a hook into the bucket."""
        if isinstance(result, (list, tuple)) and len(result) == 1:
            result = result[0]
        if not isinstance(result, Tensor):
            raise RuntimeError(
                f"expected the future of the communication hook to hold a tensor, but it holds {type(result).__name__}"
            )
        memory = bucket.memory
        assert memory is not None
        if result.numel() != bucket.numel:
            raise RuntimeError(
                f"expected the communication hook to return {bucket.numel} elements for bucket {bucket.number}, but it "
                f"returned {result.numel()}"
            )
        if result.data_ptr() != memory.data_ptr() or result.dtype != memory.dtype:
            memory.copy_(result.reshape(-1))

    def _give(self, index: int) -> None:
        """Give a parameter that is unused on this rank the gradient of the ranks that use it."""
        bucket, at = self._places[index]
        if bucket.skipped or (self._used_anywhere is not None and not self._used_anywhere[index]):
            return
        param = self.params[index]
        view = bucket.memory.as_strided(*bucket.places[at])
        gradient = param.grad
        if (
            gradient is None
            or self.as_views
            or (sys.getrefcount(gradient) <= _OWN_REFERENCES and storage_holders(gradient) == 1)
        ):
            param.grad = view
        else:
            gradient.data.copy_(view)

    # Static graphs.

    def is_first_static(self) -> bool:
        """Return whether the first backward of a static graph has yet to finish."""
        return self._first_static

    def _delay_all_reduce(self) -> None:
        """Finish the first backward of a static graph, which shows which gradients come, and how often."""
        if not self._first_static:
            return  # A second forward with the same backward.
        self._triggers = self._triggers_left
        self._unused = [index for index, count in enumerate(self._triggers) if count == 0]
        self._unused_set = set(self._unused)
        self._open = True
        for index in self._unused:
            bucket, at = self._places[index]
            gradient = self.params[index].grad
            if bucket.holds(at, gradient):
                self.params[index].grad = gradient.clone()  # type: ignore[union-attr]
        for index, param in enumerate(self.params):
            self._put(index, param)
        for bucket in self.buckets:
            bucket.pending = self._run_comm_hook(bucket)
        self._next = len(self.buckets)
        self._start_used()
        self._first_static = False
        self._used = None
        self._finish()

    # Rebuilding of buckets.

    def _push_all_rebuilt_params(self) -> None:
        """Let a rank without inputs take part in the next rebuilding."""
        if not self.rebuilt and (self.static_graph or not self.find_unused):
            self._may_rebuild = True

    def _rebuild_buckets(self) -> bool:
        """Rebuild the buckets once, in the order in which the gradients of rank 0 came."""
        self._check_finished()
        if not self._may_rebuild:
            return False
        count = len(self.params)
        arrivals = list(dict.fromkeys(self._arrivals or ()))
        known = set(arrivals)
        arrivals += [index for index in range(count - 1, -1, -1) if index not in known]
        order = make_tensor(arrivals, dtype=_core.int32)
        self.group.broadcast([order], BroadcastOptions(rootRank=0)).wait()
        old = [(bucket, at, bucket.params[at]) for bucket in self.buckets for at in range(len(bucket.members))]
        own = [(param, bucket.holds(at, param.grad)) for bucket, at, param in old]
        self._set_buckets(assign_buckets(self.params, order.tolist(), self.limits))
        held = {id(param) for param, is_held in own if is_held}
        with no_grad():
            for bucket in self.buckets:
                moving = [at for at, param in enumerate(bucket.params) if id(param) in held]
                if moving:
                    memory = bucket.provide(persistent=True)
                    for at in moving:
                        bucket.move(at, memory)
        self._arrivals, self._may_rebuild, self.rebuilt = None, False, True
        return True

    # The part of ranks without inputs in the backward of the others.

    def _take_part(self) -> None:
        """Reduce buckets of zeros; the gradients of this rank are unchanged."""
        self._forward_work = None
        own = [(bucket.memory, bucket.addresses) for bucket in self.buckets]
        with no_grad():
            for bucket in self.buckets:
                bucket.memory = None
                bucket.provide(persistent=True).zero_()
                bucket.pending = self._run_comm_hook(bucket)
            if self.find_unused and not self.static_graph:
                used = _core.zeros(len(self.params), dtype=_core.int32)
                self.group.allreduce([used], AllreduceOptions()).wait()
            for bucket, (memory, addresses) in zip(self.buckets, own, strict=True):
                pending, bucket.pending = bucket.pending, None
                pending.wait()
                bucket.memory, bucket.addresses = memory, addresses

    # Statistics.

    def count_reduced(self) -> int:
        """Return the number of buckets that the last backward has reduced."""
        return 0 if not self.iterations else sum(not bucket.skipped for bucket in self.buckets)

    def unused_bytes(self) -> int:
        """Return the size of the parameters that the last forward did not use."""
        return sum(self.params[index].numel() * self.params[index].element_size() for index in self._unused)

    def can_be_static(self) -> bool:
        """Return whether every backward so far used the same parameters."""
        return not self._unused_changed and self.iterations > 1

    def measured(self) -> dict[str, int]:
        """Return times of the last step in nanoseconds: backward, communication, and their overlap."""
        if not self.iterations or "backward_comm_time_start" not in self.times:
            return {}
        times = self.times
        begin, end = times["backward_compute_time_start"], times["backward_compute_time_end"]
        first, last = times["backward_comm_time_start"], times["backward_comm_time_end"]
        return {
            **times,
            "forward_compute_time": begin - times.get("forward_compute_time_start", begin),
            "backward_compute_time": end - begin,
            "backward_comm_time": last - first,
            "backward_compute_comm_overlap_time": max(0, end - first),
        }
