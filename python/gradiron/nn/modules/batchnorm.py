"""Batch normalization layers."""

from __future__ import annotations

from typing import Any

from ... import _core
from ..._core import Tensor
from ...autograd.grad_mode import no_grad
from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedBuffer, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """Parameters and running statistics of batch and instance normalization."""

    _version = 2
    # The numbers of dimensions that the input may have.
    _dims: tuple[int, ...] = ()
    weight: Any
    bias: Any
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            made = Parameter(_core.empty(num_features, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        kept = track_running_stats
        self.register_buffer("running_mean", _core.zeros(num_features, device=device, dtype=dtype) if kept else None)
        self.register_buffer("running_var", _core.ones(num_features, device=device, dtype=dtype) if kept else None)
        self.register_buffer("num_batches_tracked", _core.zeros((), dtype=_core.int64, device=device) if kept else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Reset the running estimates to mean 0 and variance 1."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Reset scale, shift and running estimates."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if not self._dims:
            raise NotImplementedError
        if input.dim() not in self._dims:
            allowed = " or ".join(f"{n}D" for n in self._dims)
            raise ValueError(f"expected {allowed} input (got {input.dim()}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats:
            # State dicts of version 1 lack the number of batches.
            counted = self.num_batches_tracked
            known = counted is not None and not counted.is_meta
            state_dict.setdefault(prefix + "num_batches_tracked", counted if known else _core.zeros((), dtype=_core.int64))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    def _count_batch(self) -> float:
        """Count a training batch and return the weight of its statistics in the running estimates."""
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the average of all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        return momentum

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = self._count_batch()
        # In training the running statistics are updated, in evaluation they are used.
        kept = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if kept else None,
            self.running_var if kept else None,
            self.weight,
            self.bias,
            self.training or (self.running_mean is None and self.running_var is None),
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Normalize each channel over the batch (batch normalization of 2D or 3D input).

    `y = (x - mean) / sqrt(var + eps) * weight + bias`. In training, mean and biased variance come from the batch, and
    running estimates of both are updated as `(1 - momentum) * running + momentum * new`, with the unbiased variance.
    In evaluation the running estimates are used.

    Args:
        num_features: number of channels `C`.
        eps: term added to the variance for numerical stability. Default: `1e-5`
        momentum: weight of the new batch in the running estimates; the plain average of all batches if `None`.
            Default: `0.1`
        affine: whether to scale and shift by learned parameters. Default: `True`
        track_running_stats: whether to keep running estimates; without them, evaluation uses batch statistics, too.
            Default: `True`
        device, dtype: device and data type of the parameters.
        bias: whether there is a shift if `affine`. Default: `True`

    Shape:
        - Input and output: `(N, C)` or `(N, C, L)`.

    Examples:
        >>> layer = nn.BatchNorm1d(4)
        >>> layer(torch.randn(2, 4, 10)).shape
        torch.Size([2, 4, 10])
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalize each channel over the batch (batch normalization of 4D input).

    `y = (x - mean) / sqrt(var + eps) * weight + bias`. In training, mean and biased variance come from the batch, and
    running estimates of both are updated as `(1 - momentum) * running + momentum * new`, with the unbiased variance.
    In evaluation the running estimates are used.

    Args:
        num_features: number of channels `C`.
        eps: term added to the variance for numerical stability. Default: `1e-5`
        momentum: weight of the new batch in the running estimates; the plain average of all batches if `None`.
            Default: `0.1`
        affine: whether to scale and shift by learned parameters. Default: `True`
        track_running_stats: whether to keep running estimates; without them, evaluation uses batch statistics, too.
            Default: `True`
        device, dtype: device and data type of the parameters.
        bias: whether there is a shift if `affine`. Default: `True`

    Shape:
        - Input and output: `(N, C, H, W)`.

    Examples:
        >>> layer = nn.BatchNorm2d(4)
        >>> layer(torch.randn(2, 4, 8, 6)).shape
        torch.Size([2, 4, 8, 6])
    """

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalize each channel over the batch (batch normalization of 5D input).

    `y = (x - mean) / sqrt(var + eps) * weight + bias`. In training, mean and biased variance come from the batch, and
    running estimates of both are updated as `(1 - momentum) * running + momentum * new`, with the unbiased variance.
    In evaluation the running estimates are used.

    Args:
        num_features: number of channels `C`.
        eps: term added to the variance for numerical stability. Default: `1e-5`
        momentum: weight of the new batch in the running estimates; the plain average of all batches if `None`.
            Default: `0.1`
        affine: whether to scale and shift by learned parameters. Default: `True`
        track_running_stats: whether to keep running estimates; without them, evaluation uses batch statistics, too.
            Default: `True`
        device, dtype: device and data type of the parameters.
        bias: whether there is a shift if `affine`. Default: `True`

    Shape:
        - Input and output: `(N, C, D, H, W)`.

    Examples:
        >>> layer = nn.BatchNorm3d(4)
        >>> layer(torch.randn(2, 4, 6, 8, 6)).shape
        torch.Size([2, 4, 6, 8, 6])
    """

    _dims = (5,)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = _core.zeros((), dtype=_core.int64, device=device)

    def reset_parameters(self) -> None:
        """Reset the parameters, once they have their shapes."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Set `num_features` and create parameters and buffers from the size of the first input."""
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        with no_grad():
            for value in (self.weight, self.bias, self.running_mean, self.running_var):
                if value is not None:
                    value.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm1d` layer that takes `num_features` from its first input.

    Until the first call its parameters and buffers are uninitialized; then it becomes a `BatchNorm1d`.

    Args:
        eps: term added to the variance for numerical stability. Default: `1e-5`
        momentum: weight of the new batch in the running estimates; the plain average of all batches if `None`.
            Default: `0.1`
        affine: whether to scale and shift by learned parameters. Default: `True`
        track_running_stats: whether to keep running estimates; without them, evaluation uses batch statistics, too.
            Default: `True`
        device, dtype: device and data type of the parameters.
        bias: whether there is a shift if `affine`. Default: `True`

    Examples:
        >>> layer = nn.LazyBatchNorm1d()
        >>> layer(torch.randn(2, 4, 10)).shape
        torch.Size([2, 4, 10])
        >>> layer.num_features
        4
    """

    cls_to_become = BatchNorm1d
    _dims = (2, 3)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm2d` layer that takes `num_features` from its first input.

    Until the first call its parameters and buffers are uninitialized; then it becomes a `BatchNorm2d`.

    Args:
        eps: term added to the variance for numerical stability. Default: `1e-5`
        momentum: weight of the new batch in the running estimates; the plain average of all batches if `None`.
            Default: `0.1`
        affine: whether to scale and shift by learned parameters. Default: `True`
        track_running_stats: whether to keep running estimates; without them, evaluation uses batch statistics, too.
            Default: `True`
        device, dtype: device and data type of the parameters.
        bias: whether there is a shift if `affine`. Default: `True`

    Examples:
        >>> layer = nn.LazyBatchNorm2d()
        >>> layer(torch.randn(2, 4, 8, 6)).shape
        torch.Size([2, 4, 8, 6])
        >>> layer.num_features
        4
    """

    cls_to_become = BatchNorm2d
    _dims = (4,)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm3d` layer that takes `num_features` from its first input.

    Until the first call its parameters and buffers are uninitialized; then it becomes a `BatchNorm3d`.

    Args:
        eps: term added to the variance for numerical stability. Default: `1e-5`
        momentum: weight of the new batch in the running estimates; the plain average of all batches if `None`.
            Default: `0.1`
        affine: whether to scale and shift by learned parameters. Default: `True`
        track_running_stats: whether to keep running estimates; without them, evaluation uses batch statistics, too.
            Default: `True`
        device, dtype: device and data type of the parameters.
        bias: whether there is a shift if `affine`. Default: `True`

    Examples:
        >>> layer = nn.LazyBatchNorm3d()
        >>> layer(torch.randn(2, 4, 6, 8, 6)).shape
        torch.Size([2, 4, 6, 8, 6])
        >>> layer.num_features
        4
    """

    cls_to_become = BatchNorm3d
    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Normalize each channel over the batches of all processes (synchronized batch normalization).

    It is `BatchNorm` whose training statistics cover the whole process group. Without an initialized process group,
    or with a single process, it uses its own batch.

    Args:
        num_features: number of channels `C`.
        eps: term added to the variance for numerical stability. Default: `1e-5`
        momentum: weight of the new batch in the running estimates; the plain average of all batches if `None`.
            Default: `0.1`
        affine: whether to scale and shift by learned parameters. Default: `True`
        track_running_stats: whether to keep running estimates; without them, evaluation uses batch statistics, too.
            Default: `True`
        process_group: processes that share statistics; all of them if `None`.
        device, dtype: device and data type of the parameters.
        bias: whether there is a shift if `affine`. Default: `True`

    Shape:
        - Input and output: `(N, C, *)`.

    Examples:
        >>> layer = nn.SyncBatchNorm(4)
        >>> layer(torch.randn(2, 4, 8, 6)).shape
        torch.Size([2, 4, 8, 6])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        from ... import distributed as dist

        batch_statistics = self.training or (self.running_mean is None and self.running_var is None)
        if not (batch_statistics and self.training and dist.is_initialized()):
            return super().forward(input)
        group = dist.group.WORLD if self.process_group is None else self.process_group
        if group is None or group.size() == 1:
            return super().forward(input)
        from ._sync_batchnorm import SyncBatchNormFunction

        self._check_input_dim(input)
        running_mean = self.running_mean if self.track_running_stats else None
        running_var = self.running_var if self.track_running_stats else None
        return SyncBatchNormFunction.apply(
            input, self.weight, self.bias, running_mean, running_var, self.eps, self._count_batch(), group
        )

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """Return the module with its batch normalization layers replaced by `SyncBatchNorm` of the same tensors.

        Args:
            module: module to convert.
            process_group: processes that share statistics; all of them if `None`.
        """
        made = module
        if isinstance(module, _BatchNorm):
            made = SyncBatchNorm(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                made.weight = module.weight
                made.bias = module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked", "training"):
                setattr(made, name, getattr(module, name))
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
