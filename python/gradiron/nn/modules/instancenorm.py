"""Instance normalization layers."""

from __future__ import annotations

import warnings
from typing import Any

from ..._core import Tensor
from .. import functional as F
from .batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self) -> int:
        """Return the number of dimensions of an input without a batch dimension."""
        return self._dims[0]

    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        single = self._get_no_batch_dim()
        dim = input.dim() - single
        if input.size(dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: "
                    f"{input.size(dim)}."
                )
            warnings.warn(
                f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing in "
                "num_features, which is not used because affine=False",
                stacklevel=2,
            )
        if dim == 0:
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        if local_metadata.get("version") is None and not self.track_running_stats:
            found = [prefix + name for name in ("running_mean", "running_var") if prefix + name in state_dict]
            if found:
                kind = type(self).__name__
                names = " and ".join(f'"{key}"' for key in found)
                rest[-1].append(
                    f"Unexpected running stats buffer(s) {names} for {kind} with track_running_stats=False. If state_dict is "
                    f"a checkpoint saved before 0.4.0, this may be expected because {kind} does not track running stats by "
                    "default since 0.4.0. Please remove these keys from state_dict. If the running stats are actually needed, "
                    f"instead set track_running_stats=True in {kind} to enable them. See the documentation of {kind} for "
                    "details."
                )
                for key in found:
                    del state_dict[key]
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class InstanceNorm1d(_InstanceNorm):
    """Normalize each channel of each sequence by its own mean and variance (instance normalization).

    `y = (x - mean) / sqrt(var + eps) * weight + bias`, with the biased variance. Unlike `BatchNorm1d`, by default it
    has no learned parameters and uses the statistics of its input in evaluation, too.

    Args:
        num_features: number of channels `C`.
        eps: term added to the variance for numerical stability. Default: `1e-5`
        momentum: weight of the new batch in the running estimates; the plain average of all batches if `None`.
            Default: `0.1`
        affine: whether to scale and shift by learned parameters. Default: `False`
        track_running_stats: whether to keep running estimates and use them in evaluation. Default: `False`
        device, dtype: device and data type of the parameters.
        bias: whether there is a shift if `affine`. Default: `True`

    Shape:
        - Input and output: `(N, C, L)` or `(C, L)`.

    Examples:
        >>> layer = nn.InstanceNorm1d(4)
        >>> layer(torch.randn(2, 4, 10)).shape
        torch.Size([2, 4, 10])
    """

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalize each channel of each image by its own mean and variance (instance normalization).

    `y = (x - mean) / sqrt(var + eps) * weight + bias`, with the biased variance. Unlike `BatchNorm2d`, by default it
    has no learned parameters and uses the statistics of its input in evaluation, too.

    Args:
        num_features: number of channels `C`.
        eps: term added to the variance for numerical stability. Default: `1e-5`
        momentum: weight of the new batch in the running estimates; the plain average of all batches if `None`.
            Default: `0.1`
        affine: whether to scale and shift by learned parameters. Default: `False`
        track_running_stats: whether to keep running estimates and use them in evaluation. Default: `False`
        device, dtype: device and data type of the parameters.
        bias: whether there is a shift if `affine`. Default: `True`

    Shape:
        - Input and output: `(N, C, H, W)` or `(C, H, W)`.

    Examples:
        >>> layer = nn.InstanceNorm2d(4)
        >>> layer(torch.randn(2, 4, 8, 6)).shape
        torch.Size([2, 4, 8, 6])
    """

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalize each channel of each volume by its own mean and variance (instance normalization).

    `y = (x - mean) / sqrt(var + eps) * weight + bias`, with the biased variance. Unlike `BatchNorm3d`, by default it
    has no learned parameters and uses the statistics of its input in evaluation, too.

    Args:
        num_features: number of channels `C`.
        eps: term added to the variance for numerical stability. Default: `1e-5`
        momentum: weight of the new batch in the running estimates; the plain average of all batches if `None`.
            Default: `0.1`
        affine: whether to scale and shift by learned parameters. Default: `False`
        track_running_stats: whether to keep running estimates and use them in evaluation. Default: `False`
        device, dtype: device and data type of the parameters.
        bias: whether there is a shift if `affine`. Default: `True`

    Shape:
        - Input and output: `(N, C, D, H, W)` or `(C, D, H, W)`.

    Examples:
        >>> layer = nn.InstanceNorm3d(4)
        >>> layer(torch.randn(2, 4, 6, 8, 6)).shape
        torch.Size([2, 4, 6, 8, 6])
    """

    _dims = (4, 5)


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm1d` layer that takes `num_features` from its first input.

    Until the first call its parameters and buffers are uninitialized; then it becomes an `InstanceNorm1d`.

    Args:
        eps: term added to the variance for numerical stability. Default: `1e-5`
        momentum: weight of the new batch in the running estimates; the plain average of all batches if `None`.
            Default: `0.1`
        affine: whether to scale and shift by learned parameters. Default: `True`
        track_running_stats: whether to keep running estimates and use them in evaluation. Default: `True`
        device, dtype: device and data type of the parameters.
        bias: whether there is a shift if `affine`. Default: `True`

    Examples:
        >>> layer = nn.LazyInstanceNorm1d()
        >>> layer(torch.randn(2, 4, 10)).shape
        torch.Size([2, 4, 10])
        >>> layer.num_features
        4
    """

    cls_to_become = InstanceNorm1d
    _dims = (2, 3)


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm2d` layer that takes `num_features` from its first input.

    Until the first call its parameters and buffers are uninitialized; then it becomes an `InstanceNorm2d`.

    Args:
        eps: term added to the variance for numerical stability. Default: `1e-5`
        momentum: weight of the new batch in the running estimates; the plain average of all batches if `None`.
            Default: `0.1`
        affine: whether to scale and shift by learned parameters. Default: `True`
        track_running_stats: whether to keep running estimates and use them in evaluation. Default: `True`
        device, dtype: device and data type of the parameters.
        bias: whether there is a shift if `affine`. Default: `True`

    Examples:
        >>> layer = nn.LazyInstanceNorm2d()
        >>> layer(torch.randn(2, 4, 8, 6)).shape
        torch.Size([2, 4, 8, 6])
        >>> layer.num_features
        4
    """

    cls_to_become = InstanceNorm2d
    _dims = (3, 4)


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An `InstanceNorm3d` layer that takes `num_features` from its first input.

    Until the first call its parameters and buffers are uninitialized; then it becomes an `InstanceNorm3d`.

    Args:
        eps: term added to the variance for numerical stability. Default: `1e-5`
        momentum: weight of the new batch in the running estimates; the plain average of all batches if `None`.
            Default: `0.1`
        affine: whether to scale and shift by learned parameters. Default: `True`
        track_running_stats: whether to keep running estimates and use them in evaluation. Default: `True`
        device, dtype: device and data type of the parameters.
        bias: whether there is a shift if `affine`. Default: `True`

    Examples:
        >>> layer = nn.LazyInstanceNorm3d()
        >>> layer(torch.randn(2, 4, 6, 8, 6)).shape
        torch.Size([2, 4, 6, 8, 6])
        >>> layer.num_features
        4
    """

    cls_to_become = InstanceNorm3d
    _dims = (4, 5)
