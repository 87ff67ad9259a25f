"""Hooks that average gradients, as they are or rounded to half precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import _core
from ...._core import Tensor
from ....autograd.grad_mode import no_grad
from ....futures import Future
from ... import distributed_c10d as c10d
from ..._grad_bucket import GradBucket
from ...options import AllreduceOptions

__all__ = ["allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper"]

Hook = Callable[[Any, GradBucket], Future]


def start_average(process_group: Any, tensor: Tensor) -> Any:
    """Begins to average a tensor over the ranks, in place; the work."""
    group: Any = process_group if process_group is not None else c10d._get_default_group()
    tensor.div_(group.size())
    return group.allreduce([tensor], AllreduceOptions(asyncOp=True))


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Averages gradients, as without a hook."""
    return start_average(process_group, bucket.buffer()).get_future().then(lambda future: future.value()[0])


def _decompress(buffer: Tensor, future: Future) -> Tensor:
    value = future.value()
    with no_grad():
        buffer.copy_(value if isinstance(value, Tensor) else value[0])
    return buffer


def _compress_hook(dtype: Any, process_group: Any, bucket: GradBucket) -> Future:
    buffer = bucket.buffer()
    work = start_average(process_group, buffer.to(dtype))
    return work.get_future().then(lambda future: _decompress(buffer, future))


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Averages gradients that are rounded to float16."""
    return _compress_hook(_core.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Averages gradients that are rounded to bfloat16."""
    return _compress_hook(_core.bfloat16, process_group, bucket)


def _compress_wrapper(dtype: Any, hook: Hook) -> Hook:
    def compressed(state: Any, bucket: GradBucket) -> Future:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        return hook(state, bucket).then(lambda future: _decompress(buffer, future))

    return compressed


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """The hook, given gradients that are rounded to float16."""
    return _compress_wrapper(_core.float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """The hook, given gradients that are rounded to bfloat16."""
    return _compress_wrapper(_core.bfloat16, hook)
