"""Batch normalization over several ranks, with one collective in the forward and one in the backward."""

from __future__ import annotations

from typing import Any

from ... import _core
from ..._core import Tensor
from ...autograd import Function
from ...distributed.options import AllgatherOptions, AllreduceOptions

__all__ = ["SyncBatchNormFunction"]


def _over_channels(values: Tensor, dims: int) -> Tensor:
    """Reshape a vector over channels so that it broadcasts against tensors of `dims` dimensions."""
    return values.reshape(1, -1, *[1] * (dims - 2))


class SyncBatchNormFunction(Function):
    """Standardize each channel over the batches of all ranks."""

    @staticmethod
    def forward(
        ctx: Any,
        input: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        eps: float,
        momentum: float,
        group: Any,
    ) -> Tensor:
        # Half precision is summed in float32, as in a single process.
        wide = _core.float32 if input.dtype in (_core.float16, _core.bfloat16) else input.dtype
        values = input.to(wide)
        channels, axes = input.shape[1], [axis for axis in range(input.dim()) if axis != 1]
        count = input.numel() // channels
        if count:
            mean = values.mean(axes)
            spread = (values - _over_channels(mean, input.dim())).square().sum(axes)
        else:
            mean, spread = input.new_zeros(channels, dtype=wide), input.new_zeros(channels, dtype=wide)
        own = _core.cat([mean, spread, mean.new_full((1,), count)])
        gathered = [_core.empty(own.shape, dtype=own.dtype, device=own.device) for _ in range(group.size())]
        group.allgather([gathered], [own], AllgatherOptions()).wait()
        table = _core.stack(gathered)
        means, spreads, counts = table[:, :channels], table[:, channels:-1], table[:, -1:]
        total = float(counts.sum())
        if total <= 1:
            raise ValueError(
                f"Expected more than 1 value per channel when training, got input size {tuple(input.shape)} on all ranks"
            )
        mean = (means * counts).sum(0) / total
        spread = (spreads + counts * (means - mean).square()).sum(0)
        scale = _core.rsqrt(spread / total + eps)
        if running_mean is not None and running_var is not None:
            running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
            running_var.mul_(1 - momentum).add_(spread / (total - 1), alpha=momentum)
        normal = (values - _over_channels(mean, input.dim())) * _over_channels(scale, input.dim())
        output = normal if weight is None else normal * _over_channels(weight, input.dim())
        if bias is not None:
            output = output + _over_channels(bias, input.dim())
        ctx.save_for_backward(input, weight, mean, scale)
        ctx.group, ctx.total, ctx.axes, ctx.has_bias = group, total, axes, bias is not None
        return output.to(input.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        input, weight, mean, scale = ctx.saved_tensors
        dims, axes = input.dim(), ctx.axes
        gradient = gradient.to(mean.dtype)
        normal = (input.to(mean.dtype) - _over_channels(mean, dims)) * _over_channels(scale, dims)
        sums = _core.stack([gradient.sum(axes), (gradient * normal).sum(axes)])
        of_bias, of_weight = sums.clone()
        of_input = None
        if ctx.needs_input_grad[0]:
            # The input of each rank affects mean and standard deviation of all ranks.
            ctx.group.allreduce([sums], AllreduceOptions()).wait()
            shift, turn = sums / ctx.total
            of_input = gradient - _over_channels(shift, dims) - normal * _over_channels(turn, dims)
            factor = scale if weight is None else scale * weight
            of_input = (of_input * _over_channels(factor, dims)).to(input.dtype)
        if weight is not None:
            of_weight, of_bias = of_weight.to(weight.dtype), of_bias.to(weight.dtype)
        return (
            of_input,
            of_weight if ctx.needs_input_grad[1] else None,
            of_bias if ctx.has_bias and ctx.needs_input_grad[2] else None,
            *[None] * 5,
        )
