"""Layer, group, root mean square and local response normalization."""

from __future__ import annotations

import numbers
from typing import Any

from ... import _core
from ..._core import Tensor
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """Divide each element by the activity of the neighbouring channels (local response normalization).

    `y[c] = x[c] / (k + alpha / size * sum(x**2 over size channels around c)) ** beta`.

    Args:
        size: number of neighbouring channels that are summed over.
        alpha: weight of the sum of squares. Default: `1e-4`
        beta: exponent. Default: `0.75`
        k: constant added to the sum. Default: `1.0`

    Shape:
        - Input and output: `(N, C, *)`.

    Examples:
        >>> nn.LocalResponseNorm(2)(torch.randn(4, 8, 6, 6)).shape
        torch.Size([4, 8, 6, 6])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """Apply local response normalization to images as old Lua Torch models expect it.

    It differs from `LocalResponseNorm` at the borders: the squares of the first channel count in all windows after
    it.

    Args:
        size: number of neighbouring channels that are summed over.
        alpha: weight of the sum of squares. Default: `1e-4`
        beta: exponent. Default: `0.75`
        k: constant added to the sum. Default: `1`

    Shape:
        - Input and output: `(N, C, H, W)`.

    Examples:
        >>> nn.CrossMapLRN2d(3)(torch.randn(4, 8, 6, 6)).shape
        torch.Size([4, 8, 6, 6])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        channels, reach = input.size(1), (self.size - 1) // 2
        squares = input.square()

        def first(count: int) -> Tensor:
            return squares[:, :1].expand(-1, count, -1, -1)

        padded = _core.cat([first(reach) * 0, squares, first(reach) * 0], 1)
        scale = padded.narrow(1, 0, channels)
        for at in range(1, 2 * reach + 1):
            scale = scale + padded.narrow(1, at, channels)
        past = max(channels - reach - 1, 0)
        # The first channel stays in all later windows.
        scale = scale + _core.cat([first(channels - past) * 0, first(past)], 1)
        return input * (self.k + scale * (self.alpha / self.size)).pow(-self.beta)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LayerNorm(Module):
    """Normalize each sample over its last dimensions (layer normalization).

    `y = (x - mean) / sqrt(var + eps) * weight + bias`, with mean and biased variance over the dimensions of
    `normalized_shape`; scale and shift are learned for each element.

    Args:
        normalized_shape: sizes of the last dimensions, over which to normalize; an integer stands for the last one.
        eps: term added to the variance for numerical stability. Default: `1e-5`
        elementwise_affine: whether to scale and shift by learned parameters. Default: `True`
        bias: whether there is a shift if `elementwise_affine`. Default: `True`
        device, dtype: device and data type of the parameters.

    Shape:
        - Input and output: `(*, *normalized_shape)`.

    Examples:
        >>> layer = nn.LayerNorm(4)
        >>> layer(torch.randn(2, 3, 4)).shape
        torch.Size([2, 3, 4])
    """

    weight: Any
    bias: Any

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            made = Parameter(_core.empty(self.normalized_shape, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the scale to one and the shift to zero."""
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


def _as_shape(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, numbers.Integral) else tuple(shape)


class GroupNorm(Module):
    """Normalize groups of channels of each sample (group normalization).

    `y = (x - mean) / sqrt(var + eps) * weight + bias`, with mean and biased variance over each group and all
    positions; scale and shift are learned for each channel. One group is layer normalization over channels and
    positions, one group for each channel is instance normalization.

    Args:
        num_groups: number of groups; must divide `num_channels`.
        num_channels: number of channels `C`.
        eps: term added to the variance for numerical stability. Default: `1e-5`
        affine: whether to scale and shift by learned parameters. Default: `True`
        device, dtype: device and data type of the parameters.
        bias: whether there is a shift if `affine`. Default: `True`

    Shape:
        - Input and output: `(N, C, *)`.

    Examples:
        >>> layer = nn.GroupNorm(2, 8)
        >>> layer(torch.randn(3, 8, 5, 5)).shape
        torch.Size([3, 8, 5, 5])
    """

    weight: Any
    bias: Any

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            made = Parameter(_core.empty(num_channels, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the scale to one and the shift to zero."""
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class RMSNorm(Module):
    """Divide each sample by its root mean square over the last dimensions (RMS normalization).

    `y = x / sqrt(mean(x**2) + eps) * weight`; unlike `LayerNorm`, the mean is not subtracted.

    Args:
        normalized_shape: sizes of the last dimensions, over which to normalize; an integer stands for the last one.
        eps: term added to the mean square for numerical stability; the machine epsilon of the dtype if `None`.
        elementwise_affine: whether to scale by a learned weight. Default: `True`
        device, dtype: device and data type of the parameters.

    Shape:
        - Input and output: `(*, *normalized_shape)`.

    Examples:
        >>> layer = nn.RMSNorm(4)
        >>> layer(torch.randn(2, 3, 4)).shape
        torch.Size([2, 3, 4])
    """

    weight: Any

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        made = Parameter(_core.empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the scale to one."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
